//! The right to reconcile a key.

use crate::{fence::Fence, sharding};

/// The right to reconcile a key: as the leader, as the key's owner, or without a condition.
pub(super) struct Permit {
    leader: Option<Fence>,
    shard: Option<sharding::Permit>,
}

impl Permit {
    pub(super) fn new(leader: Option<Fence>, shard: Option<sharding::Permit>) -> Self {
        Self { leader, shard }
    }

    /// Completes when the reconcile must end. Poll this future before each poll of the reconcile, so that the
    /// reconcile does not run on after the right has ended.
    pub(super) async fn revoked(&mut self) {
        match (&self.leader, &mut self.shard) {
            (None, None) => std::future::pending().await,
            (Some(fence), None) => fence.ended().await,
            (None, Some(shard)) => shard.revoked().await,
            (Some(fence), Some(shard)) => {
                tokio::select! {
                    biased;
                    () = fence.ended() => {}
                    () = shard.revoked() => {}
                }
            }
        }
    }
}
