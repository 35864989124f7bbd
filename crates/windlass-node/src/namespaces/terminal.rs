//! The master of a terminal.

use std::io;
use std::os::fd::OwnedFd;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll, ready};

use rustix::io::Errno;
use rustix::termios::{Winsize, tcsetwinsize};
use tokio::io::unix::AsyncFd;
use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};
use tokio::sync::mpsc;

use crate::TerminalSize;

/// The master of a terminal. All copies are the same terminal.
#[derive(Clone, Debug)]
pub(super) struct Terminal(Arc<AsyncFd<OwnedFd>>);

impl Terminal {
    /// Takes a master, which must not block.
    #[allow(deprecated, reason = "the replacement is unsafe; a file descriptor that is owned stays open")]
    pub(super) fn new(master: OwnedFd) -> io::Result<Self> {
        Ok(Self(Arc::new(AsyncFd::new(master)?)))
    }

    /// Returns a sender that changes the size.
    pub(super) fn resizer(&self) -> mpsc::Sender<TerminalSize> {
        let (sender, mut receiver) = mpsc::channel::<TerminalSize>(4);
        let terminal = self.clone();
        tokio::spawn(async move {
            while let Some(size) = receiver.recv().await {
                let size = Winsize { ws_row: size.height, ws_col: size.width, ws_xpixel: 0, ws_ypixel: 0 };
                let _ = tcsetwinsize(terminal.0.get_ref(), size);
            }
        });
        sender
    }
}

impl AsyncRead for Terminal {
    fn poll_read(
        self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        buffer: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        loop {
            let mut guard = ready!(self.0.poll_read_ready(cx))?;
            let unfilled = buffer.initialize_unfilled();
            match guard.try_io(|master| Ok(rustix::io::read(master.get_ref(), unfilled)?)) {
                Ok(Ok(length)) => {
                    buffer.advance(length);
                    return Poll::Ready(Ok(()));
                }
                // The last process has closed the terminal.
                Ok(Err(error)) if error.raw_os_error() == Some(Errno::IO.raw_os_error()) => {
                    return Poll::Ready(Ok(()));
                }
                Ok(Err(error)) => return Poll::Ready(Err(error)),
                Err(_) => {}
            }
        }
    }
}

impl AsyncWrite for Terminal {
    fn poll_write(self: Pin<&mut Self>, cx: &mut Context<'_>, bytes: &[u8]) -> Poll<io::Result<usize>> {
        loop {
            let mut guard = ready!(self.0.poll_write_ready(cx))?;
            if let Ok(result) = guard.try_io(|master| Ok(rustix::io::write(master.get_ref(), bytes)?)) {
                return Poll::Ready(result);
            }
        }
    }

    fn poll_flush(self: Pin<&mut Self>, _: &mut Context<'_>) -> Poll<io::Result<()>> {
        Poll::Ready(Ok(()))
    }

    fn poll_shutdown(self: Pin<&mut Self>, _: &mut Context<'_>) -> Poll<io::Result<()>> {
        Poll::Ready(Ok(()))
    }
}
