//! The terms of a leader: the parts that start when this replica leads, and end with the leadership.

use super::{
    run::RunningManager,
    runnable::{Group, Runnable},
};
use crate::{
    error::{Error, Result},
    leader_election::{LeaderElection, Leadership},
};

impl RunningManager {
    /// Starts the runnables that only the leader runs.
    pub(super) fn lead(&mut self) {
        self.leading = true;
        let elected = std::mem::take(&mut self.elected);
        for runnable in elected {
            self.start_one(runnable);
        }
    }

    /// Starts a runnable of the leader now, or when this replica leads.
    pub(super) fn start_elected(&mut self, runnable: Runnable) {
        if !self.leading {
            self.elected.push(runnable);
            return;
        }
        if self.returns_to_follower {
            match runnable.again() {
                Some(again) => self.elected.push(again),
                None => self.once = Some(runnable.name.clone()),
            }
        }
        self.groups[Group::LeaderElected as usize].start(runnable, &self.state, self.grace);
    }

    /// Makes this replica a follower after it has lost the Lease: aborts everything that only the leader runs, and campaigns again.
    ///
    /// # Errors
    /// The replica does not become a follower, because of the configuration or because some code of the
    /// leader cannot be aborted or repeated. The manager must end.
    pub(super) async fn lose(&mut self) -> Result<()> {
        if !self.returns_to_follower {
            return Err(Error::lost_leadership());
        }
        self.leading = false;
        let group = &mut self.groups[Group::LeaderElected as usize];
        let ended = group.abort().await;
        *group = group.renewed();
        if ended.still_running {
            tracing::error!(
                parts = ended.aborted.join(", "),
                "the lease is lost, and some code of the leader blocks its thread; the manager ends"
            );
            return Err(Error::lost_leadership());
        }
        if let Some(runnable) = &self.once {
            tracing::error!(
                runnable,
                "the lease is lost, and a runnable of the leader is not repeatable; the manager ends"
            );
            return Err(Error::lost_leadership());
        }
        if !self.leadership.as_ref().is_some_and(Leadership::campaign_again) {
            return Err(Error::lost_leadership());
        }
        tracing::warn!("the lease is lost; this replica is a follower now");
        // Parts that had been asked to stop have ended.
        let stopping: Vec<String> = self.stopping.iter().map(|(name, _)| name.clone()).collect();
        stopping.iter().for_each(|name| self.part_ended(name));
        Ok(())
    }
}

/// Fails if a leader that may become a follower has runnables that cannot be started again.
pub(super) fn check_repeatable(election: Option<&LeaderElection>, runnables: &[Runnable]) -> Result<()> {
    if !election.is_some_and(LeaderElection::returns_to_follower) {
        return Ok(());
    }
    let once = |runnable: &&Runnable| runnable.group == Group::LeaderElected && runnable.again().is_none();
    match runnables.iter().find(once) {
        Some(Runnable { name, .. }) => Err(Error::setup(format!(
            "the leader runs {name:?}, which cannot start again when this replica is elected again; make it with \
             `Runnable::repeatable`, or do not call `LeaderElection::back_to_follower`"
        ))),
        None => Ok(()),
    }
}
