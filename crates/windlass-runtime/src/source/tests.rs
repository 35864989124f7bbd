use std::{collections::BTreeMap, time::Duration};

use proptest::prelude::*;

use super::poller::Polled;

fn state(entries: &[(&'static str, u32)]) -> BTreeMap<&'static str, u32> {
    entries.iter().copied().collect()
}

#[test]
fn a_poll_tells_what_is_new_changed_or_gone() {
    let mut polled = Polled::new(Duration::from_secs(30));
    assert_eq!(polled.changed(state(&[("a", 1), ("b", 1)])), ["a", "b"]);
    assert!(polled.changed(state(&[("a", 1), ("b", 1)])).is_empty());
    assert_eq!(polled.changed(state(&[("a", 1), ("b", 2), ("c", 1)])), ["b", "c"]);
    assert_eq!(polled.changed(state(&[("c", 1)])), ["a", "b"], "gone");
}

#[test]
fn a_failed_poll_is_repeated_later_and_later_and_loses_nothing() {
    let mut polled = Polled::new(Duration::from_secs(30));
    polled.changed(state(&[("a", 1)]));
    let mut pauses = Vec::new();
    for _ in 0..11 {
        polled.failed();
        pauses.push(polled.pause().as_secs());
    }
    assert_eq!(pauses, [1, 2, 4, 8, 16, 32, 64, 128, 256, 300, 300]);
    assert_eq!(polled.changed(state(&[("a", 2)])), ["a"]);
    assert_eq!(polled.pause(), Duration::from_secs(30));
}

#[test]
fn pauses_stay_in_proportion_to_the_interval() {
    let pause_after = |interval, failures| {
        let mut polled = Polled::<u8, u8>::new(interval);
        (0..failures).for_each(|_| polled.failed());
        polled.pause()
    };
    assert_eq!(pause_after(Duration::from_millis(100), 1), Duration::from_millis(100));
    assert_eq!(pause_after(Duration::from_hours(1), 100), Duration::from_hours(1));
}

proptest! {
    /// The keys of all polls are enough to know the last state.
    #[test]
    fn the_keys_of_all_polls_are_enough_to_follow(
        states in prop::collection::vec(prop::collection::btree_map(0u8..6, 0u8..3, 0..6), 1..8)
    ) {
        let mut polled = Polled::new(Duration::from_secs(1));
        let mut followed = BTreeMap::new();
        for state in states {
            for key in polled.changed(state.clone()) {
                match state.get(&key) {
                    Some(value) => followed.insert(key, *value),
                    None => followed.remove(&key),
                };
            }
            prop_assert_eq!(&followed, &state);
        }
    }
}
