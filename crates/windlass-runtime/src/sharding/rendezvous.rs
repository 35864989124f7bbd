//! Rendezvous hashing: the member with the greatest weight for a key owns the key.
//!
//! When a member leaves, only that member's keys move; when a member joins, only the keys that the member
//! wins move. Replicas of other versions and on other machines must get the same weights: the functions are
//! fixed here and never seeded.

use std::{cmp::Ordering, sync::Arc};

/// A member of a group, with the hash of the member's name.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Member {
    name: Arc<str>,
    seed: u64,
}

impl Member {
    pub(crate) fn new(name: &str) -> Self {
        Self { name: name.into(), seed: hash(name) }
    }

    pub(crate) fn name(&self) -> &str {
        &self.name
    }

    /// Returns whether this member comes before `other` in the order of owners of a key. The order is strict
    /// and the same on every replica.
    pub(crate) fn outranks(&self, other: &Self, key: u64) -> bool {
        let order = weight(self.seed, key).cmp(&weight(other.seed, key));
        order.then_with(|| self.name.cmp(&other.name)) == Ordering::Greater
    }
}

/// Returns the hash of a key's text: FNV-1a, mixed.
pub(crate) fn hash(text: &str) -> u64 {
    let fnv = text.bytes().fold(0xcbf2_9ce4_8422_2325_u64, |hash, byte| {
        (hash ^ u64::from(byte)).wrapping_mul(0x0000_0100_0000_01b3)
    });
    mix(fnv)
}

fn weight(member: u64, key: u64) -> u64 {
    mix(member ^ mix(key))
}

/// Applies the finalizer of SplitMix64: each bit of the input changes half of the bits of the result.
fn mix(value: u64) -> u64 {
    let value = value.wrapping_add(0x9e37_79b9_7f4a_7c15);
    let value = (value ^ (value >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    let value = (value ^ (value >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
    value ^ (value >> 31)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn owner(members: &[Member], key: u64) -> &str {
        let owner =
            members.iter().reduce(|best, member| if member.outranks(best, key) { member } else { best });
        owner.map_or("", Member::name)
    }

    #[test]
    fn keys_are_spread_evenly_and_only_those_of_a_leaving_member_move() {
        let members: Vec<_> = ["a", "b", "c", "d"].map(Member::new).into();
        let keys: Vec<u64> = (0..10_000).map(|n| hash(&format!("default/object-{n}"))).collect();
        for member in &members {
            let owned = keys.iter().filter(|key| owner(&members, **key) == member.name()).count();
            assert!((2_300..2_700).contains(&owned), "{} owns {owned}", member.name());
        }
        let moved_wrongly = keys.iter().filter(|key| {
            let before = owner(&members, **key);
            before != "d" && owner(&members[..3], **key) != before
        });
        assert_eq!(moved_wrongly.count(), 0);
    }

    #[test]
    fn the_hashes_never_change() {
        // Replicas of several versions work at the same time while a Deployment is rolled out.
        assert_eq!(hash("default/web"), 6_897_068_844_580_355_279);
        assert_eq!(weight(hash("operator-1"), hash("default/web")), 13_928_944_893_895_122_964);
    }
}
