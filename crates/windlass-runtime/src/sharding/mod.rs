//! Sharding: replicas split the keys of a controller, and each key has one owner at a time.
//!
//! [`Sharding`] configures sharding for a manager, [`Controller::sharded`](crate::Controller::sharded) for a
//! controller. Each replica is a member of a group and has a Lease there, under a name that is never used
//! again. The member with the greatest weight for a key owns the key (rendezvous hashing): a member that
//! joins or leaves moves only that member's keys.
//!
//! # The protocol
//!
//! A member `r` keeps a set `P(r)` of peers. The member *yields* to each peer: `r` works on a key only if `r`
//! outranks all peers in `P(r)` for the key. The Lease of `r` names the confirmed peers, `Y(r)`.
//!
//! - **Join.** `r` creates a Lease, then lists the Leases of the group at the server's latest state. All
//!   members in this list are put into `P(r)` as *earlier* peers; a member that a later list shows is a
//!   *later* peer. Before the list, `r` works on no key.
//! - **Hand-over.** When a list shows `r` a new peer `s`, `s` is put into `P(r)` at once, and `r` then begins
//!   no work on a key for which `s` outranks `r`. When all such work in flight has ended, or was cancelled
//!   after the hand-over timeout, `r` puts `s` into `Y(r)` and writes the Lease.
//! - **Take-over.** `r` works on a key only if each earlier peer `s` that `r` outranks has `r` in `Y(s)`, or
//!   cannot own the key: a member in `Y(s)` with a Lease in the last list of `r` outranks `s` for the key.
//! - **Renewal.** `r` renews the Lease each retry period. `r` stops all work at the time at which `r` *sent*
//!   the last successful write plus the renew deadline: `r` begins no work, and work in flight is cancelled
//!   and never polled again. `r` then joins again under another name.
//! - **Leave.** After the last work has ended, `r` writes the Lease with an empty holder.
//! - **Removal.** `s` is taken out of `P(r)` when a list shows the Lease of `s` with an empty holder, or when
//!   the Lease is absent and the lease duration has passed since `r` first saw the last version of the Lease.
//!   Any member deletes a Lease that stays unchanged for the lease duration, on the condition that the
//!   resource version is still the same.
//!
//! # Why a key never has two owners
//!
//! 1. *`s ∈ P(r)` and `r ∈ P(s)` exclude each other's work on a key*: both would have to outrank the other, and the order is strict.
//! 2. *A peer leaves `P(r)` only when the peer works no more.* The peer wrote an empty holder after the last
//!    work. Or the peer's Lease was deleted at the version `v`, a lease duration after a member first saw
//!    `v`. The write of `v` was sent before `v` was seen, and `v` was the last version: the peer stopped a
//!    renew deadline after the write, and the renew deadline is shorter than the lease duration. No two
//!    replicas' wall clocks are compared: the durations are measured by monotonic clocks, and a clock may run
//!    faster than another clock by up to the ratio of lease duration and renew deadline (1.5 by default). A
//!    list that is answered late only delays a removal.
//! 3. *Of two joining members, one sees the other*, because lists show the server's latest state. If `s` was
//!    created after the first list of `r`, the first list of `s` shows `r`: `r ∈ P(s)` before `s` works on
//!    any key: a later peer need not confirm. If `s` is an earlier peer of `r`, then `s ∈ P(r)` from the
//!    beginning, and `r` waits for `r ∈ Y(s)`, and `s` writes `r ∈ Y(s)` when `r ∈ P(s)` and no work on keys
//!    of `r` is in flight. From then on 1 holds until 2.
//! 4. *An earlier peer `s` that has not confirmed*, and has not seen `r`, works on a key only if `s` outranks
//!    every `t ∈ Y(s)` that `s` has not removed. `s` can only have removed `t` after a list that shows `t`
//!    absent or released. If the last list of `r` shows `t` at work, that list of `s` was later, and showed
//!    `r`, too: then `s` yields to `r`.
//!
//! Every key has an owner in the end: a dead member's Lease is deleted, and `P` and `Y` settle on the living
//! members; confirmations wait only for work in flight, and that work ends.
//!
//! Like leader election, this is no fence on the server: a write that a stopped replica sent before the
//! deadline may arrive later. Use preconditions (resource versions) against such writes. A Lease of a living
//! member must not be deleted or edited by hand.

mod lease_renewer;
mod member_lease;
mod membership;
mod metrics;
mod owned_keys;
mod peer;
mod rendezvous;
mod shard_group;

#[cfg(test)]
mod tests;

use std::time::Duration;

use k8s_openapi::api::coordination::v1::Lease;

use self::{
    lease_renewer::LeaseRenewer,
    member_lease::MemberLeases,
    membership::{Membership, MembershipTiming},
    metrics::ShardingMetrics,
};
pub(crate) use self::{
    lease_renewer::Sharded,
    owned_keys::{OwnedKeys, Ownership},
    rendezvous::hash,
    shard_group::{KeyCounts, KeyRight, ShardGroup, ShardedController},
};
use crate::{
    client::path_segment,
    cluster_state::ClusterState,
    env::{Env, host_name},
    error::{Error, Result},
    leader_election::Timing,
    metrics::Metrics,
    permission::{Permission, Verb},
    supervisor::Supervisor,
};

/// The configuration of sharding. Replicas with the same name and namespace split the keys of the
/// [sharded](crate::Controller::sharded) controllers.
///
/// A replica that cannot renew the Lease stops all reconciles before another replica may take the keys, and
/// joins again when the API server answers. A graceful stop gives up the keys as soon as the last reconcile
/// has ended.
///
/// ```
/// use std::time::Duration;
/// use windlass_runtime::{leader_election::Timing, sharding::Sharding};
///
/// let sharding = Sharding::new("my-operator")
///     .namespace("operators")
///     .timing(Timing { lease_duration: Duration::from_secs(30), ..Timing::default() })
///     .hand_over_timeout(Duration::from_secs(60));
/// # let _ = sharding;
/// ```
#[derive(Clone, Debug)]
pub struct Sharding {
    name: String,
    namespace: Option<String>,
    identity: Option<String>,
    timing: Timing,
    hand_over_timeout: Duration,
}

impl Sharding {
    /// Creates a configuration for the group `name`, the prefix of the members' Leases: at most 46 lower-case
    /// letters, digits and `-`.
    pub fn new(name: impl Into<String>) -> Self {
        Self {
            name: name.into(),
            namespace: None,
            identity: None,
            timing: Timing::default(),
            hand_over_timeout: Duration::from_secs(30),
        }
    }

    /// Sets the namespace of the Leases. Default: the client's namespace, which in a pod is the pod's.
    pub fn namespace(mut self, namespace: impl Into<String>) -> Self {
        self.namespace = Some(namespace.into());
        self
    }

    /// Sets the name of this replica: the holder in the Lease. Default: the host name and a random ID.
    pub fn identity(mut self, identity: impl Into<String>) -> Self {
        self.identity = Some(identity.into());
        self
    }

    /// Sets the times: the wait for another owner of a dead replica's keys, the time for which a replica
    /// without a renewed Lease continues to work, and the interval of renewals and lists. Default: 15, 10 and
    /// 2 seconds.
    pub fn timing(mut self, timing: Timing) -> Self {
        self.timing = timing;
        self
    }

    /// Sets the time limit of reconciles of keys that move to another replica. Longer reconciles are
    /// cancelled. Default: 30 s.
    pub fn hand_over_timeout(mut self, limit: Duration) -> Self {
        self.hand_over_timeout = limit;
        self
    }

    /// Returns the rights to keep the Leases of the group.
    pub(crate) fn permissions(&self) -> Vec<Permission> {
        let always = Permission::to::<Lease>([Verb::List, Verb::Create]);
        // Not needed by a replica that is alone for a short time.
        let sometimes = Permission::to::<Lease>([Verb::Get, Verb::Update, Verb::Delete]).optional();
        let placed = |permission: Permission| match &self.namespace {
            Some(namespace) => permission.in_namespace(namespace),
            None => permission.in_operator_namespace(),
        };
        [always, sometimes].map(placed).into()
    }

    /// Checks the configuration.
    pub(crate) fn check(&self) -> Result<()> {
        let bad = |what: &str| Err(Error::setup(format!("sharding {:?}: {what}", self.name)));
        let allowed = |byte: u8| byte.is_ascii_lowercase() || byte.is_ascii_digit() || byte == b'-';
        if self.name.is_empty()
            || self.name.len() > 46
            || !self.name.bytes().all(allowed)
            || self.name.starts_with('-')
        {
            return bad(
                "the name must have 1 to 46 lower-case letters, digits and `-`, and begin with no `-`",
            );
        }
        if let Some(Err(invalid)) = self.namespace.as_deref().map(path_segment) {
            return bad(&format!("the namespace: {invalid}"));
        }
        // A Lease without a holder belongs to a member that has stopped.
        if self.identity.as_deref() == Some("") {
            return bad("the identity is empty");
        }
        self.timing.check().or_else(bad)
    }

    /// Creates the group, as this replica sees the group. This replica may work on no key until [`start`](Self::start).
    pub(crate) fn shard_group(&self, env: &Env, metrics: &Metrics) -> ShardGroup {
        let timing = MembershipTiming { lease: self.timing, hand_over_timeout: self.hand_over_timeout };
        let group = ShardGroup::new(Membership::new(&self.name, timing, env.random()));
        let collector = ShardingMetrics(group.clone());
        metrics.register(|registry| registry.register_collector(Box::new(collector)));
        group
    }

    /// Joins the group when `controllers` controllers are ready.
    pub(crate) fn start(
        self,
        group: ShardGroup,
        controllers: usize,
        cluster: &ClusterState,
        env: &Env,
        supervisor: &Supervisor,
    ) -> Sharded {
        let namespace = self.namespace.unwrap_or_else(|| cluster.client.default_namespace().to_owned());
        let identity = self.identity.unwrap_or_else(|| format!("{}_{}", host_name(), env.uuid()));
        tracing::info!(group = %format_args!("{namespace}/{}", self.name), identity, "sharding");
        let (api, lease_duration) = (cluster.api.clone(), self.timing.lease_duration);
        let leases = MemberLeases::new(api, namespace, self.name, identity, lease_duration);
        LeaseRenewer { group, leases, env: env.clone(), controllers }.start(supervisor)
    }
}
