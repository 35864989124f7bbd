//! The task that keeps this replica's Lease: carries out the steps of the membership.

use std::{collections::BTreeSet, sync::Arc, time::Duration};

use tokio::{sync::Mutex, task::JoinHandle, time::timeout};

use super::{
    member_lease::MemberLeases,
    membership::{MembershipStep, WriteResult},
    shard_group::ShardGroup,
};
use crate::{
    env::Env,
    supervisor::{Recovery, Supervisor},
};

/// The time that the other sharded controllers have to fill caches, after the first controller has filled its
/// caches, before the replica joins.
const OTHERS_LIMIT: Duration = Duration::from_secs(30);

/// A running membership.
pub(crate) struct Sharded {
    group: ShardGroup,
    task: JoinHandle<()>,
}

impl Sharded {
    /// Leaves the group. With `release`, other replicas take the keys over at once; without `release`, after
    /// the expiry of the Lease, because some work has not ended.
    pub(crate) async fn end(mut self, limit: Duration, release: bool) {
        if release {
            self.group.leave();
            if timeout(limit, &mut self.task).await.is_ok() {
                return;
            }
            tracing::warn!("could not leave the sharding group; other replicas wait until the Lease expires");
        }
    }
}

impl Drop for Sharded {
    /// Without the manager, no worker runs any more: the Lease must not be renewed.
    fn drop(&mut self) {
        self.task.abort();
    }
}

pub(super) struct LeaseRenewer {
    pub(super) group: ShardGroup,
    pub(super) leases: MemberLeases,
    pub(super) env: Env,
    /// The number of sharded controllers.
    pub(super) controllers: usize,
}

impl LeaseRenewer {
    /// Starts the task. The task is restarted after a panic: the membership is in the [`ShardGroup`], and survives the
    /// panic.
    pub(super) fn start(self, supervisor: &Supervisor) -> Sharded {
        let (group, lease_renewer) = (self.group.clone(), Arc::new(Mutex::new(self)));
        let task = supervisor.spawn("sharding membership", move |recovery| {
            let lease_renewer = lease_renewer.clone();
            async move { lease_renewer.lock().await.run(&recovery).await }
        });
        Sharded { group, task }
    }

    async fn run(&mut self, recovery: &Recovery) {
        // A replica that cannot work yet takes no keys.
        self.group.ready(self.controllers.min(1)).await;
        let _ = timeout(OTHERS_LIMIT, self.group.ready(self.controllers)).await;
        let mut members = 0;
        loop {
            match self.group.next(self.env.random()) {
                MembershipStep::WaitUntil(until) => self.group.sleep_until(until).await,
                MembershipStep::Write { name, released, yields_to } => {
                    self.write(&name, released, &yields_to).await;
                }
                MembershipStep::List => self.list().await,
                MembershipStep::Delete { name, version } => {
                    let _ = timeout(self.group.request_timeout(), self.leases.delete(&name, &version)).await;
                }
                MembershipStep::Left => return,
            }
            recovery.complete();
            let now = self.group.owned_keys().members();
            if now != members {
                tracing::info!(member = self.group.name(), members = now, "sharding members changed");
                members = now;
            }
        }
    }

    async fn write(&mut self, name: &str, released: bool, yields_to: &BTreeSet<String>) {
        let yields_to = yields_to.iter().map(String::as_str).collect::<Vec<_>>().join(",");
        let write = self.leases.write(name, released, &yields_to, self.env.now());
        let result = timeout(self.group.request_timeout(), write).await.unwrap_or(WriteResult::Failed);
        if result == WriteResult::Gone {
            tracing::warn!(
                member = name,
                "this replica's Lease was deleted; it stops its work and joins again"
            );
        }
        let now = self.group.now();
        self.group.change(|membership| membership.wrote(now, result));
    }

    async fn list(&mut self) {
        let leases = match timeout(self.group.request_timeout(), self.leases.list()).await {
            Ok(Ok(leases)) => Some(leases),
            Ok(Err(error)) => {
                tracing::warn!(%error, "listing the members' Leases failed");
                None
            }
            Err(_) => None,
        };
        let now = self.group.now();
        self.group.change(|membership| membership.listed(now, leases.as_deref()));
    }
}
