//! SIGTERM and SIGINT: the first signal stops the manager, the second ends the process.

use tokio::signal::unix::{SignalKind, signal};

use crate::error::{Error, Result};

/// Completes at the first signal. A second signal exits the process with status 1.
pub(super) fn first_signal() -> Result<impl Future<Output = ()>> {
    let listen = |kind| signal(kind).map_err(|e| Error::setup(format!("cannot listen for signals: {e}")));
    let mut terminate = listen(SignalKind::terminate())?;
    let mut interrupt = listen(SignalKind::interrupt())?;
    Ok(async move {
        let mut next = async move || {
            tokio::select! {
                biased;
                _ = terminate.recv() => "SIGTERM",
                _ = interrupt.recv() => "SIGINT",
            }
        };
        let signal = next().await;
        tracing::info!(signal, "stopping; a second signal stops at once");
        tokio::spawn(async move {
            let signal = next().await;
            tracing::warn!(signal, "stopping at once");
            std::process::exit(1);
        });
    })
}
