//! The right to reconcile a key.

use crate::{leader_deadline::LeaderDeadline, sharding};

/// The right to reconcile a key: as the leader, as the key's owner, or without a condition.
pub(super) struct ReconcileRight {
    leader: Option<LeaderDeadline>,
    shard: Option<sharding::KeyRight>,
}

impl ReconcileRight {
    pub(super) fn new(leader: Option<LeaderDeadline>, shard: Option<sharding::KeyRight>) -> Self {
        Self { leader, shard }
    }

    /// Completes when the reconcile must end. Poll this future before each poll of the reconcile, so that the
    /// reconcile does not run on after the right has ended.
    pub(super) async fn revoked(&mut self) {
        match (&self.leader, &mut self.shard) {
            (None, None) => std::future::pending().await,
            (Some(deadline), None) => deadline.ended().await,
            (None, Some(shard)) => shard.revoked().await,
            (Some(deadline), Some(shard)) => {
                tokio::select! {
                    biased;
                    () = deadline.ended() => {}
                    () = shard.revoked() => {}
                }
            }
        }
    }
}
