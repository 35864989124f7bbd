//! The membership of a replica as a state machine, without a clock, network or task. The module's
//! documentation has the protocol.

use std::{
    collections::{BTreeMap, BTreeSet},
    sync::Arc,
    time::Duration,
};

use super::{
    owned_keys::{OwnedKeys, Ownership},
    peer::Peer,
    rendezvous::Member,
};
use crate::leader_election::Timing;

/// A member's Lease, from a list.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct MemberLease {
    /// The name of the Lease: the member's name. A name is never used again.
    pub(crate) name: String,
    pub(crate) version: String,
    /// True if the member has stopped for good.
    pub(crate) released: bool,
    pub(crate) lease_duration: Duration,
    /// The members to which the member yields keys.
    pub(crate) yields_to: BTreeSet<String>,
}

/// The next action of a replica. Times are counted from a fixed moment by the monotonic clock.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum MembershipStep {
    /// Wait until this time has passed, or until a reconcile ends.
    WaitUntil(Duration),
    /// Create or renew the Lease with this name and contents, and report the result to [`Membership::wrote`].
    Write { name: String, released: bool, yields_to: BTreeSet<String> },
    /// List the Leases of the group, at the server's latest state, and report the result to [`Membership::listed`].
    List,
    /// Delete a Lease with this version. The result does not matter.
    Delete { name: String, version: String },
    /// The replica has left the group.
    Left,
}

/// The result of writing the own Lease.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum WriteResult {
    Written,
    /// The write failed, or may have failed.
    Failed,
    /// The Lease existed, and is gone.
    Gone,
}

/// The times of a membership.
#[derive(Clone, Copy, Debug)]
pub(crate) struct MembershipTiming {
    pub(crate) lease: Timing,
    /// The time after which reconciles of keys that belong to another replica are cancelled.
    pub(crate) hand_over_timeout: Duration,
}

/// One replica.
#[derive(Debug)]
pub(crate) struct Membership {
    group: String,
    timing: MembershipTiming,
    phase: Phase,
    /// This replica under the present name.
    own: Member,
    /// The earlier names. This replica no longer acts under these names.
    former: BTreeSet<String>,
    peers: BTreeMap<String, Peer>,
    /// The version at which each Lease was last seen, and the time of the first sight of that version.
    observations: BTreeMap<String, (String, Duration)>,
    /// Leases to delete.
    expired: Vec<(String, String)>,
    /// The hashes of the keys in work, with the number of reconciles.
    in_flight: BTreeMap<u64, usize>,
    /// The members to which this replica yields in the replica's own Lease.
    published: BTreeSet<String>,
    /// When the write was sent that last renewed the Lease.
    renewed: Duration,
    write_sent: Duration,
    /// The contents of the last write.
    writing: BTreeSet<String>,
    releasing: bool,
    next_write: Duration,
    /// The time before which no write happens, even with changes to publish: the last write failed.
    write_pause: Duration,
    next_list: Duration,
    owned_keys: Arc<OwnedKeys>,
    hand_overs: u64,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Phase {
    /// The Lease may not exist yet.
    Joining,
    /// The Lease exists. The other members are not known yet.
    Surveying,
    Member,
    /// The Lease could not be renewed. Reconciles in flight are being cancelled.
    Expired,
    Leaving,
    Left,
}

impl Membership {
    /// Creates a replica that will join. `random` makes the name unique.
    pub(crate) fn new(group: &str, timing: MembershipTiming, random: u64) -> Self {
        Self {
            group: group.to_owned(),
            timing,
            phase: Phase::Joining,
            own: Member::new(&member_name(group, random)),
            former: BTreeSet::new(),
            peers: BTreeMap::new(),
            observations: BTreeMap::new(),
            expired: Vec::new(),
            in_flight: BTreeMap::new(),
            published: BTreeSet::new(),
            renewed: Duration::ZERO,
            write_sent: Duration::ZERO,
            writing: BTreeSet::new(),
            releasing: false,
            next_write: Duration::ZERO,
            write_pause: Duration::ZERO,
            next_list: Duration::ZERO,
            owned_keys: Arc::default(),
            hand_overs: 0,
        }
    }

    pub(crate) fn name(&self) -> &str {
        self.own.name()
    }

    /// Returns the keys that this replica may work on until [`valid_until`](Self::valid_until).
    pub(crate) fn owned_keys(&self) -> &Arc<OwnedKeys> {
        &self.owned_keys
    }

    /// Returns the time at which this replica must stop all work unless the Lease is renewed before; `None`
    /// for a replica that is not a member.
    pub(crate) fn valid_until(&self) -> Option<Duration> {
        matches!(self.phase, Phase::Surveying | Phase::Member | Phase::Leaving)
            .then(|| self.renewed + self.timing.lease.renew_deadline)
    }

    /// Returns the number of times that this replica gave keys to another replica.
    pub(crate) fn hand_overs(&self) -> u64 {
        self.hand_overs
    }

    /// Returns the time that a request may take.
    pub(crate) fn request_timeout(&self, now: Duration) -> Duration {
        let usual = self.timing.lease.renew_deadline / 4;
        self.valid_until().map_or(usual, |until| usual.min(until.saturating_sub(now)))
    }

    /// Begins to work on a key if this replica may. Each `Own` is followed by [`end`](Self::end).
    pub(crate) fn begin(&mut self, now: Duration, key: u64) -> Ownership {
        let valid = self.phase == Phase::Member && self.valid_until().is_some_and(|until| now < until);
        let ownership = if valid { self.owned_keys.ownership(key) } else { Ownership::Foreign };
        if ownership == Ownership::Own {
            *self.in_flight.entry(key).or_insert(0) += 1;
        }
        ownership
    }

    /// Ends the work on a key. Returns whether another replica, or this replica, waits for the end.
    pub(crate) fn end(&mut self, key: u64) -> bool {
        if let Some(count) = self.in_flight.get_mut(&key) {
            *count -= 1;
            if *count == 0 {
                self.in_flight.remove(&key);
            }
        }
        self.phase != Phase::Member || self.owned_keys.ownership(key) != Ownership::Own
    }

    /// Returns whether the work on a key that has begun may go on.
    pub(crate) fn may_continue(&self, now: Duration, key: u64) -> bool {
        let valid = self.valid_until().is_some_and(|until| now < until);
        let owner_waits = |peer: &Peer| {
            let due = peer.known_since.saturating_add(self.timing.hand_over_timeout);
            peer.member.outranks(&self.own, key) && now >= due
        };
        valid && !self.peers.values().any(owner_waits)
    }

    /// Leaves the group when no reconcile is in flight.
    pub(crate) fn leave(&mut self) {
        self.phase = match self.phase {
            Phase::Surveying | Phase::Member => Phase::Leaving,
            Phase::Leaving => Phase::Leaving,
            // A Lease that may have been created expires; a lapsed Lease expires anyway.
            Phase::Joining | Phase::Expired | Phase::Left => Phase::Left,
        };
        self.owned_keys = Arc::default();
        self.next_write = Duration::ZERO;
    }

    /// Returns the next action. `random` makes the next name unique.
    pub(crate) fn next(&mut self, now: Duration, random: u64) -> MembershipStep {
        if self.valid_until().is_some_and(|until| now >= until) {
            self.expire();
        }
        if self.phase == Phase::Expired && self.in_flight.is_empty() {
            self.rename(random);
        }
        match self.phase {
            Phase::Left => MembershipStep::Left,
            Phase::Expired => MembershipStep::WaitUntil(now + self.timing.lease.retry_period),
            Phase::Leaving if self.in_flight.is_empty() && now >= self.write_pause => self.write(now),
            Phase::Joining if now >= self.write_pause => self.write(now),
            Phase::Joining => MembershipStep::WaitUntil(self.write_pause),
            Phase::Leaving | Phase::Surveying | Phase::Member => self.maintain(now),
        }
    }

    /// Returns the next action of a replica with a Lease.
    fn maintain(&mut self, now: Duration) -> MembershipStep {
        let publishes = self.phase == Phase::Member && !self.yields_to().is_subset(&self.published);
        let write_at = if publishes { self.write_pause } else { self.next_write.max(self.write_pause) };
        if now >= write_at {
            return self.write(now);
        }
        if self.phase == Phase::Leaving {
            return MembershipStep::WaitUntil(write_at);
        }
        if let Some((name, version)) = self.expired.pop() {
            self.next_list = now;
            return MembershipStep::Delete { name, version };
        }
        if now >= self.next_list {
            return MembershipStep::List;
        }
        MembershipStep::WaitUntil(write_at.min(self.next_list))
    }

    fn write(&mut self, now: Duration) -> MembershipStep {
        self.releasing = self.phase == Phase::Leaving && self.in_flight.is_empty();
        self.write_sent = now;
        self.writing = self.yields_to();
        let name = self.own.name().to_owned();
        MembershipStep::Write { name, released: self.releasing, yields_to: self.writing.clone() }
    }

    /// Returns the members to which this replica certainly yields: this replica works on none of these
    /// members' keys, and begins no such work.
    fn yields_to(&self) -> BTreeSet<String> {
        let yields = |peer: &&Peer| {
            let name = peer.member.name();
            self.published.contains(name)
                || !self.in_flight.keys().any(|key| peer.member.outranks(&self.own, *key))
        };
        self.peers.values().filter(yields).map(|peer| peer.member.name().to_owned()).collect()
    }

    /// Reports the result of [`MembershipStep::Write`].
    pub(crate) fn wrote(&mut self, now: Duration, result: WriteResult) {
        let Timing { renew_deadline, retry_period, .. } = self.timing.lease;
        // A reply after the deadline has no value.
        let in_time = now < self.write_sent + renew_deadline;
        match result {
            WriteResult::Written if in_time => {
                if self.valid_until().is_some_and(|until| now >= until) {
                    // Keys were refused since then. The owned keys of the next list differ from no keys, and
                    // the keys are queued again.
                    self.owned_keys = Arc::default();
                    self.next_list = now;
                }
                self.renewed = self.write_sent;
                self.next_write = now + retry_period;
                self.write_pause = now;
                let published = std::mem::take(&mut self.writing);
                let told = |name: &&String| self.peers.get(*name).is_some_and(Peer::came_later);
                self.hand_overs += published.difference(&self.published).filter(told).count() as u64;
                self.published = published;
                match self.phase {
                    Phase::Joining => {
                        self.phase = Phase::Surveying;
                        self.next_list = now;
                    }
                    Phase::Leaving if self.releasing => self.phase = Phase::Left,
                    _ => {}
                }
            }
            WriteResult::Gone => self.expire(),
            WriteResult::Written | WriteResult::Failed => self.write_pause = now + retry_period / 4,
        }
    }

    /// Reports the result of [`MembershipStep::List`]; `None` for a failed list.
    pub(crate) fn listed(&mut self, now: Duration, leases: Option<&[MemberLease]>) {
        let period = self.timing.lease.retry_period;
        self.next_list = now + period;
        let Some(leases) = leases else { return };
        if !matches!(self.phase, Phase::Surveying | Phase::Member) {
            return;
        }
        if !leases.iter().any(|lease| lease.name == self.own.name()) {
            self.expire();
            return;
        }
        self.observe(now, leases);
        self.phase = Phase::Member;
        self.update_owned_keys();
        let settled = self.peers.values().all(|peer| peer.has_settled(&self.published));
        if !settled {
            self.next_list = now + period / 10;
        }
    }

    fn observe(&mut self, now: Duration, leases: &[MemberLease]) {
        let own = self.own.name();
        let leases: BTreeMap<_, _> = leases
            .iter()
            .filter(|lease| lease.name != own)
            .map(|lease| (lease.name.as_str(), lease))
            .collect();
        self.observations
            .retain(|name, _| leases.contains_key(name.as_str()) || self.peers.contains_key(name.as_str()));
        self.expired.clear();
        for (name, lease) in &leases {
            let since = self.first_observed(now, lease);
            if now >= since + lease.lease_duration.max(self.timing.lease.lease_duration) {
                self.expired.push((lease.name.clone(), lease.version.clone()));
            }
            if lease.released || self.former.contains(*name) {
                self.peers.remove(*name);
                continue;
            }
            let earlier = self.phase == Phase::Surveying;
            let peer = self.peers.entry((*name).to_owned()).or_insert_with(|| Peer::new(name, now, earlier));
            peer.observe(lease, since, self.own.name());
        }
        // A missing Lease was deleted after the expiry, or by hand: wait as long as for a Lease that expires.
        self.peers.retain(|name, peer| {
            peer.present = leases.contains_key(name.as_str());
            peer.present || now < peer.since + peer.lease_duration
        });
        // Members that are gone need not be named any more, because names never come back.
        self.published.retain(|name| self.peers.contains_key(name));
    }

    /// Returns the time at which the present version of a Lease was first seen.
    fn first_observed(&mut self, now: Duration, lease: &MemberLease) -> Duration {
        let observation =
            self.observations.entry(lease.name.clone()).or_insert_with(|| (lease.version.clone(), now));
        if observation.0 != lease.version {
            *observation = (lease.version.clone(), now);
        }
        observation.1
    }

    fn expire(&mut self) {
        self.phase = if self.phase == Phase::Leaving { Phase::Left } else { Phase::Expired };
        self.owned_keys = Arc::default();
    }

    /// Joins again, as another member: the knowledge of other members about the former member must not count
    /// for the new member.
    fn rename(&mut self, random: u64) {
        self.former.insert(self.own.name().to_owned());
        self.own = Member::new(&member_name(&self.group, random));
        self.peers.clear();
        self.expired.clear();
        self.published.clear();
        self.phase = Phase::Joining;
    }

    fn update_owned_keys(&mut self) {
        let present = |name: &str| self.peers.get(name).is_some_and(|peer| peer.present);
        let peers = self.peers.values().map(|peer| peer.limits(&present)).collect();
        let owned_keys = OwnedKeys::new(self.own.clone(), peers);
        if *self.owned_keys != owned_keys {
            self.owned_keys = Arc::new(owned_keys);
        }
    }
}

fn member_name(group: &str, random: u64) -> String {
    format!("{group}-{random:016x}")
}
