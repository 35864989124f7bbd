//! A cache with the unseen writes laid over.

use std::{
    ops::{Deref, DerefMut},
    sync::atomic::{AtomicUsize, Ordering},
};

use parking_lot::{Mutex, MutexGuard};
use windlass_cache::{ObjectKey, Query, RawObject};

use super::Admission;
use super::{
    CacheView, State, Write, WriteRef,
    pending::{Pending, Writes},
    postings::Term,
    seen::has_seen,
};

/// The writes that a cache has not seen yet.
///
/// Each cache has a separate record: watches with different selectors progress independently.
pub(crate) struct UnseenWrites {
    cache: Box<dyn CacheView>,
    pending: Mutex<Pending>,
    /// The number of pending writes: a read without unseen writes takes no lock.
    count: AtomicUsize,
}

/// The locked writes. Dropping the guard counts the writes.
struct PendingGuard<'a> {
    pending: MutexGuard<'a, Pending>,
    count: &'a AtomicUsize,
}

impl Deref for PendingGuard<'_> {
    type Target = Pending;

    fn deref(&self) -> &Pending {
        &self.pending
    }
}

impl DerefMut for PendingGuard<'_> {
    fn deref_mut(&mut self) -> &mut Pending {
        &mut self.pending
    }
}

impl Drop for PendingGuard<'_> {
    fn drop(&mut self) {
        self.count.store(self.pending.len(), Ordering::Release);
    }
}

impl UnseenWrites {
    pub(super) fn new(cache: Box<dyn CacheView>) -> Self {
        Self { cache, pending: Mutex::default(), count: AtomicUsize::new(0) }
    }

    /// Returns whether objects with this API version and kind have the form of the cache's objects.
    pub(super) fn has_shape(&self, api_version: &str, kind: &str) -> bool {
        self.cache.has_shape(api_version, kind)
    }

    /// Returns the API version and kind of the cache's objects, if the cache holds only the metadata.
    pub(super) fn kind_of_metadata(&self) -> Option<(&str, &str)> {
        self.cache.kind_of_metadata()
    }

    /// Returns the object that the cache holds.
    pub(super) fn cached(&self, key: &ObjectKey) -> Option<RawObject> {
        self.cache.object(key)
    }

    /// Returns whether the watch will show a write: the object, or the end of the object.
    ///
    /// A watch with a selector shows no write to an object that the selector has never matched. If only the server evaluates the selector,
    /// the watch is expected to show a write to an object that the cache holds.
    pub(super) fn will_show(&self, key: &ObjectKey, write: &Write) -> bool {
        let is_cached = || self.cached(key).is_some_and(|cached| cached.uid() == &*write.uid);
        match &write.state {
            State::Alive(object) if self.cache.admits(object) == Admission::Held => true,
            State::Alive(_) => is_cached(),
            State::Gone => {
                let pending = self.lock();
                let is_pending = pending.get(key).is_some_and(|before| {
                    before.uid == write.uid && before.is_shown && !before.state.is_gone()
                });
                drop(pending);
                is_pending || is_cached()
            }
        }
    }

    fn lock(&self) -> PendingGuard<'_> {
        PendingGuard { pending: self.pending.lock(), count: &self.count }
    }

    /// Remembers a write.
    pub(super) fn note(&self, key: &ObjectKey, mut write: Write) {
        write.noted_at = self.cache.high_water_mark(key.namespace());
        let (mut pending, terms) = self.pending_with_terms(&write.state);
        pending.note(key, write, terms, self.cache.as_ref());
    }

    /// Returns the pending writes, and the terms of an object in all indexes of the pending writes.
    fn pending_with_terms(&self, state: &State) -> (PendingGuard<'_>, Vec<Term>) {
        let (mut terms, mut known) = (Vec::new(), 0);
        loop {
            let pending = self.lock();
            let unknown = pending.indexes_from(known);
            if unknown.is_empty() {
                return (pending, terms);
            }
            // A user's index function may read this cache.
            drop(pending);
            known += unknown.len();
            if let State::Alive(object) = state {
                unknown.iter().for_each(|index| terms.extend(self.terms(index, object)));
            }
        }
    }

    /// Returns the terms of an object in a named index. Calls a user's function: no lock may be held.
    fn terms<'a>(&self, index: &'a str, object: &RawObject) -> impl Iterator<Item = Term> + use<'a> {
        self.cache.index_values(index, object).into_iter().map(move |value| Term::indexed(index, &value))
    }

    /// Makes the pending writes known by the values of a named index.
    fn learn(&self, index: &str) {
        if !self.cache.has_index(index) {
            // The index does not exist, or the cache is adding the index.
            return;
        }
        let Some(objects) = self.lock().begin_index(index) else { return };
        let with_terms = |(key, object)| {
            let terms: Vec<Term> = self.terms(index, &object).collect();
            (key, object, terms)
        };
        let objects: Vec<_> = objects.into_iter().map(with_terms).collect();
        self.lock().complete_index(index, objects);
    }

    /// Removes the writes that the cache has seen, and returns the number of writes that stay.
    pub(crate) fn sweep(&self) -> usize {
        let mut pending = self.lock();
        pending.sweep(self.cache.as_ref());
        pending.len()
    }

    /// Returns whether the cache may have seen all writes.
    pub(crate) fn is_empty(&self) -> bool {
        self.count.load(Ordering::Acquire) == 0
    }

    #[cfg(test)]
    pub(super) fn len(&self) -> usize {
        self.lock().len()
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
            let pending = self.lock();
            if pending.ended() != ended {
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
        if let Some((index, _)) = query.named_index()
            && !self.is_empty()
        {
            self.learn(index);
        }
        let mut pending = self.lock();
        let written = pending.take_unseen(query, self.cache.as_ref());
        (written, pending.ended())
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
            Admission::Unknown => self.cache.object(key).is_some_and(|cached| cached.uid() == written.uid()),
        }
    }

    /// Returns the unseen write of a key. Called before the cache is read: a write that is removed here is in
    /// the cache.
    fn unseen_of(&self, key: &ObjectKey) -> Option<Write> {
        if self.is_empty() {
            return None;
        }
        let mut pending = self.lock();
        let write = pending.get(key)?;
        if write.is_seen(key, self.cache.as_ref()) {
            pending.remove(key);
            return None;
        }
        Some(write.clone())
    }
}

impl Write {
    pub(super) fn is_seen(&self, key: &ObjectKey, cache: &dyn CacheView) -> bool {
        self.is_forgotten(key, cache) || has_seen(key, &self.uid, self.revision, self.state.is_gone(), cache)
    }

    /// Returns whether the high-water mark went back. Such a mark belongs to a server that was replaced or restored, and that does not know
    /// the write.
    pub(super) fn is_forgotten(&self, key: &ObjectKey, cache: &dyn CacheView) -> bool {
        cache.high_water_mark(key.namespace()) < self.noted_at
    }

    /// Returns whether the write is newer than the object of the same name in the cache.
    pub(super) fn replaces(&self, cached: &RawObject) -> bool {
        match &self.state {
            State::Gone => cached.uid() == &*self.uid,
            State::Alive(_) => cached.revision() < self.revision,
        }
    }
}
