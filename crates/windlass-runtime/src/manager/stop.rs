//! The stop of a manager.

use std::time::Duration;

use futures::future::join_all;
use tokio::time::{Instant, timeout};

use super::{
    grace::{Grace, Stage},
    run::{RunningManager, lost},
    runnable::{Group, StoppedGroup},
};
use crate::{
    error::{Error, Result},
    informer::SharedInformerFactory,
    shared_state::SharedState,
};

/// The longest wait for the API server when the manager stops: for the release of the Lease.
const RELEASE_LIMIT: Duration = Duration::from_secs(2);

/// The longest wait for the API server when the manager stops: for events that are not written yet.
const EVENTS_LIMIT: Duration = Duration::from_millis(1500);

impl RunningManager {
    /// Stops everything in the reverse order. After a lost election, the manager aborts everything at once: another replica may lead
    /// already.
    pub(super) async fn stop(mut self, result: Result<()>) -> Result<()> {
        // No more ends are reported: a reconcile that waits for the end of another part would block the stop.
        self.stopping.clear();
        let lost = result.as_ref().is_err_and(Error::is_lost_leadership);
        let grace = Grace::new(Instant::now(), if lost { Some(Duration::ZERO) } else { self.grace });
        let elected = self.stop_elected(grace).await;
        let mut late = elected.aborted;
        if let Some(leadership) = self.leadership.take() {
            // The leadership ends after the last write, so that two replicas never work at the same time; and
            // before the other groups, so that another replica can take over soon.
            let limit = grace.requests(Stage::Lease, Instant::now(), RELEASE_LIMIT);
            leadership.end(limit, !elected.still_running).await;
        }
        let others = self.stop_group(Group::Others, grace).await;
        late.extend(others.aborted);
        if let Some(sharded) = self.sharded.take() {
            let limit = grace.requests(Stage::Membership, Instant::now(), RELEASE_LIMIT);
            sharded.end(limit, !others.still_running).await;
        }
        // Controllers that wait for the leadership end the watches.
        self.elected.clear();
        write_events(&self.state, grace).await;
        end_watches(&self.state, grace).await;
        for group in [Group::Webhooks, Group::Http] {
            late.extend(self.stop_group(group, grace).await.aborted);
        }
        let result = result.and(self.failures());
        if late.is_empty() || lost {
            return result;
        }
        result.and(Err(Error::setup(format!(
            "not everything stopped within {:?}: {} ended by force",
            grace.limit().unwrap_or_default(),
            late.join(", ")
        ))))
    }

    /// Logs the failures of the parts that have failed since the stop began, and returns the first.
    fn failures(&mut self) -> Result<()> {
        let mut first = Ok(());
        while let Ok(mut ended) = self.ended.try_recv() {
            if let Err(error) = ended.failure() {
                tracing::error!(%error, "a part failed while the manager stopped");
                first = first.and(Err(error));
            }
        }
        first
    }

    /// Stops the parts of the leader. A Lease that is lost meanwhile aborts the parts at once: another replica may lead already.
    async fn stop_elected(&mut self, grace: Grace) -> StoppedGroup {
        let group = &mut self.groups[Group::LeaderElected as usize];
        let stopped = tokio::select! {
            biased;
            () = lost(&mut self.leadership) => None,
            stopped = group.stop(grace.deadline(Stage::Group(Group::LeaderElected))) => Some(stopped),
        };
        match stopped {
            Some(stopped) => stopped,
            None => self.groups[Group::LeaderElected as usize].abort().await,
        }
    }

    async fn stop_group(&mut self, group: Group, grace: Grace) -> StoppedGroup {
        self.groups[group as usize].stop(grace.deadline(Stage::Group(group))).await
    }
}

/// Waits for the events that are not written yet.
async fn write_events(state: &SharedState, grace: Grace) {
    let limit = grace.requests(Stage::Events, Instant::now(), EVENTS_LIMIT);
    join_all(state.clusters().map(|(_, cluster)| cluster.events.shutdown(limit))).await;
}

/// Ends the watches. A watch whose task is blocked, for example by an index function, is left behind.
async fn end_watches(state: &SharedState, grace: Grace) {
    let informers = state.informers();
    let ended = join_all(informers.iter().map(SharedInformerFactory::shutdown));
    let limit = grace.requests(Stage::Caches, Instant::now(), Duration::MAX);
    if timeout(limit, ended).await.is_err() {
        tracing::warn!(?limit, "some watches did not end in time");
    }
}
