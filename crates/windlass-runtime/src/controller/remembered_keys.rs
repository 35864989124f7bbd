//! A bounded memory of keys.

use std::collections::VecDeque;

use foldhash::fast::FixedState;
use hashbrown::HashMap;
use tokio::time::{Duration, Instant};

use crate::handler::QueueKey;

/// The most keys that are remembered.
pub(super) const MOST: usize = 10_000;

/// The number of the oldest keys that are checked for each further key when the memory is full.
const LOOKS: usize = 16;

/// Keys that may be needed later, at most [`MOST`]. A key may be forgotten when it has been remembered for a certain time.
#[derive(Debug)]
pub(super) struct RememberedKeys<Q> {
    /// How long a key is kept at least, if there is room for the key.
    time: Duration,
    /// The keys, with the time at which each key was last remembered.
    keys: HashMap<Q, Instant, FixedState>,
    /// The same keys, roughly the oldest first.
    oldest: VecDeque<Q>,
    /// The number of keys that were forgotten, or not remembered for lack of room.
    forgotten: u64,
}

impl<Q: QueueKey> RememberedKeys<Q> {
    pub(super) fn new(time: Duration) -> Self {
        Self { time, keys: HashMap::default(), oldest: VecDeque::new(), forgotten: 0 }
    }

    /// Remembers a key. The work does not depend on the number of remembered keys.
    pub(super) fn remember(&mut self, key: Q, now: Instant) {
        if let Some(since) = self.keys.get_mut(&key) {
            *since = now;
            return;
        }
        if self.keys.len() >= MOST {
            self.forget_oldest(now);
        }
        if self.keys.len() < MOST {
            self.oldest.push_back(key.clone());
            self.keys.insert(key, now);
        } else {
            self.forgotten += 1;
        }
    }

    /// Forgets some keys with an expired time.
    fn forget_oldest(&mut self, now: Instant) {
        for _ in 0..LOOKS {
            let Some(key) = self.oldest.pop_front() else { return };
            match self.keys.get(&key) {
                Some(since) if now < *since + self.time => self.oldest.push_back(key),
                _ => {
                    self.keys.remove(&key);
                    self.forgotten += 1;
                }
            }
        }
    }

    pub(super) fn iter(&self) -> impl Iterator<Item = &Q> {
        self.keys.keys()
    }

    /// Removes keys. Such keys do not count as forgotten.
    pub(super) fn remove(&mut self, keys: &[Q]) {
        for key in keys {
            self.keys.remove(key);
        }
        let Self { keys, oldest, .. } = self;
        oldest.retain(|key| keys.contains_key(key));
    }

    /// Returns the number of keys that were forgotten, or not remembered for lack of room.
    pub(super) fn forgotten(&self) -> u64 {
        self.forgotten
    }
}

#[cfg(test)]
mod tests {
    use std::{
        cell::Cell,
        fmt,
        hash::{Hash, Hasher},
    };

    use super::*;

    const TIME: Duration = Duration::from_mins(2);

    thread_local! {
        static HASHED: Cell<u64> = const { Cell::new(0) };
    }

    /// A key that counts the look-ups of keys.
    #[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
    struct CountedKey(u32);

    impl Hash for CountedKey {
        fn hash<H: Hasher>(&self, state: &mut H) {
            HASHED.set(HASHED.get() + 1);
            self.0.hash(state);
        }
    }

    impl fmt::Display for CountedKey {
        fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
            write!(f, "{}", self.0)
        }
    }

    #[test]
    fn remembering_a_key_costs_the_same_however_many_are_remembered() {
        let (mut keys, begun) = (RememberedKeys::new(TIME), Instant::now());
        for key in 0..20_000 {
            keys.remember(CountedKey(key), begun);
            let most = u64::from(key + 1) * (LOOKS as u64 + 8);
            assert!(HASHED.get() <= most, "{} look-ups after {key} keys", HASHED.get());
        }
        assert_eq!((keys.keys.len(), keys.oldest.len(), keys.forgotten()), (MOST, MOST, 10_000));
        keys.remember(CountedKey(1), begun + TIME / 2);
        for key in 200_000..210_000 {
            keys.remember(CountedKey(key), begun + TIME);
        }
        let has = |key| keys.keys.contains_key(&CountedKey(key));
        assert!(has(1), "remembered again in between");
        assert!(has(209_000) && !has(2));
    }

    #[test]
    fn without_a_time_the_oldest_keys_give_way() {
        let (mut keys, now) = (RememberedKeys::new(Duration::ZERO), Instant::now());
        for key in 0..20_000_u32 {
            keys.remember(key, now);
        }
        assert!(keys.keys.contains_key(&19_999) && !keys.keys.contains_key(&0));
        keys.remove(&[19_999]);
        assert!(!keys.keys.contains_key(&19_999) && !keys.oldest.contains(&19_999));
        assert!(keys.forgotten() >= 10_000, "{}", keys.forgotten());
    }
}
