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

use std::time::Duration;

use tokio::time::Instant;
use windlass_cache::Delta;

use super::Transition;

/// How long transitions are remembered. The event of a later watch reconciles the key once more.
const REMEMBERED_FOR: Duration = Duration::from_secs(60);

/// The most transitions of one key that are remembered.
const REMEMBERED: usize = 256;

/// The most events that wait for the end of a reconcile. With more events, the key is enqueued.
const WAITING: usize = 256;

/// The changes that the reconciles of one key made.
#[derive(Default)]
pub(super) struct OwnChanges {
    /// A worker reconciles the key.
    in_work: bool,
    /// The transitions of successful reconciles, each with the end of its reconcile.
    transitions: Vec<(Instant, Transition)>,
    /// The events that arrived during the reconcile.
    waiting: Vec<Event>,
    /// The priority of further events, which enqueue the key at the end of the reconcile.
    enqueue: Option<i32>,
}

/// The decision about an event of a key.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum EventDecision {
    /// The event enqueues the key.
    Enqueue,
    /// The event waits for the end of the reconcile.
    Wait,
    /// The event shows nothing but a change of the key's own reconciles.
    Skip,
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

impl OwnChanges {
    /// Notes that a worker begins to reconcile the key. Events wait from now on.
    pub(super) fn begin(&mut self) {
        self.in_work = true;
    }

    /// Notes that the reconcile has ended. `transitions` are the changes that the reconcile made; `None` if the key is reconciled again
    /// anyway, or the reconcile failed. Returns the priority with which events of other changes enqueue the key, and the number of events that
    /// are left out.
    pub(super) fn end(&mut self, transitions: Option<Vec<Transition>>, now: Instant) -> (Option<i32>, u64) {
        self.in_work = false;
        let (waiting, mut enqueue) = (std::mem::take(&mut self.waiting), self.enqueue.take());
        let has_succeeded = transitions.is_some();
        self.remember(transitions.unwrap_or_default(), now);
        let mut skipped = 0;
        for event in waiting {
            if has_succeeded && self.made(&event.change) {
                skipped += 1;
            } else {
                enqueue = enqueue.max(Some(event.priority));
            }
        }
        (enqueue, skipped)
    }

    /// Decides about an event.
    pub(super) fn judge(&mut self, change: &Transition, priority: i32) -> EventDecision {
        if change.to < change.from {
            // The server was restored from a backup, and gives the resource versions of the lost writes to other writes.
            self.transitions.retain(|(_, own)| own.uid != change.uid);
        }
        if !self.in_work {
            return if self.made(change) { EventDecision::Skip } else { EventDecision::Enqueue };
        }
        if self.waiting.len() < WAITING {
            self.waiting.push(Event { change: change.clone(), priority });
        } else {
            self.enqueue = self.enqueue.max(Some(priority));
        }
        EventDecision::Wait
    }

    /// Returns true if nothing is remembered.
    pub(super) fn is_empty(&self) -> bool {
        !self.in_work && self.transitions.is_empty()
    }

    fn remember(&mut self, transitions: Vec<Transition>, now: Instant) {
        self.forget(now);
        self.transitions.extend(transitions.into_iter().map(|transition| (now, transition)));
        let excess = self.transitions.len().saturating_sub(REMEMBERED);
        self.transitions.drain(..excess);
    }

    /// Forgets the transitions that are old.
    pub(super) fn forget(&mut self, now: Instant) {
        self.transitions.retain(|(since, _)| now.saturating_duration_since(*since) < REMEMBERED_FOR);
    }

    /// Returns whether the reconciles of the key made all of a change. The chain of writes may go on beyond the change.
    fn made(&self, change: &Transition) -> bool {
        let mut at = change.from;
        self.transitions.iter().map(|(_, own)| own).any(|own| {
            if own.uid == change.uid && own.from == at {
                at = own.to;
            }
            at == change.to
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn change(uid: &str, from: u64, to: u64) -> Transition {
        Transition { uid: uid.into(), from, to }
    }

    /// The end of a reconcile with these writes, after the events.
    fn reconcile(own: &mut OwnChanges, events: &[Transition], writes: &[Transition]) -> (Option<i32>, u64) {
        own.begin();
        events.iter().for_each(|event| assert_eq!(own.judge(event, 0), EventDecision::Wait));
        own.end(Some(writes.to_vec()), Instant::now())
    }

    #[test]
    fn only_the_change_that_the_key_made_is_left_out() {
        let mut own = OwnChanges::default();
        assert_eq!(reconcile(&mut own, &[], &[change("u", 0, 5), change("v", 3, 6)]), (None, 0));
        assert_eq!(own.judge(&change("u", 0, 5), 0), EventDecision::Skip);
        assert_eq!(own.judge(&change("v", 3, 6), 0), EventDecision::Skip);
        assert_eq!(own.judge(&change("v", 3, 6), 0), EventDecision::Skip, "of another watch");
        assert_eq!(own.judge(&change("w", 0, 5), 0), EventDecision::Enqueue, "of another object");
        assert_eq!(own.judge(&change("u", 5, 7), 0), EventDecision::Enqueue, "of another client");
        assert_eq!(
            own.judge(&change("v", 2, 6), 0),
            EventDecision::Enqueue,
            "with a change of another client"
        );
    }

    #[test]
    fn changes_that_a_watch_shows_as_one_are_left_out_if_all_are_own() {
        let mut own = OwnChanges::default();
        reconcile(&mut own, &[], &[change("u", 0, 5), change("u", 5, 6), change("u", 7, 8)]);
        assert_eq!(own.judge(&change("u", 0, 6), 0), EventDecision::Skip);
        assert_eq!(own.judge(&change("u", 0, 8), 0), EventDecision::Enqueue, "another client wrote 7");
    }

    /// Another client's write has the resource version of a write that the backup lacks.
    #[test]
    fn writes_to_a_server_that_was_restored_are_forgotten() {
        let mut own = OwnChanges::default();
        reconcile(&mut own, &[], &[change("u", 3, 5), change("v", 3, 6)]);
        assert_eq!(own.judge(&change("u", 5, 3), 0), EventDecision::Enqueue);
        assert_eq!(own.judge(&change("u", 3, 5), 0), EventDecision::Enqueue);
        assert_eq!(own.judge(&change("v", 3, 6), 0), EventDecision::Skip, "of another object");
    }

    #[test]
    fn events_during_a_reconcile_wait_for_its_end() {
        let mut own = OwnChanges::default();
        let created = [change("u", 0, 5)];
        assert_eq!(reconcile(&mut own, &created, &created), (None, 1));
        let (own_update, other) = (change("u", 5, 6), change("u", 6, 7));
        assert_eq!(reconcile(&mut own, &[own_update.clone(), other], &[own_update]), (Some(0), 1));
        own.begin();
        assert_eq!(own.judge(&change("u", 7, 8), -100), EventDecision::Wait);
        assert_eq!(own.end(None, Instant::now()), (Some(-100), 0), "the reconcile failed after its write");
    }

    #[test]
    fn too_many_events_enqueue_the_key() {
        let mut own = OwnChanges::default();
        let all: Vec<_> =
            (1..=WAITING as u64 + 1).map(|revision| change("u", revision, revision + 1)).collect();
        assert_eq!(reconcile(&mut own, &all, &all).0, Some(0));
    }

    #[tokio::test(start_paused = true)]
    async fn old_writes_are_forgotten() {
        let mut own = OwnChanges::default();
        reconcile(&mut own, &[], &[change("u", 0, 5)]);
        own.forget(Instant::now());
        assert!(!own.is_empty());
        tokio::time::advance(REMEMBERED_FOR).await;
        own.forget(Instant::now());
        assert!(own.is_empty());
        assert_eq!(own.judge(&change("u", 0, 5), 0), EventDecision::Enqueue);
    }
}
