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

/// The end of an operator.
#[derive(Default)]
pub(super) struct ReplicaEnd {
    pub(super) restarts: u64,
    /// The failure of the stop.
    pub(super) stop_error: Option<String>,
    /// The last error that ended a process of the operator before the stop.
    pub(super) last_error: Option<String>,
}

impl Replica {
    /// Runs the operator until `stop`.
    pub(super) async fn run(self, stop: watch::Receiver<bool>) -> ReplicaEnd {
        let (mut restarts, mut last_error) = (0, None);
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
                    let stop_error = result.err().map(|error| format!("the stop failed: {error}"));
                    return ReplicaEnd { restarts, stop_error, last_error };
                }
                // The operator lost leadership, or could not start without the server.
                Some(Err(error)) => last_error = Some(error.to_string()),
                Some(Ok(())) | None => {}
            }
            sleep(RESTART).await;
            restarts += 1;
        }
    }
}
