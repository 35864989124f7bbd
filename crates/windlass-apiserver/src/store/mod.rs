//! The revisioned store: one global revision, persistent maps, one event log per resource.
//!
//! Readers take a [`View`], an immutable picture of the whole server at one revision, without a lock. Writers go
//! through one commit lock. A snapshot of a server is a `View`; a fork is a [`Store`] that starts from one.

mod derived;
mod history;
mod label_index;
mod labels;
mod log;
mod object;
#[cfg(test)]
mod tests;
mod view;

use std::collections::{BTreeMap, BTreeSet, HashMap, VecDeque};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use arc_swap::ArcSwap;
use jiff::Timestamp;
use parking_lot::{Mutex, RwLock};

pub(crate) use self::derived::Derived;
use self::history::History;
pub(crate) use self::history::Retention;
use self::label_index::LabelIndex;
pub(crate) use self::labels::{LabelSet, Labels};
pub(crate) use self::log::{Change, Event, Log, Tail, Watched};
pub(crate) use self::object::{Draft, Facets, Layout, Stored, read_value, write_object};
pub(crate) use self::view::{ResourceId, View};
use crate::wire::ApiError;

/// How many views of the past are kept for the next pages of lists.
const MAX_PAST_VIEWS: usize = 32;

/// The store of one server.
pub(crate) struct Store {
    view: ArcSwap<View>,
    commit: Mutex<History>,
    logs: RwLock<BTreeMap<ResourceId, Arc<Log>>>,
    /// The newest revision that is in the logs too: what a bookmark may promise.
    published: AtomicU64,
    /// Logs that are made now reach back to this revision.
    log_start: AtomicU64,
    /// Where the history of a new log of these resources begins: others of the same names were forgotten.
    restarts: RwLock<HashMap<ResourceId, u64>>,
    /// Views that lists of a resource were cut off in. Within the history, they pin nothing that it does not.
    past: Mutex<VecDeque<(ResourceId, Arc<View>)>>,
    labels: Labels,
    /// Of the resources that were listed by labels.
    label_indexes: Mutex<HashMap<ResourceId, Arc<Mutex<Option<LabelIndex>>>>>,
}

/// One write of one object.
pub(crate) struct Write<'a> {
    pub(crate) id: &'a ResourceId,
    /// `namespace/name`, or the name of a cluster-scoped object.
    pub(crate) key: &'a str,
    /// The revision that the present object must have; `None`: there must be none.
    pub(crate) expected: Option<u64>,
    /// The object to store; `None` removes the present one.
    pub(crate) draft: Option<Draft>,
    pub(crate) now: Timestamp,
}

/// Why a write was not committed.
#[derive(Debug)]
pub(crate) enum Rejected {
    /// The present object is not the expected one.
    Raced,
    /// Another object claims what this one claims for itself alone.
    Claimed,
    /// An object that was to be written along with this one is not the expected one.
    Overtaken,
    /// The guard refused it.
    Guarded(ApiError),
}

impl Store {
    /// Creates an empty store whose first write gets the revision after `start`.
    pub(crate) fn new(start: u64, retention: Retention) -> Self {
        Self::fork(&View::empty(), start, retention)
    }

    /// Creates a store from a snapshot of another one, sharing its memory.
    ///
    /// The revision of the new store is `start`, or the revision of the snapshot if that is higher.
    pub(crate) fn fork(view: &View, start: u64, retention: Retention) -> Self {
        let base = view.revision().max(start);
        Self {
            view: ArcSwap::from_pointee(view.clone().at(base)),
            commit: Mutex::new(History::new(retention)),
            logs: RwLock::default(),
            published: AtomicU64::new(base),
            log_start: AtomicU64::new(base),
            restarts: RwLock::default(),
            past: Mutex::default(),
            labels: Labels::default(),
            label_indexes: Mutex::default(),
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

    /// The label sets of stored objects.
    pub(crate) fn labels(&self) -> &Labels {
        &self.labels
    }

    /// Writes one object if the present one is the expected one and `guard` does not refuse the write.
    ///
    /// `guard` runs under the lock, on the state that the write changes: what it finds holds when the write is done. It
    /// must be short. The reply is the object stored; for a removal, the last object with the revision of its removal.
    ///
    /// # Errors
    ///
    /// [`Rejected`] says why nothing was written.
    pub(crate) async fn commit(
        &self,
        write: Write<'_>,
        guard: impl FnOnce(&View) -> Result<(), ApiError>,
    ) -> Result<Arc<Stored>, Rejected> {
        self.commit_with(write, Vec::new(), guard).await
    }

    /// [`Store::commit`], together with writes of other objects: all are done, or none. The others have the lower
    /// revisions.
    pub(crate) async fn commit_with(
        &self,
        write: Write<'_>,
        companions: Vec<Write<'_>>,
        guard: impl FnOnce(&View) -> Result<(), ApiError>,
    ) -> Result<Arc<Stored>, Rejected> {
        // Many commits in a row, as those of a collection that is deleted, let other requests run in between.
        tokio::task::consume_budget().await;
        let id = write.id;
        let stored = self.commit_together(write, companions, guard)?;
        if self.log(id).is_crowded() {
            // Yields before the reply, so that watches send the event before the client writes again.
            tokio::task::yield_now().await;
        }
        Ok(stored)
    }

    /// [`Store::commit`] for a server that is being built, where nothing can be awaited.
    pub(crate) fn commit_now(
        &self,
        write: Write<'_>,
        guard: impl FnOnce(&View) -> Result<(), ApiError>,
    ) -> Result<Arc<Stored>, Rejected> {
        self.commit_together(write, Vec::new(), guard)
    }

    fn commit_together(
        &self,
        write: Write<'_>,
        companions: Vec<Write<'_>>,
        guard: impl FnOnce(&View) -> Result<(), ApiError>,
    ) -> Result<Arc<Stored>, Rejected> {
        let mut history = self.commit.lock();
        let view = self.view.load_full();
        let is_expected =
            |write: &Write<'_>| view.get(write.id, write.key).map(|old| old.rv) == write.expected;
        if !is_expected(&write) {
            return Err(Rejected::Raced);
        }
        if !companions.iter().all(is_expected) {
            return Err(Rejected::Overtaken);
        }
        guard(&view).map_err(Rejected::Guarded)?;
        let now = write.now;
        let mut steps = Vec::with_capacity(companions.len());
        for companion in companions {
            let log = self.log(companion.id);
            let (next, event) = step(steps.last().map_or(&*view, |(next, _, _)| next), companion)?;
            steps.push((next, log, event));
        }
        let log = self.log(write.id);
        let (next, event) = step(steps.last().map_or(&*view, |(next, _, _)| next), write)?;
        let stored = Arc::clone(&event.object);
        let revision = event.rv;
        self.view.store(Arc::new(next));
        let others: Vec<Arc<Log>> = steps.iter().map(|(_, log, _)| Arc::clone(log)).collect();
        let events = steps.into_iter().map(|(_, log, event)| (log, event));
        for (log, event) in events.chain([(Arc::clone(&log), event)]) {
            let (revision, weight) = (event.rv, event.weight());
            log.append(event);
            history.push(&log, revision, now, weight);
        }
        self.drop_past(history.start());
        self.published.store(revision, Ordering::Release);
        drop(history);
        others.iter().for_each(|log| log.wake());
        log.wake();
        Ok(stored)
    }

    /// The event log of a resource.
    pub(crate) fn log(&self, id: &ResourceId) -> Arc<Log> {
        if let Some(log) = self.logs.read().get(id) {
            return Arc::clone(log);
        }
        let mut logs = self.logs.write();
        let restart = self.restarts.read().get(id).copied().unwrap_or(0);
        let start = self.log_start.load(Ordering::Acquire).max(restart);
        Arc::clone(logs.entry(id.clone()).or_insert_with(|| Arc::new(Log::new(start))))
    }

    /// Forgets all history: watches and lists of earlier revisions are told that those have expired.
    pub(crate) fn compact(&self) {
        let mut history = self.commit.lock();
        history.clear();
        let published = self.published();
        self.log_start.store(published, Ordering::Release);
        self.restarts.write().clear();
        for log in self.logs.read().values() {
            log.forget_until(published);
            log.wake();
        }
        self.past.lock().clear();
    }

    /// Removes every object of a resource at a new revision, without events, and ends its watches: the resource is not
    /// served any more.
    pub(crate) fn forget(&self, id: &ResourceId) {
        let guard = self.commit.lock();
        let view = self.view.load_full();
        let revision = view.revision() + 1;
        self.view.store(Arc::new(view.without_resource(revision, id)));
        // A log that is made for a new resource of the same name must not promise the events of this one.
        self.restarts.write().insert(id.clone(), revision);
        let closed = self.logs.write().remove(id);
        self.label_indexes.lock().remove(id);
        self.published.store(revision, Ordering::Release);
        drop(guard);
        if let Some(closed) = closed {
            closed.close();
        }
    }

    /// The keys of the objects in `view` that have, for one of `choices`, a label with one of the given values: for that
    /// choice that leaves the fewest. In the order of the keys.
    ///
    /// `None` if `view` is too old for the index, or if an index would not help: most objects have the labels.
    pub(crate) fn keys_by_label(
        &self,
        view: &View,
        id: &ResourceId,
        choices: &[(&str, &[String])],
    ) -> Option<Vec<Arc<str>>> {
        let index = Arc::clone(self.label_indexes.lock().entry(id.clone()).or_default());
        // An index takes long to make for many objects: only lists of the same resource wait for it.
        let mut index = index.lock();
        let index = index.get_or_insert_with(|| LabelIndex::new(view, id));
        if !index.follow(view, id, &self.log(id)) {
            return None;
        }
        let sets = |(label, values): &(&str, &[String])| {
            values.iter().filter_map(|value| index.keys(label, value)).collect::<Vec<_>>()
        };
        let count = |sets: &Vec<&BTreeSet<_>>| sets.iter().map(|keys| keys.len()).sum::<usize>();
        let fewest = choices.iter().map(sets).min_by_key(count)?;
        if count(&fewest) * 2 > view.count(id) {
            return None;
        }
        let mut keys: Vec<Arc<str>> = fewest.iter().flat_map(|keys| keys.iter().cloned()).collect();
        if fewest.len() > 1 {
            keys.sort_unstable();
            keys.dedup();
        }
        Some(keys)
    }

    /// Keeps a view in which a list of `id` is to be continued, as long as the history reaches back to it.
    pub(crate) fn keep(&self, id: &ResourceId, view: &Arc<View>) {
        let mut past = self.past.lock();
        if past.iter().any(|(of, kept)| of == id && kept.revision() == view.revision()) {
            return;
        }
        if past.len() == MAX_PAST_VIEWS {
            past.pop_front();
        }
        past.push_back((id.clone(), Arc::clone(view)));
    }

    /// Drops the kept views that the history does not reach back to.
    fn drop_past(&self, start: u64) {
        self.past.lock().retain(|(_, kept)| kept.revision() >= start);
    }

    /// The state as it was at `revision`, as far as `id` is concerned.
    ///
    /// `None` when the history does not reach back so far, or `revision` is still to come.
    pub(crate) fn view_at(&self, id: &ResourceId, revision: u64) -> Option<Arc<View>> {
        let log = self.log(id);
        // The log may run ahead of a view that was loaded before, never behind one loaded under the lock.
        let guard = self.commit.lock();
        let view = self.view.load_full();
        let events = log.after(revision)?;
        drop(guard);
        if view.revision() <= revision {
            return (view.revision() == revision).then_some(view);
        }
        // A view that was made below has the past of its resource only.
        let is_wanted = |(of, kept): &&(ResourceId, Arc<View>)| of == id && kept.revision() == revision;
        if let Some((_, kept)) = self.past.lock().iter().find(is_wanted) {
            return Some(Arc::clone(kept));
        }
        // Of several events of an object, the first one knows its state at the revision.
        let mut before = HashMap::new();
        for event in &events {
            before.entry(&event.key).or_insert(&event.old);
        }
        let undone = before.into_iter().fold((*view).clone(), |view, (key, old)| match old {
            Some(old) => view.with(revision, id, key, Arc::clone(old)),
            None => view.without(revision, id, key),
        });
        Some(Arc::new(undone.at(revision)))
    }
}

/// Makes the next view of a write whose expectation holds, and its event.
fn step(view: &View, write: Write<'_>) -> Result<(View, Event), Rejected> {
    let Write { id, key, draft, .. } = write;
    let old = view.get(id, key).cloned();
    let revision = view.revision() + 1;
    let key: Arc<str> = key.into();
    let (next, change, object) = match (draft, &old) {
        (Some(draft), old) => {
            if draft.claims().iter().any(|claim| view.is_claimed(id, claim, &key)) {
                return Err(Rejected::Claimed);
            }
            let stored = Arc::new(draft.at(revision));
            let change = if old.is_some() { Change::Modified } else { Change::Added };
            (view.with(revision, id, &key, Arc::clone(&stored)), change, stored)
        }
        (None, Some(old)) => (view.without(revision, id, &key), Change::Deleted, Arc::new(old.at(revision))),
        (None, None) => return Err(Rejected::Raced),
    };
    Ok((next, Event { rv: revision, change, key, object, old }))
}
