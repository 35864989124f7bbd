//! Claims that wait for an address.

use std::collections::{BTreeMap, HashMap};

use windlass::prelude::*;

/// The claims that wait for a pool, in the order in which the claims found the pool exhausted.
#[derive(Debug, Default)]
pub(super) struct Waiting {
    next: u64,
    by_place: BTreeMap<u64, ObjectKey>,
    places: HashMap<ObjectKey, u64>,
}

impl Waiting {
    /// Adds a claim at the end, unless the claim already waits.
    pub(super) fn add(&mut self, claim: &ObjectKey) {
        if !self.places.contains_key(claim) {
            self.places.insert(claim.clone(), self.next);
            self.by_place.insert(self.next, claim.clone());
            self.next += 1;
        }
    }

    pub(super) fn remove(&mut self, claim: &ObjectKey) {
        if let Some(place) = self.places.remove(claim) {
            self.by_place.remove(&place);
        }
    }

    /// Removes the claim that waits longest.
    pub(super) fn pop(&mut self) -> Option<ObjectKey> {
        let (_, claim) = self.by_place.pop_first()?;
        self.places.remove(&claim);
        Some(claim)
    }
}
