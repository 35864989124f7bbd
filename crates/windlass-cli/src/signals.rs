//! Ctrl-C, SIGTERM and SIGHUP (the terminal is closed): the first asks for a graceful shutdown, the second exits at once.

use std::io;
use std::process;

use tokio::signal::unix::{SignalKind, signal};
use tokio::sync::watch;

/// The receiving side of a shutdown request.
#[derive(Clone)]
pub(crate) struct ShutdownSignal(watch::Receiver<bool>);

impl ShutdownSignal {
    /// Starts to listen for signals. From then on, signals do not end the process.
    ///
    /// # Errors
    /// The operating system refuses to install a signal handler.
    pub(crate) fn listen() -> io::Result<Self> {
        let mut interrupt = signal(SignalKind::interrupt())?;
        let mut terminate = signal(SignalKind::terminate())?;
        let mut hangup = signal(SignalKind::hangup())?;
        let (sender, receiver) = watch::channel(false);
        tokio::spawn(async move {
            for earlier in 0.. {
                tokio::select! {
                    biased;
                    _ = interrupt.recv() => {}
                    _ = terminate.recv() => {}
                    _ = hangup.recv() => {}
                }
                if earlier > 0 {
                    process::exit(1);
                }
                sender.send_replace(true);
            }
        });
        Ok(Self(receiver))
    }

    /// Waits for the first signal.
    pub(crate) async fn received(&self) {
        // The task above owns the sender and never ends: the wait cannot fail.
        let _ = self.0.clone().wait_for(|received| *received).await;
    }
}
