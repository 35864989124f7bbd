//! The writes of each reconcile.

use std::{
    collections::BTreeMap,
    sync::{
        Arc,
        atomic::{AtomicBool, AtomicUsize, Ordering},
    },
};

use parking_lot::Mutex;
use tokio::sync::Notify;
use windlass_cache::ObjectKey;

use super::LogId;
use crate::client::path::GroupResource;

/// A write that a later reconcile waits for.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct WriteRef {
    pub(crate) log: LogId,
    pub(crate) resource: GroupResource,
    pub(crate) key: ObjectKey,
    pub(crate) uid: Arc<str>,
    pub(crate) revision: u64,
    pub(crate) gone: bool,
}

/// The writes of one reconcile. A task that the reconcile spawned is not part of it.
#[derive(Clone, Default)]
pub(crate) struct Session(Arc<Writes>);

#[derive(Default)]
struct Writes {
    /// Writes of kinds that some cache holds.
    seen_later: Mutex<Vec<WriteRef>>,
    /// Whether there was any write at all.
    any: AtomicBool,
    /// The number of writes that were begun and have no answer yet. A write outlives the reconcile that drops the write.
    in_flight: AtomicUsize,
    is_revoked: AtomicBool,
    /// Wakes waiters when no write is in flight any more, and when the right to write ends.
    changed: Notify,
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

    /// Whether the reconcile wrote anything.
    pub(crate) fn has_written(&self) -> bool {
        self.0.any.load(Ordering::Relaxed)
    }

    /// Takes the last write to each object.
    pub(crate) fn take(&self) -> Vec<WriteRef> {
        let writes = std::mem::take(&mut *self.0.seen_later.lock());
        let mut last: BTreeMap<_, WriteRef> = BTreeMap::new();
        for mut write in writes {
            let object = (write.log, write.resource.clone(), write.key.clone());
            if let Some(earlier) = last.get(&object).filter(|earlier| earlier.uid == write.uid) {
                // A deletion may not know how new the object was; the write before it does.
                write.revision = write.revision.max(earlier.revision);
                write.gone |= earlier.gone;
            }
            last.insert(object, write);
        }
        last.into_values().collect()
    }
}

/// Adds a write of a cached kind to the current session, if there is one.
pub(crate) fn note(write: WriteRef) {
    let _ = CURRENT.try_with(|session| session.0.seen_later.lock().push(write));
}

/// Marks the current session, if there is one, as having written.
pub(crate) fn note_any() {
    let _ = CURRENT.try_with(|session| session.0.any.store(true, Ordering::Relaxed));
}
