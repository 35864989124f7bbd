//! The thread that accepts connections.

use std::{io, thread};

use hyper_util::server::graceful::GracefulShutdown;
use socket2::SockRef;
use tokio::net::TcpStream;
use tokio::runtime::Builder;
use tokio::sync::oneshot;
use tokio::task::JoinHandle;
use tokio_util::sync::CancellationToken;

use super::freed_memory::keep_returning;

/// Runs an accept loop on a separate thread. A new client then waits for no request of other clients until the end of the TLS handshake. The
/// returned task ends with the loop; `stopping` is cancelled if the runtime of the server stops first.
///
/// # Errors
/// The system has no thread or no file descriptor.
pub(super) async fn open(
    accepting: impl Future<Output = GracefulShutdown> + Send + 'static,
    stopping: &CancellationToken,
) -> io::Result<JoinHandle<Option<GracefulShutdown>>> {
    let (built, is_built) = oneshot::channel();
    let (done, ended) = oneshot::channel();
    let stopped = stopping.clone().cancelled_owned();
    let run = move || {
        let runtime = Builder::new_current_thread().enable_all().build();
        // The receivers are gone if the runtime of the server has stopped.
        match runtime {
            Ok(runtime) => {
                let _ = built.send(Ok(()));
                // The thread makes the state of all connections, which other threads free.
                runtime.spawn(keep_returning(stopped, || {}));
                let _ = done.send(runtime.block_on(accepting));
            }
            Err(error) => drop(built.send(Err(error))),
        }
    };
    thread::Builder::new().name("windlass-door".to_owned()).spawn(run)?;
    is_built.await.map_err(io::Error::other)??;
    let stop = stopping.clone().drop_guard();
    Ok(tokio::spawn(async move {
        let connections = ended.await;
        drop(stop);
        connections.ok()
    }))
}

/// Moves a stream to the runtime of the caller.
///
/// # Errors
/// The system has no file descriptor.
pub(super) fn take_over(stream: &mut TcpStream) -> io::Result<()> {
    let same = SockRef::from(&*stream).try_clone()?;
    *stream = TcpStream::from_std(same.into())?;
    Ok(())
}
