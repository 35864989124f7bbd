//! A cache with the unseen writes laid over.

use hashbrown::HashMap;
use parking_lot::Mutex;
use windlass_cache::{ObjectKey, Query, RawObject};

use super::Admission;
use super::{
    CacheView, State, Write, WriteRef,
    postings::{Postings, Term},
    seen::has_seen,
};
use crate::namespaced_name::NamespacedName;

/// The smallest number of writes at which seen writes are removed.
const SWEEP: usize = 256;

/// The writes that a cache has not seen yet.
///
/// Each cache has a separate record: watches with different selectors progress independently.
pub(crate) struct UnseenWrites {
    cache: Box<dyn CacheView>,
    pending: Mutex<Pending>,
}

type Writes = HashMap<ObjectKey, Write, foldhash::fast::FixedState>;

#[derive(Default)]
struct Pending {
    writes: Writes,
    /// Finds the written objects of a list without a look at all writes.
    postings: Postings,
    /// The number of writes at which seen writes are removed.
    sweep_at: usize,
    /// The number of ended objects with an end that the cache has seen.
    ended: u64,
}

impl UnseenWrites {
    pub(super) fn new(cache: Box<dyn CacheView>) -> Self {
        Self { cache, pending: Mutex::default() }
    }

    /// Returns whether objects with this API version and kind have the form of the cache's objects.
    pub(super) fn has_shape(&self, api_version: &str, kind: &str) -> bool {
        self.cache.has_shape(api_version, kind)
    }

    /// Returns the uid and the resource version of the object that the cache holds.
    pub(super) fn cached(&self, key: &ObjectKey) -> Option<(String, u64)> {
        self.cache.object(key)
    }

    /// Returns whether the watch will show a write: the object, or the end of the object.
    ///
    /// A watch with a selector shows no write to an object that the selector has never matched. If only the server evaluates the selector,
    /// the watch is expected to show a write to an object that the cache holds.
    pub(super) fn will_show(&self, key: &ObjectKey, write: &Write) -> bool {
        let is_cached = || self.cached(key).is_some_and(|(uid, _)| *uid == *write.uid);
        match &write.state {
            State::Alive(object) if self.cache.admits(object) == Admission::Held => true,
            State::Alive(_) => is_cached(),
            State::Gone => {
                let pending = self.pending.lock();
                let is_pending = pending.writes.get(key).is_some_and(|before| {
                    before.uid == write.uid && before.is_shown && !before.state.is_gone()
                });
                drop(pending);
                is_pending || is_cached()
            }
        }
    }

    /// Remembers a write.
    pub(super) fn note(&self, key: &ObjectKey, mut write: Write) {
        write.noted_at = self.cache.high_water_mark(key.namespace());
        let mut pending = self.pending.lock();
        let is_newer = |before: &Write| before.uid != write.uid && before.revision > write.revision;
        if pending
            .writes
            .get(key)
            .is_some_and(|before| is_newer(before) && !before.is_forgotten(key, self.cache.as_ref()))
        {
            // The response to a write of an earlier object of this name arrives late.
            return;
        }
        if let Some(before) = pending.writes.get(key).filter(|before| before.uid == write.uid) {
            // The responses to two writes of an object may arrive in either order: the newer write wins, and
            // a gone object stays gone.
            let newer = write.revision.max(before.revision);
            if write.state.is_gone() || before.state.is_gone() {
                write.state = State::Gone;
            } else if before.revision > write.revision {
                write.state = before.state.clone();
            }
            write.revision = newer;
        }
        pending.insert(key, write, self.cache.as_ref());
        if pending.writes.len() >= pending.sweep_at.max(SWEEP) {
            pending.sweep(self.cache.as_ref());
        }
    }

    /// Removes the writes that the cache has seen, and returns the number of writes that stay.
    pub(crate) fn sweep(&self) -> usize {
        let mut pending = self.pending.lock();
        pending.sweep(self.cache.as_ref());
        pending.writes.len()
    }

    /// Returns whether the cache may have seen all writes.
    pub(crate) fn is_empty(&self) -> bool {
        self.pending.lock().writes.is_empty()
    }

    #[cfg(test)]
    pub(super) fn len(&self) -> usize {
        self.pending.lock().writes.len()
    }

    /// Returns whether the cache has seen a write, or will never show the write.
    pub(crate) fn has_seen(&self, write: &WriteRef) -> bool {
        !write.is_shown_by(self)
            || has_seen(&write.key, &write.uid, write.revision, write.gone, self.cache.as_ref())
    }

    /// Returns the object under `key`. `read` reads the cache.
    pub(crate) fn get(&self, key: &ObjectKey, read: impl FnOnce() -> Option<RawObject>) -> Option<RawObject> {
        match self.unseen_of(key) {
            None => read(),
            Some(Write { state: State::Alive(object), .. }) => self.is_held(key, &object).then_some(object),
            // Another object of that name may exist since.
            Some(Write { state: State::Gone, uid, .. }) => read().filter(|object| object.uid() != &*uid),
        }
    }

    /// Returns the objects that match a query. `read` reads the cache. Takes time for the objects of the answer, and for the unseen writes that
    /// have the same owner, the same value in the named index, or the same namespace.
    pub(crate) fn list<E>(
        &self,
        query: &Query<'_>,
        read: impl Fn() -> Result<Vec<RawObject>, E>,
    ) -> Result<Vec<RawObject>, E> {
        loop {
            let (mut written, ended) = self.written(query);
            let mut objects = read()?;
            let pending = self.pending.lock();
            if pending.ended != ended {
                // The cache may have lost an object since `objects` was read.
                continue;
            }
            pending.lay_over(&mut objects, &mut written, self.cache.as_ref());
            drop(pending);
            let unread = written.into_iter().filter_map(|(key, write)| match write.state {
                State::Alive(object) => Some((key, object)),
                State::Gone => None,
            });
            let held =
                unread.filter(|(key, object)| self.matches(query, object) && self.is_held(key, object));
            objects.extend(held.map(|(_, object)| object));
            return Ok(objects);
        }
    }

    /// Returns the written objects that may match a query and that the cache has not seen, and [`Pending::ended`]. Called before the cache is
    /// read: the cache has the writes that are left out here.
    fn written(&self, query: &Query<'_>) -> (Writes, u64) {
        let mut pending = self.pending.lock();
        let mut written = Writes::default();
        if pending.writes.is_empty() {
            return (written, pending.ended);
        }
        let cache = self.cache.as_ref();
        for key in pending.candidates(query, cache) {
            let Some(write) = pending.writes.get(&key) else { continue };
            if write.is_seen(&key, cache) {
                pending.remove(&key, cache);
            } else if !write.state.is_gone() {
                written.insert(key, write.clone());
            }
        }
        (written, pending.ended)
    }

    fn matches(&self, query: &Query<'_>, object: &RawObject) -> bool {
        query.matches(object)
            && query.named_index().is_none_or(|(index, value)| {
                self.cache.index_values(index, object).iter().any(|of_object| of_object == value)
            })
    }

    /// Returns whether the cache holds a written object after the watch has seen the write. With a field
    /// selector, only the server can decide: an object in the cache stays, and a new object appears with the
    /// watch event.
    fn is_held(&self, key: &ObjectKey, written: &RawObject) -> bool {
        match self.cache.admits(written) {
            Admission::Held => true,
            Admission::NotHeld => false,
            Admission::Unknown => self.cache.object(key).is_some_and(|(uid, _)| uid == written.uid()),
        }
    }

    /// Returns the unseen write of a key. Called before the cache is read: a write that is removed here is in
    /// the cache.
    fn unseen_of(&self, key: &ObjectKey) -> Option<Write> {
        let mut pending = self.pending.lock();
        let write = pending.writes.get(key)?;
        if write.is_seen(key, self.cache.as_ref()) {
            pending.remove(key, self.cache.as_ref());
            return None;
        }
        Some(write.clone())
    }
}

impl Pending {
    fn insert(&mut self, key: &ObjectKey, write: Write, cache: &dyn CacheView) {
        self.remove(key, cache);
        if let State::Alive(object) = &write.state {
            self.postings.insert(key, object, cache);
        }
        self.writes.insert(key.clone(), write);
    }

    fn remove(&mut self, key: &ObjectKey, cache: &dyn CacheView) {
        match self.writes.remove(key) {
            Some(Write { state: State::Alive(object), .. }) => self.postings.remove(key, &object, cache),
            Some(Write { state: State::Gone, .. }) => self.ended += 1,
            None => {}
        }
    }

    /// Removes the objects of the cache with a later write, and adds these objects to `written`. Removes
    /// writes from `written` that the cache shows in a newer form. Meanwhile, other tasks may have forgotten
    /// a write of `written`, or may have written.
    fn lay_over(&self, objects: &mut Vec<RawObject>, written: &mut Writes, cache: &dyn CacheView) {
        if self.writes.is_empty() && written.is_empty() {
            return;
        }
        objects.retain(|object| {
            let name = NamespacedName::new(object.namespace(), object.name());
            let write = self.writes.get_key_value(&name).or_else(|| written.get_key_value(&name));
            let Some((key, write)) = write else { return true };
            if !write.replaces(object) || write.is_forgotten(key, cache) {
                written.remove(&name);
                return true;
            }
            let (key, write) = (key.clone(), write.clone());
            written.insert(key, write);
            false
        });
    }

    /// Returns the keys of the writes that may match a query.
    fn candidates(&mut self, query: &Query<'_>, cache: &dyn CacheView) -> Vec<ObjectKey> {
        let writes = &self.writes;
        if let Some((index, _)) = query.named_index() {
            if !cache.has_index(index) {
                // The index does not exist, or the cache is adding the index.
                return writes.keys().cloned().collect();
            }
            let objects = writes.iter().filter_map(|(key, write)| match &write.state {
                State::Alive(object) => Some((key, object)),
                State::Gone => None,
            });
            self.postings.learn(index, objects, cache);
        }
        match Term::of_query(query) {
            Some(term) => self.postings.keys(term).cloned().collect(),
            None => self.writes.keys().cloned().collect(),
        }
    }

    fn sweep(&mut self, cache: &dyn CacheView) {
        let seen = self.writes.iter().filter(|(key, write)| write.is_seen(key, cache));
        for key in seen.map(|(key, _)| key.clone()).collect::<Vec<_>>() {
            self.remove(&key, cache);
        }
        self.sweep_at = SWEEP.max(self.writes.len() * 2);
        self.writes.shrink_to(self.sweep_at);
    }
}

impl Write {
    fn is_seen(&self, key: &ObjectKey, cache: &dyn CacheView) -> bool {
        self.is_forgotten(key, cache) || has_seen(key, &self.uid, self.revision, self.state.is_gone(), cache)
    }

    /// Returns whether the high-water mark went back. Such a mark belongs to a server that was replaced or restored, and that does not know
    /// the write.
    fn is_forgotten(&self, key: &ObjectKey, cache: &dyn CacheView) -> bool {
        cache.high_water_mark(key.namespace()) < self.noted_at
    }

    /// Returns whether the write is newer than the object of the same name in the cache.
    fn replaces(&self, cached: &RawObject) -> bool {
        match &self.state {
            State::Gone => cached.uid() == &*self.uid,
            State::Alive(_) => cached.revision() < self.revision,
        }
    }
}
