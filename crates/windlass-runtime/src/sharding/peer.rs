//! Another replica, as this one sees it.

use std::{collections::BTreeSet, time::Duration};

use super::{membership::MemberLease, rendezvous::Member, rights::PeerRights};

/// Another replica that may be at work.
#[derive(Debug)]
pub(super) struct Peer {
    pub(super) member: Member,
    /// When this replica first saw it.
    pub(super) known_since: Duration,
    /// Whether it may have begun to work without knowing this replica: its Lease was there when this replica joined. A peer that came
    /// later has seen this replica before it began.
    earlier: bool,
    /// The members to which it yields, and which it knows.
    yields_to: Vec<Member>,
    yields_to_this: bool,
    /// When its Lease was first seen at its present version.
    pub(super) since: Duration,
    pub(super) lease_duration: Duration,
    /// Whether the last list has its Lease.
    pub(super) present: bool,
}

impl Peer {
    pub(super) fn new(name: &str, now: Duration, earlier: bool) -> Self {
        Self {
            member: Member::new(name),
            known_since: now,
            earlier,
            yields_to: Vec::new(),
            yields_to_this: false,
            since: now,
            lease_duration: Duration::ZERO,
            present: true,
        }
    }

    pub(super) fn observe(&mut self, lease: &MemberLease, since: Duration, own: &str) {
        self.since = since;
        self.lease_duration = lease.lease_duration;
        self.yields_to_this |= lease.yields_to.contains(own);
        self.yields_to = lease.yields_to.iter().map(|name| Member::new(name)).collect();
    }

    /// Whether it joined later than this replica.
    pub(super) fn came_later(&self) -> bool {
        !self.earlier
    }

    /// Whether neither replica waits for the other.
    pub(super) fn has_settled(&self, published: &BTreeSet<String>) -> bool {
        self.present && published.contains(self.member.name()) && (!self.earlier || self.yields_to_this)
    }

    /// Returns how this peer limits this replica. A member that is not `present` may have been given up by the peer.
    pub(super) fn rights(&self, present: &impl Fn(&str) -> bool) -> PeerRights {
        let may_not_know_this = self.earlier && !self.yields_to_this;
        let yields_only_to = may_not_know_this.then(|| {
            let known = self.yields_to.iter().filter(|member| present(member.name()));
            known.cloned().collect()
        });
        PeerRights { member: self.member.clone(), yields_only_to }
    }
}
