//! The revisioned store: one global revision, persistent maps, one bounded event log per resource.
//!
//! Readers take a [`View`], an immutable picture of the whole server at one revision, without a lock. Writers go
//! through one commit lock. A snapshot of a server is a `View`; a fork is a [`Store`] that starts from one.

mod log;
mod map;
#[cfg(test)]
mod tests;

use std::collections::BTreeMap;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use arc_swap::ArcSwap;
use parking_lot::{Mutex, RwLock};
use serde_json::Value;

pub(crate) use self::log::{Change, Event, Log, Tail};
pub(crate) use self::map::{ResourceId, Stored, View, write_object};

/// The store of one server.
pub(crate) struct Store {
    view: ArcSwap<View>,
    commit: Mutex<()>,
    logs: RwLock<BTreeMap<ResourceId, Arc<Log>>>,
    /// The newest revision that is in the logs too: what a bookmark may promise.
    published: AtomicU64,
    /// The revision this store began with; older history is somewhere else.
    base: u64,
}

/// Why a write was not committed: another one came first.
#[derive(Debug)]
pub(crate) struct Raced;

impl Store {
    /// Creates an empty store whose first write gets the revision after `start`.
    pub(crate) fn new(start: u64) -> Self {
        Self::fork(&View::empty(), start)
    }

    /// Creates a store from a snapshot of another one, sharing its memory.
    ///
    /// The revision of the new store is `start`, or the revision of the snapshot if that is higher.
    pub(crate) fn fork(view: &View, start: u64) -> Self {
        let base = view.revision().max(start);
        Self {
            view: ArcSwap::from_pointee(view.clone().at(base)),
            commit: Mutex::new(()),
            logs: RwLock::default(),
            published: AtomicU64::new(base),
            base,
        }
    }

    /// The newest state.
    pub(crate) fn view(&self) -> Arc<View> {
        self.view.load_full()
    }

    /// The newest revision whose events every log holds.
    pub(crate) fn published(&self) -> u64 {
        self.published.load(Ordering::Acquire)
    }

    /// Writes one object if its present revision is `expected` (`None`: it must be absent).
    ///
    /// `new` is the object to store, `None` removes it. The reply is what is stored now; for a removal, the last
    /// object with the revision of its removal.
    pub(crate) fn commit(
        &self,
        id: &ResourceId,
        key: &str,
        expected: Option<u64>,
        new: Option<Value>,
    ) -> Result<Arc<Stored>, Raced> {
        let guard = self.commit.lock();
        let view = self.view.load_full();
        let old = view.get(id, key);
        if old.as_ref().map(|stored| stored.rv) != expected {
            return Err(Raced);
        }
        let revision = view.revision() + 1;
        let (next, change, stored) = match (new, &old) {
            (Some(value), old) => {
                let stored = Arc::new(Stored::new(value, revision));
                let change = if old.is_some() { Change::Modified } else { Change::Added };
                (view.with(revision, id, key, Arc::clone(&stored)), change, stored)
            }
            (None, Some(old)) => {
                let last = Arc::new(Stored::new(old.value.clone(), revision));
                (view.without(revision, id, key), Change::Deleted, last)
            }
            (None, None) => return Err(Raced),
        };
        let log = self.log(id);
        self.view.store(Arc::new(next));
        log.append(Event { rv: revision, change, key: key.into(), object: Arc::clone(&stored), old });
        self.published.store(revision, Ordering::Release);
        drop(guard);
        log.wake();
        Ok(stored)
    }

    /// The event log of a resource.
    pub(crate) fn log(&self, id: &ResourceId) -> Arc<Log> {
        if let Some(log) = self.logs.read().get(id) {
            return Arc::clone(log);
        }
        let mut logs = self.logs.write();
        Arc::clone(logs.entry(id.clone()).or_insert_with(|| Arc::new(Log::new(self.base))))
    }

    /// Forgets all history: watches and lists of earlier revisions are told that those have expired.
    pub(crate) fn compact(&self) {
        let published = self.published();
        for log in self.logs.read().values() {
            log.compact(published);
        }
    }

    /// Removes every object of a resource without events and ends its watches: its definition is gone.
    pub(crate) fn forget(&self, id: &ResourceId) {
        let guard = self.commit.lock();
        let view = self.view.load_full();
        self.view.store(Arc::new(view.without_resource(id)));
        let fresh = Arc::new(Log::new(view.revision()));
        let old = self.logs.write().insert(id.clone(), fresh);
        drop(guard);
        if let Some(old) = old {
            old.close();
        }
    }

    /// The state as it was at `revision`, as far as `id` is concerned: the present one with later events undone.
    ///
    /// `None` when the log does not reach back so far.
    pub(crate) fn view_at(&self, id: &ResourceId, revision: u64) -> Option<Arc<View>> {
        // The log may run ahead of a view that was loaded before, never behind one loaded under the lock.
        let guard = self.commit.lock();
        let view = self.view.load_full();
        let events = self.log(id).after(revision)?;
        drop(guard);
        if events.is_empty() && view.revision() == revision {
            return Some(view);
        }
        let undone = events.iter().rev().fold((*view).clone(), |view, event| match &event.old {
            Some(old) => view.with(revision, id, &event.key, Arc::clone(old)),
            None => view.without(revision, id, &event.key),
        });
        Some(Arc::new(undone.at(revision)))
    }
}
