//! Changes that a reconcile made itself, and that need not reconcile the key again.
//!
//! A write comes back as a watch event. The event of a write is an *echo* of key K if all of this holds:
//!
//! - The last successful reconcile of K made the write, and ended without a request to be repeated.
//! - The write took the object from the resource version before the event to the resource version after the event. A create has no version
//!   before; an update, and a patch with a resource version, demand the version before from the server. Any other patch or apply may hide a
//!   write of another client, so that its event is no echo. If a watch shows several writes as one event, all of them must be of this chain.
//!
//! The reconcile then knew the state that the event shows, and nothing else in that event is new. An echo is left out for the key that
//! wrote only: other keys that a mapper returns are enqueued, as are resyncs, initial lists, deletions and keys that a replica takes over.
//!
//! Leaving out echoes is not the default. A reconciler may take one step, return, and rely on the event of its own write to take the next
//! step. controller-runtime and kube-rs call such a reconciler again, and nothing in its code tells such a reconciler from one that goes
//! through to the end. A read after the write does not tell them apart either: a reconciler may read the new state for its status only.

use std::{hash::Hash, sync::Arc, time::Duration};

use hashbrown::HashMap;
use parking_lot::Mutex;
use prometheus_client::metrics::counter::Counter;
use tokio::time::Instant;
use windlass_cache::Delta;

use crate::read_your_writes::Transition;

/// How long transitions are remembered. The event of a later watch reconciles the key once more.
const REMEMBERED_FOR: Duration = Duration::from_secs(60);

/// The most transitions of one key that are remembered.
const REMEMBERED: usize = 256;

/// The most events that wait for the end of a reconcile. With more events, the key is enqueued.
const WAITING: usize = 256;

/// The changes that the reconciles of each key made.
pub(crate) struct OwnWrites<Q> {
    keys: Mutex<HashMap<Q, OfKey, foldhash::fast::FixedState>>,
    skipped: Counter,
}

#[derive(Default)]
struct OfKey {
    /// A worker reconciles the key.
    in_work: bool,
    /// The transitions of successful reconciles, each with the end of its reconcile.
    transitions: Vec<(Instant, Transition)>,
    /// The events that arrived during the reconcile.
    waiting: Vec<Event>,
    /// The priority of the events that enqueue the key at the end of the reconcile.
    enqueue: Option<i32>,
}

struct Event {
    change: Transition,
    priority: i32,
}

/// Returns the change that an event shows; `None` for a deletion, a resync and an initial list.
pub(crate) fn change_of(delta: &Delta) -> Option<Transition> {
    let from = match delta {
        Delta::Added { initial: false, .. } => 0,
        Delta::Updated { old, new } if !old.is_same(new) && old.uid() == new.uid() => old.revision(),
        Delta::Added { .. } | Delta::Updated { .. } | Delta::Deleted { .. } => return None,
    };
    let object = delta.object();
    let to = object.revision();
    // Resource versions that are no numbers are 0.
    (to != 0 && to != from && !object.uid().is_empty()).then(|| Transition {
        uid: object.uid().into(),
        from,
        to,
    })
}

impl<Q: Clone + Eq + Hash> OwnWrites<Q> {
    pub(crate) fn new(skipped: Counter) -> Arc<Self> {
        Arc::new(Self { keys: Mutex::default(), skipped })
    }

    /// Notes that a worker begins to reconcile a key. Events of the key wait until the returned guard is dropped.
    pub(crate) fn begin(self: &Arc<Self>, key: &Q) {
        self.keys.lock().entry(key.clone()).or_default().in_work = true;
    }

    /// Notes that the reconcile of a key has ended. `transitions` are the changes that the reconcile made; `None` if the key is reconciled again
    /// anyway, or the reconcile failed. Returns the priority with which events of other changes enqueue the key.
    pub(crate) fn end(&self, key: &Q, transitions: Option<Vec<Transition>>, now: Instant) -> Option<i32> {
        let mut keys = self.keys.lock();
        let of_key = keys.get_mut(key)?;
        of_key.in_work = false;
        let waiting = std::mem::take(&mut of_key.waiting);
        let mut enqueue = of_key.enqueue.take();
        let has_succeeded = transitions.is_some();
        of_key.remember(transitions.unwrap_or_default(), now);
        for event in waiting {
            if has_succeeded && of_key.made(&event.change) {
                self.skipped.inc();
            } else {
                enqueue = enqueue.max(Some(event.priority));
            }
        }
        if of_key.transitions.is_empty() {
            keys.remove(key);
        }
        enqueue
    }

    /// Returns true if an event enqueues a key now. An event during a reconcile of the key waits for the end of the reconcile.
    pub(crate) fn admits(&self, key: &Q, change: &Transition, priority: i32) -> bool {
        let mut keys = self.keys.lock();
        let Some(of_key) = keys.get_mut(key) else { return true };
        if of_key.in_work {
            if of_key.waiting.len() < WAITING {
                of_key.waiting.push(Event { change: change.clone(), priority });
            } else {
                of_key.enqueue = of_key.enqueue.max(Some(priority));
            }
            return false;
        }
        let is_echo = of_key.made(change);
        if is_echo {
            self.skipped.inc();
        }
        !is_echo
    }

    /// Forgets the transitions that are old, and returns the number of keys that stay.
    pub(crate) fn sweep(&self, now: Instant) -> usize {
        let mut keys = self.keys.lock();
        keys.retain(|_, of_key| {
            of_key.forget(now);
            of_key.in_work || !of_key.transitions.is_empty()
        });
        let length = keys.len();
        keys.shrink_to(2 * length);
        length
    }
}

impl OfKey {
    fn remember(&mut self, transitions: Vec<Transition>, now: Instant) {
        self.forget(now);
        self.transitions.extend(transitions.into_iter().map(|transition| (now, transition)));
        let excess = self.transitions.len().saturating_sub(REMEMBERED);
        self.transitions.drain(..excess);
    }

    fn forget(&mut self, now: Instant) {
        self.transitions.retain(|(since, _)| now.saturating_duration_since(*since) < REMEMBERED_FOR);
    }

    /// Returns whether the reconciles of the key made all of a change.
    fn made(&self, change: &Transition) -> bool {
        let of_object = self.transitions.iter().map(|(_, own)| own).filter(|own| own.uid == change.uid);
        of_object.fold(change.from, |at, own| if own.from == at { own.to } else { at }) == change.to
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn change(uid: &str, from: u64, to: u64) -> Transition {
        Transition { uid: uid.into(), from, to }
    }

    fn own_writes() -> Arc<OwnWrites<&'static str>> {
        OwnWrites::new(Counter::default())
    }

    /// Reconciles a key with these writes.
    fn reconcile(own: &Arc<OwnWrites<&'static str>>, transitions: &[Transition]) -> Option<i32> {
        own.begin(&"a");
        own.end(&"a", Some(transitions.to_vec()), Instant::now())
    }

    #[test]
    fn only_the_change_that_the_key_made_is_left_out() {
        let own = own_writes();
        assert_eq!(reconcile(&own, &[change("u", 0, 5), change("v", 3, 6)]), None);
        assert!(!own.admits(&"a", &change("u", 0, 5), 0));
        assert!(!own.admits(&"a", &change("v", 3, 6), 0));
        assert!(!own.admits(&"a", &change("v", 3, 6), 0), "of another watch");
        assert!(own.admits(&"b", &change("u", 0, 5), 0), "of another key");
        assert!(own.admits(&"a", &change("w", 0, 5), 0), "of another object");
        assert!(own.admits(&"a", &change("u", 5, 7), 0), "of another client");
        assert!(own.admits(&"a", &change("v", 2, 6), 0), "with a change of another client");
        assert_eq!(own.skipped.get(), 3);
    }

    #[test]
    fn changes_that_a_watch_shows_as_one_are_left_out_if_all_are_own() {
        let own = own_writes();
        reconcile(&own, &[change("u", 0, 5), change("u", 5, 6), change("u", 7, 8)]);
        assert!(!own.admits(&"a", &change("u", 0, 6), 0));
        assert!(own.admits(&"a", &change("u", 0, 8), 0), "another client wrote 7");
    }

    #[test]
    fn events_during_a_reconcile_wait_for_its_end() {
        let own = own_writes();
        own.begin(&"a");
        assert!(!own.admits(&"a", &change("u", 0, 5), 0));
        assert_eq!(own.end(&"a", Some(vec![change("u", 0, 5)]), Instant::now()), None, "the own write");
        own.begin(&"a");
        assert!(!own.admits(&"a", &change("u", 5, 6), -100));
        assert!(!own.admits(&"a", &change("u", 6, 7), 0));
        assert_eq!(own.end(&"a", Some(vec![change("u", 5, 6)]), Instant::now()), Some(0));
        own.begin(&"a");
        assert!(!own.admits(&"a", &change("u", 7, 8), 0));
        assert_eq!(own.end(&"a", None, Instant::now()), Some(0), "the reconcile failed after its write");
    }

    #[test]
    fn too_many_events_enqueue_the_key() {
        let own = own_writes();
        own.begin(&"a");
        for revision in 1..=WAITING as u64 + 1 {
            own.admits(&"a", &change("u", revision, revision + 1), 0);
        }
        let all = (1..=WAITING as u64 + 1).map(|revision| change("u", revision, revision + 1)).collect();
        assert_eq!(own.end(&"a", Some(all), Instant::now()), Some(0));
    }

    #[tokio::test(start_paused = true)]
    async fn old_writes_are_forgotten() {
        let own = own_writes();
        reconcile(&own, &[change("u", 0, 5)]);
        assert_eq!(own.sweep(Instant::now()), 1);
        tokio::time::advance(REMEMBERED_FOR).await;
        assert_eq!(own.sweep(Instant::now()), 0);
        assert!(own.admits(&"a", &change("u", 0, 5), 0));
    }
}
