//! The writes of each reconcile.

use std::{
    collections::BTreeMap,
    sync::{
        Arc, Weak,
        atomic::{AtomicBool, AtomicUsize, Ordering},
    },
};

use parking_lot::Mutex;
use tokio::sync::Notify;
use windlass_cache::ObjectKey;

use super::{JournalId, UnseenWrites};
use crate::resource_path::GroupResource;

/// A write that a later reconcile waits for.
#[derive(Clone)]
pub(crate) struct WriteRef {
    pub(crate) log: JournalId,
    pub(crate) resource: Arc<GroupResource>,
    pub(crate) key: ObjectKey,
    pub(crate) uid: Arc<str>,
    pub(crate) revision: u64,
    pub(crate) gone: bool,
    /// The caches with watches that will show the write.
    pub(crate) shown_by: Vec<Weak<UnseenWrites>>,
}

impl WriteRef {
    /// Returns whether the watch of a cache will show the write.
    pub(super) fn is_shown_by(&self, cache: &UnseenWrites) -> bool {
        self.shown_by.iter().any(|known| std::ptr::eq(known.as_ptr(), cache))
    }
}

/// The writes of a reconcile. A task that the reconcile spawned is not part of the session.
#[derive(Clone, Default)]
pub(crate) struct Session(Arc<Writes>);

#[derive(Default)]
struct Writes {
    /// A number that identifies the reconciles of a key by a controller.
    reconcile: u64,
    /// The writes of the reconcile that hide no write of another client.
    transitions: Mutex<Vec<Transition>>,
    /// Writes of kinds that some cache holds.
    seen_later: Mutex<Vec<WriteRef>>,
    /// True if there was any write.
    any: AtomicBool,
    /// The number of writes that were begun and have no answer yet. A write outlives the reconcile that drops the write.
    in_flight: AtomicUsize,
    is_revoked: AtomicBool,
    /// Wakes waiters when no write is in flight any more, and when the right to write ends.
    changed: Notify,
}

/// A write that took an object from a resource version to the next, without a write of another client in between.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Transition {
    pub(crate) uid: Arc<str>,
    /// The resource version before the write; 0 if the write created the object.
    pub(crate) from: u64,
    pub(crate) to: u64,
}

/// Counts a write as in flight until dropped.
pub(crate) struct WriteInFlight(Session);

impl Drop for WriteInFlight {
    fn drop(&mut self) {
        if self.0.0.in_flight.fetch_sub(1, Ordering::AcqRel) == 1 {
            self.0.0.changed.notify_waiters();
        }
    }
}

tokio::task_local! {
    static CURRENT: Session;
}

impl Session {
    /// Creates the session of a reconcile. `reconcile` identifies the reconciles of a key by a controller.
    pub(crate) fn new(reconcile: u64) -> Self {
        Self(Arc::new(Writes { reconcile, ..Writes::default() }))
    }

    /// Runs a reconcile as this session.
    pub(crate) async fn run<F: Future>(&self, reconcile: F) -> F::Output {
        CURRENT.scope(self.clone(), reconcile).await
    }

    /// Begins a write of the current session. Returns `None` outside of a reconcile.
    pub(crate) fn begin_write() -> Option<(Self, WriteInFlight)> {
        let session = CURRENT.try_with(Self::clone).ok()?;
        session.0.in_flight.fetch_add(1, Ordering::AcqRel);
        Some((session.clone(), WriteInFlight(session)))
    }

    /// Returns true if no write of the reconcile is in flight.
    pub(crate) fn is_settled(&self) -> bool {
        self.0.in_flight.load(Ordering::Acquire) == 0
    }

    /// Completes when no write of the reconcile is in flight: neither writes that the reconcile awaited, nor writes that the reconcile
    /// dropped.
    pub(crate) async fn settled(&self) {
        self.wait_until(|writes| writes.in_flight.load(Ordering::Acquire) == 0).await;
    }

    /// Ends the right to write. Writes in flight that the reconcile drops, or has dropped, are cancelled.
    pub(crate) fn revoke(&self) {
        self.0.is_revoked.store(true, Ordering::Release);
        self.0.changed.notify_waiters();
    }

    pub(crate) fn is_revoked(&self) -> bool {
        self.0.is_revoked.load(Ordering::Acquire)
    }

    /// Completes when the right to write has ended.
    pub(crate) async fn revoked(&self) {
        self.wait_until(|writes| writes.is_revoked.load(Ordering::Acquire)).await;
    }

    async fn wait_until(&self, holds: impl Fn(&Writes) -> bool) {
        loop {
            let mut changed = std::pin::pin!(self.0.changed.notified());
            changed.as_mut().enable();
            if holds(&self.0) {
                return;
            }
            changed.await;
        }
    }

    /// Returns whether the reconcile has written.
    pub(crate) fn has_written(&self) -> bool {
        self.0.any.load(Ordering::Relaxed)
    }

    /// Takes the transitions.
    pub(crate) fn take_transitions(&self) -> Vec<Transition> {
        std::mem::take(&mut *self.0.transitions.lock())
    }

    /// Takes the last write to each object.
    pub(crate) fn take(&self) -> Vec<WriteRef> {
        let writes = std::mem::take(&mut *self.0.seen_later.lock());
        if writes.len() <= 1 {
            return writes;
        }
        let mut last: BTreeMap<_, WriteRef> = BTreeMap::new();
        for mut write in writes {
            let object = (write.log, write.resource.clone(), write.key.clone());
            if let Some(earlier) = last.get(&object).filter(|earlier| earlier.uid == write.uid) {
                // A deletion may not know the version of the object; the write before the deletion does.
                write.revision = write.revision.max(earlier.revision);
                write.gone |= earlier.gone;
            }
            last.insert(object, write);
        }
        last.into_values().collect()
    }
}

/// Returns the number for the reconciles of the current key; `None` outside of a reconcile.
pub(crate) fn current_reconcile() -> Option<u64> {
    CURRENT.try_with(|session| session.0.reconcile).ok()
}

/// Adds a transition to the current session. Does nothing outside of a reconcile.
pub(crate) fn note_transition(transition: impl FnOnce() -> Transition) {
    let _ = CURRENT.try_with(|session| session.0.transitions.lock().push(transition()));
}

/// Adds the transition of a write that demanded the resource version `from` of the server. Resource versions that are no numbers are left out.
pub(crate) fn note_own_write(uid: &str, from: Option<&str>, to: Option<&str>) {
    let number = |version: Option<&str>| version?.parse().ok();
    if let (Some(from), Some(to)) = (number(from), number(to)) {
        note_transition(|| Transition { uid: uid.into(), from, to });
    }
}

/// Returns the resource version of an object after the transitions of this reconcile, which began at `version`.
pub(crate) fn after_own_writes(uid: &str, version: String) -> String {
    let Ok(from) = version.parse() else { return version };
    let after = CURRENT.try_with(|session| {
        let transitions = session.0.transitions.lock();
        let of_object = transitions.iter().filter(|transition| *transition.uid == *uid);
        of_object.fold(from, |at: u64, transition| if transition.from == at { transition.to } else { at })
    });
    match after {
        Ok(to) if to != from => to.to_string(),
        _ => version,
    }
}

/// Adds a write of a cached kind to the current session, if any.
pub(crate) fn note(write: WriteRef) {
    let _ = CURRENT.try_with(|session| session.0.seen_later.lock().push(write));
}

/// Marks the current session, if any, as having written.
pub(crate) fn note_any() {
    let _ = CURRENT.try_with(|session| session.0.any.store(true, Ordering::Relaxed));
}
