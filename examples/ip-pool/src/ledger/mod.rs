//! The free addresses of each pool: computed from the `IPAddress` objects that the watch has reported.
//!
//! The ledger proposes and counts, and never decides: a proposed address may be taken, and the server then
//! refuses the creation.

mod free;
mod waiting;

use std::{
    collections::{BTreeSet, HashMap, HashSet},
    net::IpAddr,
    sync::Arc,
};

use futures::{Stream, stream};
use parking_lot::Mutex;
use tokio::sync::mpsc::{self, UnboundedReceiver, UnboundedSender};
use windlass::prelude::*;

use self::{free::FreeRanges, waiting::Waiting};
use crate::ranges::{Number, Ranges, address, number};

/// The largest number of free addresses that a search looks at. Skipped addresses are being taken by others.
const SEARCHED: usize = 4096;

/// The number of waiting claims that are tried when an address becomes free. One claim takes the address;
/// other claims may be gone, or may belong to another replica by now.
const WOKEN: usize = 4;

/// The ledger of a replica. Cheap to clone.
#[derive(Clone)]
pub(crate) struct Ledger(Arc<Shared>);

struct Shared {
    state: Mutex<State>,
    changed: Announcements,
    woken: Announcements,
}

/// Keys for a controller.
struct Announcements {
    sender: UnboundedSender<ObjectKey>,
    /// The receiver, until the controller takes the receiver.
    receiver: Mutex<Option<UnboundedReceiver<ObjectKey>>>,
}

impl Announcements {
    fn new() -> Self {
        let (sender, receiver) = mpsc::unbounded_channel();
        Self { sender, receiver: Mutex::new(Some(receiver)) }
    }

    fn send(&self, key: ObjectKey) {
        // The receiver lives as long as the controller.
        let _ = self.sender.send(key);
    }

    /// Returns the stream of keys; the second call returns an empty stream.
    fn stream(&self) -> impl Stream<Item = ObjectKey> + use<> {
        let receiver = self.receiver.lock().take();
        stream::unfold(receiver, |receiver| async move {
            let mut receiver = receiver?;
            let key = receiver.recv().await?;
            Some((key, Some(receiver)))
        })
    }
}

/// The number of addresses of a pool.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Counts {
    /// In the ranges of the pool.
    pub(crate) total: u128,
    /// Addresses taken from the pool, including addresses outside of the ranges.
    pub(crate) allocated: u128,
    /// In the ranges and not taken.
    pub(crate) available: u128,
    /// Addresses taken from the pool that are outside of the pool's ranges.
    pub(crate) outside: u128,
}

impl Ledger {
    pub(crate) fn new() -> Self {
        let (changed, woken) = (Announcements::new(), Announcements::new());
        Self(Arc::new(Shared { state: Mutex::default(), changed, woken }))
    }

    /// Returns the keys of pools with changed counts.
    pub(crate) fn changed_pools(&self) -> impl Stream<Item = ObjectKey> + use<> {
        self.0.changed.stream()
    }

    /// Returns the keys of claims that found a pool exhausted, and may find an address now.
    pub(crate) fn woken_claims(&self) -> impl Stream<Item = ObjectKey> + use<> {
        self.0.woken.stream()
    }

    /// Records that an address is taken.
    pub(crate) fn taken(&self, address: IpAddr, pool: &str) {
        let mut changed = self.0.state.lock().take(number(address), pool);
        // Also if this replica has not counted the pool yet.
        changed.insert(pool.into());
        changed.iter().for_each(|pool| self.announce(pool));
    }

    /// Records that an address is free again.
    pub(crate) fn freed(&self, address: IpAddr) {
        let (changed, woken) = {
            let mut state = self.0.state.lock();
            (state.free(number(address)), state.claims_for(number(address)))
        };
        woken.into_iter().for_each(|claim| self.0.woken.send(claim));
        changed.iter().for_each(|pool| self.announce(pool));
    }

    fn announce(&self, pool: &str) {
        self.0.changed.send(ObjectKey::cluster(pool));
    }

    /// Records that a claim waits for no pool.
    pub(crate) fn forget(&self, claim: &ObjectKey) {
        self.0.state.lock().pools.values_mut().for_each(|known| known.waiting.remove(claim));
    }

    /// Wakes the claim that waits longest for a pool, if the pool has free addresses.
    ///
    /// Called when a claim has got an address: if several addresses became free, the next address is for the
    /// next claim.
    pub(crate) fn wake_next(&self, pool: &str) {
        let mut state = self.0.state.lock();
        let next = state.pools.get_mut(pool).filter(|known| known.free.count() > 0);
        let woken = next.and_then(|known| known.waiting.pop());
        drop(state);
        woken.into_iter().for_each(|claim| self.0.woken.send(claim));
    }

    /// Returns an address of a pool that the ledger believes free, and that no other caller is about to take.
    /// The search begins at `random`: replicas therefore seldom propose the same address. `is_taken` reports
    /// addresses that the ledger does not know yet.
    ///
    /// If there is none, `claim` waits for an address to become free.
    pub(crate) fn propose(
        &self,
        claim: &ObjectKey,
        pool: &str,
        ranges: &Ranges,
        random: u128,
        is_taken: impl Fn(IpAddr) -> bool,
    ) -> Option<Proposal> {
        let mut state = self.0.state.lock();
        let state = &mut *state;
        let known = state.pools.entry(pool.to_owned()).or_default();
        known.follow(ranges, pool, &state.taken);
        let start = random.checked_rem(ranges.count()).and_then(|index| ranges.nth(index));
        let free = start.into_iter().flat_map(|start| known.free.from(start)).take(SEARCHED);
        let chosen =
            free.filter(|number| !state.proposed.contains(number)).find(|number| !is_taken(address(*number)));
        let Some(chosen) = chosen else {
            known.waiting.add(claim);
            return None;
        };
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

/// An address that a caller is about to take. Dropping the proposal ends the proposal: by then the caller has
/// created the object, or has failed.
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
    /// The taken addresses, with the pool of each address.
    taken: HashMap<Number, Arc<str>>,
    pools: HashMap<String, Pool>,
    proposed: HashSet<Number>,
}

/// The state of a pool.
#[derive(Default)]
struct Pool {
    /// The ranges that were counted, if any.
    ranges: Option<Ranges>,
    free: FreeRanges,
    allocated: u128,
    outside: u128,
    waiting: Waiting,
}

impl Pool {
    /// Counts again if the ranges of the pool changed. No other operation looks at all addresses.
    fn follow(&mut self, ranges: &Ranges, name: &str, taken: &HashMap<Number, Arc<str>>) {
        if self.ranges.as_ref() == Some(ranges) {
            return;
        }
        let waiting = std::mem::take(&mut self.waiting);
        let (free, ranges) = (FreeRanges::of(ranges), Some(ranges.clone()));
        *self = Self { ranges, free, allocated: 0, outside: 0, waiting };
        for (number, pool) in taken {
            self.take(*number, **pool == *name);
        }
    }

    fn contains(&self, number: Number) -> bool {
        self.ranges.as_ref().is_some_and(|ranges| ranges.contains(number))
    }

    /// Counts a taken address, and returns whether a count changed. `own` is true for an address that was
    /// taken from this pool, not from another pool with the same addresses.
    fn take(&mut self, number: Number, own: bool) -> bool {
        let was_free = self.free.take(number);
        if own {
            self.allocated += 1;
            self.outside += u128::from(!self.contains(number));
        }
        own || was_free
    }

    /// Counts an address that is free again, and returns whether a count changed.
    fn free(&mut self, number: Number, own: bool) -> bool {
        let is_inside = self.contains(number);
        if is_inside {
            self.free.put(number);
        }
        if own {
            self.allocated -= 1;
            self.outside -= u128::from(!is_inside);
        }
        own || is_inside
    }
}

impl State {
    /// Returns the pools with changed counts: pools that overlap have the same addresses.
    fn take(&mut self, number: Number, pool: &str) -> BTreeSet<Arc<str>> {
        if self.taken.get(&number).is_some_and(|known| **known == *pool) {
            return BTreeSet::new();
        }
        let mut changed = self.free(number);
        self.taken.insert(number, pool.into());
        let counted = self
            .pools
            .iter_mut()
            .filter_map(|(name, known)| known.take(number, name == pool).then_some(name));
        changed.extend(counted.map(|name| name.as_str().into()));
        changed
    }

    /// Returns the pools with changed counts, and the pool of the freed address.
    fn free(&mut self, number: Number) -> BTreeSet<Arc<str>> {
        let Some(pool) = self.taken.remove(&number) else { return BTreeSet::new() };
        let counted = self
            .pools
            .iter_mut()
            .filter_map(|(name, known)| known.free(number, **name == *pool).then_some(name));
        let mut changed: BTreeSet<Arc<str>> = counted.map(|name| name.as_str().into()).collect();
        changed.insert(pool);
        changed
    }

    /// Takes claims that wait for a free address, from each pool with the address.
    fn claims_for(&mut self, number: Number) -> Vec<ObjectKey> {
        let pools = self.pools.values_mut().filter(|known| known.contains(number));
        pools.flat_map(|known| (0..WOKEN).map_while(|_| known.waiting.pop())).collect()
    }
}

#[cfg(test)]
mod tests {
    use futures::{FutureExt, StreamExt};

    use super::*;
    use crate::IPPoolSpec;

    fn ranges(cidrs: &[&str]) -> Ranges {
        let cidrs = cidrs.iter().map(ToString::to_string).collect();
        Ranges::of(&IPPoolSpec { cidrs, exclusions: Vec::new() }).expect("valid")
    }

    fn claim(name: &str) -> ObjectKey {
        ObjectKey::namespaced("default", name)
    }

    fn ip(text: &str) -> IpAddr {
        text.parse().expect("an address")
    }

    #[test]
    fn proposals_are_distinct_until_they_end() {
        let (ledger, ranges) = (Ledger::new(), ranges(&["10.0.0.0/30"]));
        let propose = || ledger.propose(&claim("one"), "a", &ranges, 1, |_| false);
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
        let other = ledger.propose(&claim("one"), "a", &ranges, 0, |_| false);
        assert_eq!(other.map(|proposal| proposal.address), Some(ip("10.0.0.1")));
        assert!(
            ledger.propose(&claim("one"), "a", &ranges, 0, |address| address == ip("10.0.0.1")).is_none()
        );
        ledger.freed(ip("10.0.0.0"));
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
        ledger.freed(ip("10.0.0.200"));
        ledger.freed(ip("10.0.0.200"));
        assert_eq!(counts(&narrow), Counts { total: 128, allocated: 1, available: 126, outside: 0 });
        assert_eq!(counts(&wide), Counts { total: 256, allocated: 1, available: 254, outside: 0 });
    }

    #[test]
    fn every_pool_that_has_the_address_is_told() {
        let ledger = Ledger::new();
        let mut changed = Box::pin(ledger.changed_pools());
        let mut told = || {
            let keys = std::iter::from_fn(|| changed.as_mut().next().now_or_never().flatten());
            keys.map(|key| key.name().to_owned()).collect::<Vec<_>>().join(" ")
        };
        for (pool, cidr) in [("a", "10.0.0.0/30"), ("b", "10.0.0.0/31"), ("c", "10.0.0.2/31")] {
            ledger.counts(pool, &ranges(&[cidr]));
        }
        ledger.taken(ip("10.0.0.1"), "a");
        assert_eq!(told(), "a b");
        ledger.taken(ip("10.0.0.1"), "b");
        assert_eq!(told(), "a b", "a person changed the pool of the address");
        ledger.freed(ip("10.0.0.1"));
        assert_eq!(told(), "a b");
        ledger.taken(ip("10.0.0.3"), "d");
        assert_eq!(told(), "a c d", "a pool that is not known yet");
    }

    #[test]
    fn claims_that_are_gone_are_not_woken_in_place_of_others() {
        let (ledger, ranges) = (Ledger::new(), ranges(&["10.0.0.0/32"]));
        let mut woken = Box::pin(ledger.woken_claims());
        ledger.taken(ip("10.0.0.0"), "a");
        for name in ["0", "1", "2", "3", "4"] {
            assert!(ledger.propose(&claim(name), "a", &ranges, 0, |_| false).is_none());
        }
        ["0", "1", "2", "3"].iter().for_each(|name| ledger.forget(&claim(name)));
        ledger.freed(ip("10.0.0.0"));
        let next = woken.as_mut().next().now_or_never().flatten();
        assert_eq!(next, Some(claim("4")));
    }

    #[test]
    fn claims_wait_in_order_and_each_free_address_wakes_some() {
        let (ledger, ranges) = (Ledger::new(), ranges(&["10.0.0.0/31"]));
        let mut woken = Box::pin(ledger.woken_claims());
        let mut next = || {
            let name = woken.as_mut().next().now_or_never().flatten();
            name.map(|key| key.name().to_owned()).unwrap_or_default()
        };
        let fails = |name: &str| ledger.propose(&claim(name), "a", &ranges, 0, |_| false).is_none();
        ledger.taken(ip("10.0.0.0"), "a");
        ledger.taken(ip("10.0.0.1"), "a");
        assert!((0..7).all(|number| fails(&number.to_string())) && fails("0"));
        ledger.forget(&claim("1"));
        ledger.wake_next("a");
        assert_eq!(next(), "", "no address is free");
        ledger.freed(ip("10.0.0.1"));
        assert_eq!([next(), next(), next(), next(), next()], ["0", "2", "3", "4", ""]);
        ledger.wake_next("a");
        assert_eq!(next(), "5");
        ledger.freed(ip("10.0.0.0"));
        assert_eq!([next(), next()], ["6", ""]);
    }
}
