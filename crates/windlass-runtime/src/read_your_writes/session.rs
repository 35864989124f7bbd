//! The writes of each reconcile.

use std::{
    collections::BTreeMap,
    sync::{
        Arc,
        atomic::{AtomicBool, Ordering},
    },
};

use parking_lot::Mutex;
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
}

tokio::task_local! {
    static CURRENT: Session;
}

impl Session {
    /// Runs a reconcile as this session.
    pub(crate) async fn run<F: Future>(&self, reconcile: F) -> F::Output {
        CURRENT.scope(self.clone(), reconcile).await
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
