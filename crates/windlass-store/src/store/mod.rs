//! The revisioned store: a global revision, persistent maps, an event log per resource.
//!
//! Readers take a [`View`], an immutable picture of the whole server at a revision, without a lock. Writers
//! go through one commit lock. A snapshot of a server is a `View`; a fork is a [`Store`] that starts from a
//! view.

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

pub use self::derived::Derived;
use self::history::History;
pub use self::history::Retention;
use self::label_index::LabelIndex;
pub use self::labels::{LabelSet, Labels};
pub use self::log::{Change, Event, Log, Tail, Watched};
pub use self::object::{Draft, Layout, ObjectAttrs, Stored, managed_fields_in, read_value, write_object};
pub use self::view::{Expiry, ResourceId, View};
use windlass_wire::ApiError;

/// How many views of the past are kept for the next pages of lists.
const MAX_PAST_VIEWS: usize = 32;

/// How many forgotten resources have a start of the history of their own.
const MAX_RESTARTS: usize = 1_000;

/// The store of a server.
pub struct Store {
    view: ArcSwap<View>,
    commit: Mutex<History>,
    logs: RwLock<BTreeMap<ResourceId, Arc<Log>>>,
    /// The newest revision that is also in the logs: the largest revision for a bookmark.
    published: AtomicU64,
    /// Logs that are made now reach back to this revision.
    log_start: AtomicU64,
    /// The start of the history of a new log, for resources with a forgotten predecessor of the same name.
    restarts: RwLock<HashMap<ResourceId, u64>>,
    /// Snapshots behind continue tokens. The snapshots are no older than the history, and therefore keep no
    /// extra object alive.
    past: Mutex<VecDeque<(ResourceId, Arc<View>)>>,
    labels: Labels,
    /// Of the resources that were listed by labels.
    label_indexes: Mutex<HashMap<ResourceId, Arc<Mutex<Option<LabelIndex>>>>>,
}

/// A write of an object.
pub struct Write<'a> {
    /// The resource of the object.
    pub id: &'a ResourceId,
    /// `namespace/name`, or the name of a cluster-scoped object.
    pub key: &'a str,
    /// The revision that the present object must have; `None`: there must be none.
    pub expected: Option<u64>,
    /// The object to store; `None` removes the present object.
    pub draft: Option<Draft>,
    /// The time of the write.
    pub now: Timestamp,
}

/// Why a write was not committed.
#[derive(Debug)]
pub enum CommitError {
    /// The present object differs from the expected object.
    Conflict,
    /// Another object holds an exclusive claim of this object.
    ClaimTaken,
    /// Another object of the same commit differs from the expected object.
    QuotaConflict,
    /// The guard refused the write.
    Refused(ApiError),
}

impl Store {
    /// Creates an empty store. The first write gets the revision after `start`.
    pub fn new(start: u64, retention: Retention) -> Self {
        Self::fork(&View::empty(), start, retention)
    }

    /// Creates a store from a snapshot of another store, sharing memory.
    ///
    /// The revision of the new store is `start`, or the revision of the snapshot if that is higher.
    pub fn fork(view: &View, start: u64, retention: Retention) -> Self {
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

    /// Returns the newest state.
    pub fn view(&self) -> Arc<View> {
        self.view.load_full()
    }

    /// Returns the newest revision of which every log has the events.
    pub fn published(&self) -> u64 {
        self.published.load(Ordering::Acquire)
    }

    /// Returns the label sets of stored objects.
    pub fn labels(&self) -> &Labels {
        &self.labels
    }

    /// Writes an object if the present object is the expected object and `guard` does not refuse the write.
    ///
    /// `guard` runs under the lock, on the state that the write changes: the findings of the guard still hold
    /// after the write. A guard must be short. Returns the stored object; for a removal, the last object with
    /// the revision of the removal.
    ///
    /// # Errors
    ///
    /// [`CommitError`] has the reason of a refused write.
    pub async fn commit(
        &self,
        write: Write<'_>,
        guard: impl FnOnce(&View) -> Result<(), ApiError>,
    ) -> Result<Arc<Stored>, CommitError> {
        self.commit_with(write, Vec::new(), guard).await
    }

    /// Works like [`Store::commit`], together with writes of other objects: all writes happen, or none. The
    /// other objects have the lower revisions.
    pub async fn commit_with(
        &self,
        write: Write<'_>,
        companions: Vec<Write<'_>>,
        guard: impl FnOnce(&View) -> Result<(), ApiError>,
    ) -> Result<Arc<Stored>, CommitError> {
        // Many commits in a row, such as the deletion of a collection, let other requests run in between.
        tokio::task::consume_budget().await;
        let id = write.id;
        let stored = self.commit_together(write, companions, guard)?;
        if self.log(id).is_crowded() {
            // Yield before the reply: watches then send the event before the client writes again.
            tokio::task::yield_now().await;
        }
        Ok(stored)
    }

    /// Works like [`Store::commit`], for a server under construction, where awaiting is not possible.
    pub fn commit_now(
        &self,
        write: Write<'_>,
        guard: impl FnOnce(&View) -> Result<(), ApiError>,
    ) -> Result<Arc<Stored>, CommitError> {
        self.commit_together(write, Vec::new(), guard)
    }

    fn commit_together(
        &self,
        write: Write<'_>,
        companions: Vec<Write<'_>>,
        guard: impl FnOnce(&View) -> Result<(), ApiError>,
    ) -> Result<Arc<Stored>, CommitError> {
        let mut history = self.commit.lock();
        let history_start = history.start();
        let view = self.view.load_full();
        let is_expected =
            |write: &Write<'_>| view.get(write.id, write.key).map(|old| old.rv) == write.expected;
        if !is_expected(&write) {
            return Err(CommitError::Conflict);
        }
        if !companions.iter().all(is_expected) {
            return Err(CommitError::QuotaConflict);
        }
        guard(&view).map_err(CommitError::Refused)?;
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
        let lost =
            if history.start() == history_start { Vec::new() } else { self.forget_past(history.start()) };
        self.published.store(revision, Ordering::Release);
        drop(history);
        drop(lost);
        others.iter().for_each(|log| log.wake());
        log.wake();
        Ok(stored)
    }

    /// Returns the event log of a resource.
    pub fn log(&self, id: &ResourceId) -> Arc<Log> {
        if let Some(log) = self.logs.read().get(id) {
            return Arc::clone(log);
        }
        let mut logs = self.logs.write();
        let restart = self.restarts.read().get(id).copied().unwrap_or(0);
        let start = self.log_start.load(Ordering::Acquire).max(restart);
        Arc::clone(logs.entry(id.clone()).or_insert_with(|| Arc::new(Log::new(start))))
    }

    /// Forgets all history: watches and lists of earlier revisions get an error about the expired revision.
    pub fn compact(&self) {
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
        let lost = self.forget_past(published);
        drop(history);
        drop(lost);
    }

    /// Forgets the events that are older than the history keeps, and that are still there because the events take little memory. An event
    /// keeps the object before the change, and after a burst of writes, an object may keep a page of memory.
    pub fn forget_old_events(&self, now: Timestamp) {
        let mut history = self.commit.lock();
        history.expire(now);
        let lost = self.forget_past(history.start());
        drop(history);
        drop(lost);
    }

    /// Removes every object of a resource at a new revision, without events, and ends the resource's watches:
    /// the resource is no longer served.
    pub fn forget(&self, id: &ResourceId) {
        let guard = self.commit.lock();
        let view = self.view.load_full();
        let revision = view.revision() + 1;
        self.view.store(Arc::new(view.without_resource(revision, id)));
        // The log of a new resource with the same name must not promise the events of this resource.
        let mut restarts = self.restarts.write();
        if restarts.len() >= MAX_RESTARTS {
            // All new logs start here: a watch from an earlier revision of a resource without a log lists again.
            self.log_start.store(revision, Ordering::Release);
            restarts.clear();
        }
        restarts.insert(id.clone(), revision);
        drop(restarts);
        let closed = self.logs.write().remove(id);
        self.label_indexes.lock().remove(id);
        self.published.store(revision, Ordering::Release);
        drop(guard);
        if let Some(closed) = closed {
            closed.close();
        }
    }

    /// Returns the keys of the objects in `view` that have a label with a given value, for the choice in
    /// `choices` with the fewest objects. Sorted by key.
    ///
    /// `None` if `view` is too old for the index, or if an index would not help: most objects have the labels.
    pub fn keys_by_label(
        &self,
        view: &View,
        id: &ResourceId,
        choices: &[(&str, &[String])],
    ) -> Option<Vec<Arc<str>>> {
        let index = Arc::clone(self.label_indexes.lock().entry(id.clone()).or_default());
        // An index takes long to build for many objects: only lists of the same resource wait for the index.
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

    /// Keeps a view for the continuation of a list of `id`, as long as the history reaches back to the view.
    pub fn keep(&self, id: &ResourceId, view: &Arc<View>) {
        let mut past = self.past.lock();
        if past.iter().any(|(of, kept)| of == id && kept.revision() == view.revision()) {
            return;
        }
        if past.len() == MAX_PAST_VIEWS {
            past.pop_front();
        }
        past.push_back((id.clone(), Arc::clone(view)));
    }

    /// Drops the kept views that the history does not reach back to. Returns the indexes of labels that have lost events: an index of many
    /// objects takes long to drop.
    fn forget_past(&self, start: u64) -> Vec<Arc<Mutex<Option<LabelIndex>>>> {
        self.past.lock().retain(|(_, kept)| kept.revision() >= start);
        let (view, logs) = (self.view.load(), self.logs.read());
        let is_lost = |id: &ResourceId, index: &mut Arc<Mutex<Option<LabelIndex>>>| {
            // A list uses a locked index, and brings the index up to date.
            let index = index.try_lock();
            let index = index.as_deref().and_then(Option::as_ref);
            index.zip(logs.get(id)).is_some_and(|(index, log)| index.is_lost(&view, id, log))
        };
        self.label_indexes.lock().extract_if(is_lost).map(|(_, index)| index).collect()
    }

    /// Returns a view that shows the resource `id` at `revision`; other resources may be newer.
    ///
    /// Returns `None` if the history does not reach back that far, or `revision` is in the future.
    pub fn view_at(&self, id: &ResourceId, revision: u64) -> Option<Arc<View>> {
        let log = self.log(id);
        // The log may be ahead of a view that was loaded before, never behind a view that was loaded under
        // the lock.
        let guard = self.commit.lock();
        let view = self.view.load_full();
        let events = log.after(revision)?;
        drop(guard);
        if view.revision() <= revision {
            return (view.revision() == revision).then_some(view);
        }
        // A view that was made below has the past of only one resource.
        let is_wanted = |(of, kept): &&(ResourceId, Arc<View>)| of == id && kept.revision() == revision;
        if let Some((_, kept)) = self.past.lock().iter().find(is_wanted) {
            return Some(Arc::clone(kept));
        }
        // The first of several events of an object knows the object's state at the revision.
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

/// Makes the next view for a write with a fulfilled expectation, and the event of the write.
fn step(view: &View, write: Write<'_>) -> Result<(View, Event), CommitError> {
    let Write { id, key, draft, .. } = write;
    let old = view.get(id, key).cloned();
    let revision = view.revision() + 1;
    let key: Arc<str> = key.into();
    let (next, change, object) = match (draft, &old) {
        (Some(draft), old) => {
            if draft.claims().iter().any(|claim| view.is_claimed(id, claim, &key)) {
                return Err(CommitError::ClaimTaken);
            }
            let stored = Arc::new(draft.at(revision));
            let change = if old.is_some() { Change::Modified } else { Change::Added };
            (view.with(revision, id, &key, Arc::clone(&stored)), change, stored)
        }
        (None, Some(old)) => (view.without(revision, id, &key), Change::Deleted, Arc::new(old.at(revision))),
        (None, None) => return Err(CommitError::Conflict),
    };
    Ok((next, Event { rv: revision, change, key, object, old }))
}
