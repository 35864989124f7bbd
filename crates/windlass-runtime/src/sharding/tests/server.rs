//! The Leases of a group on a server in memory.

use std::{
    collections::{BTreeMap, BTreeSet},
    time::Duration,
};

use super::super::membership::{MemberLease, MembershipStep, WriteResult};

#[derive(Debug, Default)]
pub(super) struct Server {
    revision: u64,
    leases: BTreeMap<String, MemberLease>,
}

/// A replica's knowledge of the replica's own Lease: the version that the next write replaces.
#[derive(Clone, Debug, Default)]
pub(super) struct OwnLease {
    name: String,
    version: Option<String>,
}

#[derive(Clone, Debug)]
pub(super) enum Reply {
    /// The new version after a successful write; otherwise the present version.
    Written(WriteResult, Option<String>),
    Listed(Vec<MemberLease>),
    Deleted,
}

impl OwnLease {
    /// Records the content of a reply.
    pub(super) fn learn(&mut self, name: &str, reply: &Reply) {
        if let Reply::Written(_, version) = reply {
            *self = Self { name: name.to_owned(), version: version.clone() };
        }
    }

    /// Returns the version that a write under this name replaces; `None` for a creation.
    pub(super) fn version(&self, name: &str) -> Option<String> {
        self.version.clone().filter(|_| self.name == name)
    }
}

impl Server {
    /// Carries out a request. `replaces` is the version that a write was sent for.
    pub(super) fn commit(&mut self, step: &MembershipStep, replaces: Option<&str>) -> Reply {
        match step {
            MembershipStep::Write { name, released, yields_to } => {
                self.write(name, *released, yields_to, replaces)
            }
            MembershipStep::List => Reply::Listed(self.leases.values().cloned().collect()),
            MembershipStep::Delete { name, version } => {
                if self.leases.get(name).is_some_and(|lease| lease.version == *version) {
                    self.leases.remove(name);
                }
                Reply::Deleted
            }
            MembershipStep::WaitUntil(_) | MembershipStep::Left => Reply::Deleted,
        }
    }

    fn write(
        &mut self,
        name: &str,
        released: bool,
        yields_to: &BTreeSet<String>,
        replaces: Option<&str>,
    ) -> Reply {
        let there = self.leases.get(name).map(|lease| lease.version.clone());
        if there.as_deref() != replaces {
            let result = if there.is_none() { WriteResult::Gone } else { WriteResult::Failed };
            return Reply::Written(result, there);
        }
        self.revision += 1;
        let version = self.revision.to_string();
        let lease = MemberLease {
            name: name.to_owned(),
            version: version.clone(),
            released,
            lease_duration: Duration::from_secs(15),
            yields_to: yields_to.clone(),
        };
        self.leases.insert(name.to_owned(), lease);
        Reply::Written(WriteResult::Written, Some(version))
    }

    /// Deletes a Lease by hand.
    pub(super) fn delete(&mut self, name: &str) {
        self.leases.remove(name);
    }

    pub(super) fn describe(&self) -> String {
        let one = |lease: &MemberLease| {
            let yields: Vec<&str> = lease.yields_to.iter().map(|name| short(name)).collect();
            let state = if lease.released { " released" } else { "" };
            format!("{}{state}→[{}]", short(&lease.name), yields.join(","))
        };
        self.leases.values().map(one).collect::<Vec<_>>().join(" ")
    }
}

/// The last letter of a member's name.
pub(super) fn short(name: &str) -> &str {
    &name[name.len() - 1..]
}
