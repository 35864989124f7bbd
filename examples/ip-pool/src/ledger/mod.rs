//! What is free in each pool: a sum of the `IPAddress` objects that the watch has reported.
//!
//! The ledger proposes and counts, and never decides: an address that it believes free may be taken, and the server says so.

mod free;

use std::{
    collections::{HashMap, HashSet},
    net::IpAddr,
    sync::Arc,
};

use futures::{Stream, stream};
use parking_lot::Mutex;
use tokio::sync::mpsc::{self, UnboundedReceiver, UnboundedSender};
use windlass::prelude::*;

use self::free::FreeRanges;
use crate::ranges::{Number, Ranges, address, number};

/// The most free addresses that one search looks at. Those that it skips are being taken by others.
const SEARCHED: usize = 4096;

/// The ledger of a replica. Cheap to clone.
#[derive(Clone)]
pub(crate) struct Ledger(Arc<Shared>);

struct Shared {
    state: Mutex<State>,
    changed: UnboundedSender<ObjectKey>,
    /// Until the controller of pools takes it.
    changes: Mutex<Option<UnboundedReceiver<ObjectKey>>>,
}

/// The number of addresses of a pool.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Counts {
    /// In the ranges of the pool.
    pub(crate) total: u128,
    /// Taken from the pool, outside of its ranges too.
    pub(crate) allocated: u128,
    /// In the ranges and not taken.
    pub(crate) available: u128,
    /// Taken from the pool, and outside of its ranges.
    pub(crate) outside: u128,
}

impl Ledger {
    pub(crate) fn new() -> Self {
        let (changed, changes) = mpsc::unbounded_channel();
        Self(Arc::new(Shared { state: Mutex::default(), changed, changes: Mutex::new(Some(changes)) }))
    }

    /// The keys of pools whose counts changed. The second call returns an empty stream.
    pub(crate) fn changed_pools(&self) -> impl Stream<Item = ObjectKey> + use<> {
        let changes = self.0.changes.lock().take();
        stream::unfold(changes, |changes| async move {
            let mut changes = changes?;
            let key = changes.recv().await?;
            Some((key, Some(changes)))
        })
    }

    /// Records that an address is taken.
    pub(crate) fn taken(&self, address: IpAddr, pool: &str) {
        self.0.state.lock().take(number(address), pool);
        self.announce(pool);
    }

    /// Records that an address is free again.
    pub(crate) fn freed(&self, address: IpAddr, pool: &str) {
        self.0.state.lock().free(number(address));
        self.announce(pool);
    }

    fn announce(&self, pool: &str) {
        // The receiver lives as long as the controller of pools.
        let _ = self.0.changed.send(ObjectKey::cluster(pool));
    }

    /// Returns an address of a pool that is free, as far as is known, and that no other caller is about to take. `random` is where the
    /// search begins, so that replicas seldom propose the same address. `is_taken` tells what the ledger does not know yet.
    pub(crate) fn propose(
        &self,
        pool: &str,
        ranges: &Ranges,
        random: u128,
        is_taken: impl Fn(IpAddr) -> bool,
    ) -> Option<Proposal> {
        let mut state = self.0.state.lock();
        let state = &mut *state;
        let known = state.pools.entry(pool.to_owned()).or_default();
        known.follow(ranges, pool, &state.taken);
        let start = ranges.nth(random.checked_rem(ranges.count())?)?;
        let free = known.free.from(start).take(SEARCHED);
        let chosen = free
            .filter(|number| !state.proposed.contains(number))
            .find(|number| !is_taken(address(*number)))?;
        state.proposed.insert(chosen);
        Some(Proposal { address: address(chosen), ledger: self.clone() })
    }

    /// Returns the counts of a pool.
    pub(crate) fn counts(&self, pool: &str, ranges: &Ranges) -> Counts {
        let mut state = self.0.state.lock();
        let state = &mut *state;
        let known = state.pools.entry(pool.to_owned()).or_default();
        known.follow(ranges, pool, &state.taken);
        Counts {
            total: ranges.count(),
            allocated: known.allocated,
            available: known.free.count(),
            outside: known.outside,
        }
    }
}

/// An address that a caller is about to take. Dropping it ends the proposal: until then the caller has created the object, or has failed.
pub(crate) struct Proposal {
    pub(crate) address: IpAddr,
    ledger: Ledger,
}

impl Drop for Proposal {
    fn drop(&mut self) {
        self.ledger.0.state.lock().proposed.remove(&number(self.address));
    }
}

#[derive(Default)]
struct State {
    /// The taken addresses, each with its pool.
    taken: HashMap<Number, Arc<str>>,
    pools: HashMap<String, Pool>,
    proposed: HashSet<Number>,
}

/// What is known of one pool.
#[derive(Default)]
struct Pool {
    /// The ranges that were counted, if any.
    ranges: Option<Ranges>,
    free: FreeRanges,
    allocated: u128,
    outside: u128,
}

impl Pool {
    /// Counts again if the ranges of the pool changed: the one operation that looks at all addresses.
    fn follow(&mut self, ranges: &Ranges, name: &str, taken: &HashMap<Number, Arc<str>>) {
        if self.ranges.as_ref() == Some(ranges) {
            return;
        }
        *self = Self { ranges: Some(ranges.clone()), free: FreeRanges::of(ranges), allocated: 0, outside: 0 };
        for (number, pool) in taken {
            self.take(*number, **pool == *name);
        }
    }

    fn contains(&self, number: Number) -> bool {
        self.ranges.as_ref().is_some_and(|ranges| ranges.contains(number))
    }

    /// `own`: it was taken from this pool, and not from another one with the same addresses.
    fn take(&mut self, number: Number, own: bool) {
        self.free.take(number);
        if own {
            self.allocated += 1;
            self.outside += u128::from(!self.contains(number));
        }
    }

    fn free(&mut self, number: Number, own: bool) {
        let is_inside = self.contains(number);
        if is_inside {
            self.free.put(number);
        }
        if own {
            self.allocated -= 1;
            self.outside -= u128::from(!is_inside);
        }
    }
}

impl State {
    fn take(&mut self, number: Number, pool: &str) {
        match self.taken.get(&number) {
            Some(known) if **known == *pool => return,
            Some(_) => self.free(number),
            None => {}
        }
        self.taken.insert(number, pool.into());
        for (name, known) in &mut self.pools {
            known.take(number, name == pool);
        }
    }

    fn free(&mut self, number: Number) {
        let Some(pool) = self.taken.remove(&number) else { return };
        for (name, known) in &mut self.pools {
            known.free(number, **name == *pool);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::IPPoolSpec;

    fn ranges(cidrs: &[&str]) -> Ranges {
        let cidrs = cidrs.iter().map(ToString::to_string).collect();
        Ranges::of(&IPPoolSpec { cidrs, exclusions: Vec::new() }).expect("valid")
    }

    fn ip(text: &str) -> IpAddr {
        text.parse().expect("an address")
    }

    #[test]
    fn proposals_are_distinct_until_they_end() {
        let (ledger, ranges) = (Ledger::new(), ranges(&["10.0.0.0/30"]));
        let propose = || ledger.propose("a", &ranges, 1, |_| false);
        let mut all: Vec<Proposal> = (0..4).filter_map(|_| propose()).collect();
        let addresses: Vec<String> = all.iter().map(|proposal| proposal.address.to_string()).collect();
        assert_eq!(addresses, ["10.0.0.1", "10.0.0.2", "10.0.0.3", "10.0.0.0"]);
        assert!(propose().is_none());
        all.remove(2);
        assert_eq!(propose().map(|proposal| proposal.address), Some(ip("10.0.0.3")));
    }

    #[test]
    fn taken_addresses_are_not_proposed() {
        let (ledger, ranges) = (Ledger::new(), ranges(&["10.0.0.0/31"]));
        ledger.taken(ip("10.0.0.0"), "a");
        let other = ledger.propose("a", &ranges, 0, |_| false);
        assert_eq!(other.map(|proposal| proposal.address), Some(ip("10.0.0.1")));
        assert!(ledger.propose("a", &ranges, 0, |address| address == ip("10.0.0.1")).is_none());
        ledger.freed(ip("10.0.0.0"), "a");
        assert_eq!(ledger.counts("a", &ranges).available, 2);
    }

    #[test]
    fn counts_follow_addresses_and_ranges() {
        let ledger = Ledger::new();
        let (wide, narrow) = (ranges(&["10.0.0.0/24"]), ranges(&["10.0.0.0/25"]));
        for address in ["10.0.0.1", "10.0.0.200", "10.0.0.200"] {
            ledger.taken(ip(address), "a");
        }
        ledger.taken(ip("10.0.0.2"), "b");
        let counts = |ranges| ledger.counts("a", ranges);
        assert_eq!(counts(&wide), Counts { total: 256, allocated: 2, available: 253, outside: 0 });
        assert_eq!(counts(&narrow), Counts { total: 128, allocated: 2, available: 126, outside: 1 });
        ledger.freed(ip("10.0.0.200"), "a");
        ledger.freed(ip("10.0.0.200"), "a");
        assert_eq!(counts(&narrow), Counts { total: 128, allocated: 1, available: 126, outside: 0 });
        assert_eq!(counts(&wide), Counts { total: 256, allocated: 1, available: 254, outside: 0 });
    }
}
