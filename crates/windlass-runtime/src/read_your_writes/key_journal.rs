//! The writes of a controller's keys: one entry for each key that wrote.

use std::{hash::Hash, time::Duration};

use hashbrown::HashMap;
use parking_lot::Mutex;
use prometheus_client::metrics::counter::Counter;
use tokio::time::Instant;

use super::{
    Transition, WriteRef,
    hot_loop::{Hold, HotLoop},
    own_changes::{EventDecision, OwnChanges},
};

/// The least number of keys at which keys without a reason to be remembered are swept out.
const SWEEP: usize = 256;

/// The writes of a controller's keys. A journal of keys belongs to a controller, and not to a client, because only the controller knows the
/// type of its keys, and because a reconcile may write by several clients.
pub(crate) struct KeyJournal<Q> {
    keys: Mutex<Keys<Q>>,
    options: KeyJournalOptions,
}

/// The options of a journal of keys.
pub(crate) struct KeyJournalOptions {
    /// The longest wait for the caches to show the writes of a key. Zero: no wait.
    pub(crate) longest_wait: Duration,
    /// Whether keys in a hot loop are slowed down.
    pub(crate) slows_hot_loops: bool,
    /// Counts the events of own writes that are left out; `None` if such events enqueue the key.
    pub(crate) skips_own_writes: Option<Counter>,
}

struct Keys<Q> {
    entries: HashMap<Q, Entry, foldhash::fast::FixedState>,
    /// The number of keys at which the keys are swept.
    sweep_at: usize,
}

/// The writes of one key.
#[derive(Default)]
struct Entry {
    unseen: Option<Unseen>,
    hot_loop: HotLoop,
    own: OwnChanges,
}

/// The writes of a key that a cache may not have seen.
enum Unseen {
    /// No reconcile waits for the writes.
    Remembered(Vec<WriteRef>),
    /// A task waits for the writes, and adds the key to the queue afterwards, with the highest priority that the key had meanwhile.
    Awaited(i32),
}

/// The passage of a key.
pub(crate) enum Passage {
    Open,
    /// The key is in a hot loop.
    Hold(Hold),
    /// The caches have not seen these writes. The caller waits for the writes, and [opens](KeyJournal::open) the passage.
    Closed(Vec<WriteRef>),
    /// A task waits already, and adds the key to the queue.
    Awaited,
}

impl<Q: Clone + Eq + Hash> KeyJournal<Q> {
    pub(crate) fn new(options: KeyJournalOptions) -> Self {
        Self { keys: Mutex::new(Keys { entries: HashMap::default(), sweep_at: SWEEP }), options }
    }

    /// The longest wait for the caches to show the writes of a key.
    pub(crate) fn longest_wait(&self) -> Duration {
        self.options.longest_wait
    }

    /// Returns true if the events of own writes are left out.
    pub(crate) fn skips_own_writes(&self) -> bool {
        self.options.skips_own_writes.is_some()
    }

    /// Returns whether a key may be reconciled. `has_seen` tells whether the caches have seen a write.
    pub(crate) fn passage(
        &self,
        key: &Q,
        priority: i32,
        now: Instant,
        has_seen: impl Fn(&WriteRef) -> bool,
    ) -> Passage {
        let mut keys = self.keys.lock();
        let Some(entry) = keys.entries.get_mut(key) else { return Passage::Open };
        if self.options.slows_hot_loops
            && let Some(hold) = entry.hot_loop.hold(now)
        {
            return Passage::Hold(hold);
        }
        match entry.unseen.take() {
            None => Passage::Open,
            Some(Unseen::Remembered(writes)) if writes.iter().all(has_seen) => Passage::Open,
            Some(Unseen::Remembered(writes)) => {
                entry.unseen = Some(Unseen::Awaited(priority));
                Passage::Closed(writes)
            }
            Some(Unseen::Awaited(before)) => {
                entry.unseen = Some(Unseen::Awaited(priority.max(before)));
                Passage::Awaited
            }
        }
    }

    /// Opens the passage after [`Passage::Closed`], and returns the priority of the key.
    pub(crate) fn open(&self, key: &Q) -> Option<i32> {
        match self.keys.lock().entries.get_mut(key)?.unseen.take()? {
            Unseen::Awaited(priority) => Some(priority),
            Unseen::Remembered(_) => None,
        }
    }

    /// Notes that a worker begins to reconcile a key. Does nothing unless events of own writes are left out.
    pub(crate) fn begin(&self, key: &Q) {
        if self.skips_own_writes() {
            self.keys.lock().entries.entry(key.clone()).or_default().own.begin();
        }
    }

    /// Notes the writes of a reconcile that some cache will show. `has_written` is true if the reconcile wrote anything at all.
    pub(crate) fn note(
        &self,
        key: &Q,
        has_written: bool,
        writes: Vec<WriteRef>,
        now: impl FnOnce() -> Instant,
        has_seen: impl Fn(&WriteRef) -> bool,
    ) {
        // The most frequent reconcile writes nothing, and needs neither the lock nor the time.
        if !has_written && writes.is_empty() {
            return;
        }
        let now = now();
        let mut keys = self.keys.lock();
        let entry = keys.entries.entry(key.clone()).or_default();
        if has_written && self.options.slows_hot_loops {
            entry.hot_loop.wrote(now);
        }
        if !writes.is_empty() && !self.options.longest_wait.is_zero() {
            entry.unseen = Some(Unseen::Remembered(writes));
        }
        if keys.entries.len() >= keys.sweep_at {
            keys.sweep(now, has_seen);
        }
    }

    /// Notes that the reconcile of a key has ended. `transitions` are the changes that the reconcile made; `None` if the key is reconciled again
    /// anyway, or the reconcile failed. Returns the priority with which events of other changes enqueue the key.
    pub(crate) fn end(&self, key: &Q, transitions: Option<Vec<Transition>>, now: Instant) -> Option<i32> {
        let counter = self.options.skips_own_writes.as_ref()?;
        let mut keys = self.keys.lock();
        let entry = keys.entries.get_mut(key)?;
        let (enqueue, skipped) = entry.own.end(transitions, now);
        if entry.is_idle(now) {
            keys.entries.remove(key);
        }
        counter.inc_by(skipped);
        enqueue
    }

    /// Returns true if an event enqueues a key now. An event during a reconcile of the key waits for the end of the reconcile.
    pub(crate) fn admits(&self, key: &Q, change: &Transition, priority: i32) -> bool {
        let Some(counter) = &self.options.skips_own_writes else { return true };
        let mut keys = self.keys.lock();
        let Some(entry) = keys.entries.get_mut(key) else { return true };
        let decision = entry.own.judge(change, priority);
        if decision == EventDecision::Skip {
            counter.inc();
        }
        decision == EventDecision::Enqueue
    }

    /// Forgets the keys without a reason to be remembered, and returns the number of keys that stay.
    pub(crate) fn sweep(&self, now: Instant, has_seen: impl Fn(&WriteRef) -> bool) -> usize {
        let mut keys = self.keys.lock();
        keys.sweep(now, has_seen);
        keys.entries.len()
    }
}

impl<Q: Eq + Hash> Keys<Q> {
    fn sweep(&mut self, now: Instant, has_seen: impl Fn(&WriteRef) -> bool) {
        self.entries.retain(|_, entry| {
            if matches!(&entry.unseen, Some(Unseen::Remembered(writes)) if writes.iter().all(&has_seen)) {
                entry.unseen = None;
            }
            entry.own.forget(now);
            !entry.is_idle(now)
        });
        self.sweep_at = SWEEP.max(self.entries.len() * 2);
        self.entries.shrink_to(self.sweep_at);
    }
}

impl Entry {
    /// Returns true if the key need not be remembered.
    fn is_idle(&self, now: Instant) -> bool {
        self.unseen.is_none() && self.hot_loop.is_idle(now) && self.own.is_empty()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn journal<Q: Clone + Eq + Hash>() -> KeyJournal<Q> {
        KeyJournal::new(KeyJournalOptions {
            longest_wait: Duration::from_secs(1),
            slows_hot_loops: true,
            skips_own_writes: None,
        })
    }

    /// An event with a high priority arrives while a key of a low priority waits.
    #[test]
    fn an_awaited_key_returns_with_its_highest_priority() {
        let (journal, now) = (journal(), Instant::now());
        let entry = Entry { unseen: Some(Unseen::Awaited(-100)), ..Entry::default() };
        journal.keys.lock().entries.insert("a", entry);
        assert!(matches!(journal.passage(&"a", 0, now, |_| true), Passage::Awaited));
        assert!(matches!(journal.passage(&"a", -50, now, |_| true), Passage::Awaited));
        assert_eq!(journal.open(&"a"), Some(0));
        assert!(matches!(journal.passage(&"a", 0, now, |_| true), Passage::Open));
    }

    #[test]
    fn keys_that_write_rarely_leave_nothing() {
        let (journal, began) = (journal(), Instant::now());
        for n in 0..10_000_u64 {
            let now = began + Duration::from_secs(n);
            assert!(matches!(journal.passage(&n, 0, now, |_| true), Passage::Open));
            journal.note(&n, true, Vec::new(), || now, |_| true);
        }
        assert!(journal.keys.lock().entries.len() <= SWEEP);
        assert_eq!(journal.sweep(began + Duration::from_secs(20_000), |_| true), 0);
    }
}
