//! The process of an operator. The process is restarted after each end.

use std::sync::Arc;
use std::time::Duration;

use kube_client::Client;
use tokio::sync::watch;
use tokio::time::sleep;
use windlass_runtime::Manager;

use crate::{Faults, TestClock};

/// How long a process that ended is not started again.
const RESTART: Duration = Duration::from_secs(1);

/// An operator under faults.
pub(super) struct Replica {
    pub(super) operator: Arc<dyn Fn(Client) -> Manager + Send + Sync>,
    pub(super) faults: Faults,
    pub(super) clock: TestClock,
    pub(super) seed: u64,
}

impl Replica {
    /// Runs the operator until `stop`. Returns the number of restarts.
    ///
    /// # Errors
    /// The operator failed during the stop.
    pub(super) async fn run(self, stop: watch::Receiver<bool>) -> Result<u64, String> {
        let mut restarts = 0;
        loop {
            let env = self.clock.env(self.seed.wrapping_add(restarts << 32));
            let manager = (self.operator)(self.faults.client()).env(env);
            let mut stopped = stop.clone();
            let manager = manager.run_until(async move { drop(stopped.wait_for(|stop| *stop).await) });
            let ended = tokio::select! {
                biased;
                () = self.faults.crashed() => None,
                result = Box::pin(manager) => Some(result),
            };
            match ended {
                Some(result) if *stop.borrow() => {
                    return result.map(|()| restarts).map_err(|error| format!("the stop failed: {error}"));
                }
                // The operator lost leadership, or could not start without the server.
                Some(_) | None => sleep(RESTART).await,
            }
            restarts += 1;
        }
    }
}
