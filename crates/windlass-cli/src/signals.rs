//! Ctrl-C and SIGTERM: the first asks for an orderly end, the second ends at once.

use tokio::signal::unix::{SignalKind, signal};
use tokio::sync::watch;

/// Told once that the process is to end.
#[derive(Clone)]
pub(crate) struct Stop(watch::Receiver<bool>);

impl Stop {
    /// Listens from now on.
    ///
    /// # Errors
    /// The operating system's, when it lets nobody listen to signals.
    pub(crate) fn listen() -> std::io::Result<Self> {
        let mut interrupt = signal(SignalKind::interrupt())?;
        let mut terminate = signal(SignalKind::terminate())?;
        let (tell, told) = watch::channel(false);
        tokio::spawn(async move {
            for asked in 0.. {
                tokio::select! {
                    biased;
                    _ = interrupt.recv() => {}
                    _ = terminate.recv() => {}
                }
                if asked > 0 {
                    std::process::exit(1);
                }
                tell.send_replace(true);
            }
        });
        Ok(Self(told))
    }

    /// Waits until the process is to end.
    pub(crate) async fn asked(&self) {
        // The task above owns the sender and never ends, so this can only succeed.
        let _ = self.0.clone().wait_for(|asked| *asked).await;
    }
}
