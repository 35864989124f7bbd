//! Sharding: replicas split the keys of a controller, and each key has one owner at a time.
//!
//! [`Sharding`] configures it for a manager, [`Controller::sharded`](crate::Controller::sharded) for a controller. Each replica is a
//! member of a group and has a Lease there, under a name that is never used again. Of all members, the one with the greatest weight for
//! a key owns it (rendezvous hashing), so that a member that joins or leaves moves no keys but its own.
//!
//! # The protocol
//!
//! A member `r` keeps a set `P(r)` of peers. It *yields* to each of them: it works on a key only if it outranks all peers in `P(r)` for the
//! key. The Lease of `r` names the peers of which it has confirmed this, `Y(r)`.
//!
//! - **Join.** `r` creates its Lease, then lists the Leases of the group at the server's latest state. All members in this list are put
//!   into `P(r)` as *earlier* peers; a member that a later list shows is a *later* peer. Before the list, `r` works on nothing.
//! - **Hand-over.** When a list shows `r` a new peer `s`, `s` is put into `P(r)` at once, so that `r` begins no work on a key for which `s`
//!   outranks it. When all such work in flight has ended, or was cancelled after the hand-over timeout, `r` puts `s` into `Y(r)` and
//!   writes its Lease.
//! - **Take-over.** `r` works on a key only if each earlier peer `s` that `r` outranks has `r` in `Y(s)`, or cannot own the key: a member
//!   in `Y(s)` whose Lease is in the last list of `r` outranks `s` for the key.
//! - **Renewal.** `r` renews its Lease each retry period. It stops all work at the time it *sent* the last successful write plus the renew
//!   deadline: it begins none, and what is in flight is cancelled and never polled again. It then joins again under another name.
//! - **Leave.** After its last work has ended, `r` writes its Lease with an empty holder.
//! - **Removal.** `s` is taken out of `P(r)` when a list shows its Lease with an empty holder, or when it is absent and its lease duration
//!   has passed since `r` first saw it as it was last. A Lease that stays unchanged for its duration is deleted by any member, on the
//!   condition that its resource version is still the same.
//!
//! # Why a key never has two owners
//!
//! 1. *`s ∈ P(r)` and `r ∈ P(s)` exclude each other's work on a key*: both would have to outrank the other, and the order is strict.
//! 2. *A peer leaves `P(r)` only when it works no more.* It wrote an empty holder after its last work. Or its Lease was deleted at the
//!    version `v`, a lease duration after a member first saw `v`. The write of `v` was sent before it was seen, and `v` was the last one,
//!    so the peer had stopped a renew deadline after that, which is shorter. No two replicas' wall clocks are compared: the durations are
//!    measured by monotonic clocks, so one clock may run faster than another by up to the ratio of lease duration and renew deadline
//!    (1.5 by default). A list that is answered late only delays a removal.
//! 3. *Of two members that join, one sees the other*, because lists show the server's latest state. If `s` was created after the first list
//!    of `r`, the first list of `s` shows `r`, so `r ∈ P(s)` before `s` works on anything: a later peer need not confirm. If `s` is an
//!    earlier peer of `r`, then `s ∈ P(r)` from the beginning, and `r` waits for `r ∈ Y(s)`, which is written when `r ∈ P(s)` and no work on
//!    keys of `r` is in flight. From then on 1 holds until 2.
//! 4. *An earlier peer `s` that has not confirmed*, and has not seen `r`, works on a key only if it outranks every `t ∈ Y(s)` that it has not
//!    removed. It can only have removed `t` after a list that shows `t` absent or released. If the last list of `r` shows `t` at work, that
//!    list of `s` was later, and so showed `r`, too: then `s` yields to `r`.
//!
//! Every key has an owner in the end: a dead member's Lease is deleted, so `P` and `Y` settle on the living; confirmations wait for nothing
//! but work in flight, which ends.
//!
//! Like leader election, this is no fence on the server: a write that a stopped replica sent before its deadline may arrive later. Use
//! preconditions (resource versions) where that matters. A Lease of a living member must not be deleted or edited by hand.

mod gate;
mod keeper;
mod member_lease;
mod membership;
mod metrics;
mod peer;
mod rendezvous;
mod rights;

#[cfg(test)]
mod tests;

use std::time::Duration;

use k8s_openapi::api::coordination::v1::Lease;
use kube_client::Client;

pub(crate) use self::{
    gate::{Gate, KeyCounts, Permit, ShardedController},
    keeper::Sharded,
    rendezvous::hash,
    rights::{Rights, Verdict},
};
use self::{
    keeper::Keeper,
    member_lease::MemberLeases,
    membership::{Membership, Terms},
    metrics::ShardingMetrics,
};
use crate::{
    env::{Env, host_name},
    error::{Error, Result},
    leader_election::Timing,
    metrics::Metrics,
    permission::{Permission, Verb},
    supervisor::Supervisor,
};

/// The configuration of sharding. Replicas with the same name and namespace split the keys of their
/// [sharded](crate::Controller::sharded) controllers.
///
/// A replica that cannot renew its Lease stops its reconciles before another replica may take its keys, and joins again when the API
/// server answers. A graceful stop gives the keys up as soon as the last reconcile has ended.
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
    /// Creates a configuration for the group `name`, which begins the names of the members' Leases: at most 46 lower-case letters, digits
    /// and `-`.
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

    /// Sets the name of this replica that its Lease shows as the holder. Default: the host name and a random ID.
    pub fn identity(mut self, identity: impl Into<String>) -> Self {
        self.identity = Some(identity.into());
        self
    }

    /// Sets the times: how long a dead replica's keys wait for another owner, how long a replica works on that cannot renew its Lease,
    /// and how often Leases are renewed and listed. Default: 15, 10 and 2 seconds.
    pub fn timing(mut self, timing: Timing) -> Self {
        self.timing = timing;
        self
    }

    /// Sets how long reconciles of keys that move to another replica may take before they are cancelled. Default: 30 s.
    pub fn hand_over_timeout(mut self, limit: Duration) -> Self {
        self.hand_over_timeout = limit;
        self
    }

    /// The rights to keep the Leases of the group.
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
        self.timing.check().or_else(bad)
    }

    /// Creates the gate of this replica. It lets nothing through until [`start`](Self::start).
    pub(crate) fn gate(&self, env: &Env, metrics: &Metrics) -> Gate {
        let terms = Terms { timing: self.timing, hand_over_timeout: self.hand_over_timeout };
        let gate = Gate::new(Membership::new(&self.name, terms, env.random()));
        let collector = ShardingMetrics(gate.clone());
        metrics.register(|registry| registry.register_collector(Box::new(collector)));
        gate
    }

    /// Joins the group when so many controllers are ready.
    pub(crate) fn start(
        self,
        gate: Gate,
        controllers: usize,
        client: &Client,
        env: &Env,
        supervisor: &Supervisor,
    ) -> Sharded {
        let namespace = self.namespace.unwrap_or_else(|| client.default_namespace().to_owned());
        let identity = self.identity.unwrap_or_else(|| format!("{}_{}", host_name(), env.uuid()));
        tracing::info!(group = %format_args!("{namespace}/{}", self.name), identity, "sharding");
        let leases =
            MemberLeases::new(client.clone(), namespace, self.name, identity, self.timing.lease_duration);
        Keeper { gate, leases, env: env.clone(), controllers }.start(supervisor)
    }
}
