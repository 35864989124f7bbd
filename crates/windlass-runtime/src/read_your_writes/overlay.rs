//! A cache with the unseen writes laid over it.

use windlass_cache::{ObjectKey, RawObject};

use super::{CacheView, Pending, State, UnseenWrites, Write, WriteRef, seen::has_seen};
use crate::informer::Admission;

/// The least number of writes at which those that the cache has seen are swept out.
const SWEEP: usize = 256;

impl UnseenWrites {
    /// Remembers a write.
    pub(super) fn note(&self, key: &ObjectKey, mut write: Write) {
        write.noted_at = self.cache.high_water_mark(key.namespace());
        let mut pending = self.pending.lock();
        if let Some(before) = pending.writes.get(key).filter(|before| before.uid == write.uid) {
            // The answers to two writes of one object may arrive in either order: the newer one wins, and gone stays gone.
            let newer = write.revision.max(before.revision);
            if write.state.is_gone() || before.state.is_gone() {
                write.state = State::Gone;
            } else if before.revision > write.revision {
                write.state = before.state.clone();
            }
            write.revision = newer;
        }
        pending.writes.insert(key.clone(), write);
        if pending.writes.len() >= pending.sweep_at.max(SWEEP) {
            pending.sweep(self.cache.as_ref());
            pending.sweep_at = pending.writes.len() * 2;
        }
    }

    /// Whether the cache has seen a write.
    pub(crate) fn has_seen(&self, write: &WriteRef) -> bool {
        has_seen(&write.key, &write.uid, write.revision, write.gone, self.cache.as_ref())
    }

    /// Returns the object under `key`. `read` reads the cache; `admits` says whether the cache would hold a written object.
    pub(crate) fn get(
        &self,
        key: &ObjectKey,
        admits: impl Fn(&RawObject) -> Admission,
        read: impl FnOnce() -> Option<RawObject>,
    ) -> Option<RawObject> {
        match self.unseen_of(key) {
            None => read(),
            Some(Write { state: State::Alive(object), .. }) => {
                self.is_held(key, &object, &admits).then_some(object)
            }
            // Another object of that name may exist since.
            Some(Write { state: State::Gone, uid, .. }) => read().filter(|object| object.uid() != &*uid),
        }
    }

    /// Returns the objects of a list. `wanted` says whether the list contains an object, `admits` whether the cache would hold it.
    pub(crate) fn list<E>(
        &self,
        wanted: impl Fn(&RawObject) -> bool,
        admits: impl Fn(&RawObject) -> Admission,
        read: impl FnOnce() -> Result<Vec<RawObject>, E>,
    ) -> Result<Vec<RawObject>, E> {
        let unseen = self.unseen();
        let mut objects = read()?;
        for (key, write) in unseen {
            match write.state {
                State::Gone => objects.retain(|object| *object.uid() != *write.uid),
                State::Alive(written) => {
                    objects.retain(|object| {
                        (object.namespace(), object.name()) != (key.namespace(), key.name())
                    });
                    if wanted(&written) && self.is_held(&key, &written, &admits) {
                        objects.push(written);
                    }
                }
            }
        }
        Ok(objects)
    }

    /// Whether the cache holds a written object once its watch has seen the write. Where only the server can tell, because of a field
    /// selector, an object that the cache holds stays, and a new one appears with its watch event.
    fn is_held(
        &self,
        key: &ObjectKey,
        written: &RawObject,
        admits: impl Fn(&RawObject) -> Admission,
    ) -> bool {
        match admits(written) {
            Admission::Held => true,
            Admission::NotHeld => false,
            Admission::Unknown => self.cache.object(key).is_some_and(|(uid, _)| uid == written.uid()),
        }
    }

    // Both of these are called before the cache is read: a write that they drop is in the cache.

    fn unseen(&self) -> Vec<(ObjectKey, Write)> {
        let mut pending = self.pending.lock();
        pending.sweep(self.cache.as_ref());
        pending.writes.iter().map(|(key, write)| (key.clone(), write.clone())).collect()
    }

    fn unseen_of(&self, key: &ObjectKey) -> Option<Write> {
        let mut pending = self.pending.lock();
        let write = pending.writes.get(key)?;
        if write.is_seen(key, self.cache.as_ref()) {
            pending.writes.remove(key);
            return None;
        }
        Some(write.clone())
    }

    #[cfg(test)]
    pub(super) fn len(&self) -> usize {
        self.pending.lock().writes.len()
    }
}

impl Pending {
    fn sweep(&mut self, cache: &dyn CacheView) {
        self.writes.retain(|key, write| !write.is_seen(key, cache));
    }
}

impl Write {
    fn is_seen(&self, key: &ObjectKey, cache: &dyn CacheView) -> bool {
        // A mark that went back belongs to a server that was replaced or restored: it knows nothing of the write.
        cache.high_water_mark(key.namespace()) < self.noted_at
            || has_seen(key, &self.uid, self.revision, self.state.is_gone(), cache)
    }
}

impl State {
    pub(super) fn is_gone(&self) -> bool {
        matches!(self, Self::Gone)
    }
}
