//! A cache with the unseen writes laid over it.

use windlass_cache::{ObjectKey, RawObject};

use super::{CacheView, Pending, State, UnseenWrites, Write, WriteRef, seen::has_seen};

/// The least number of writes at which it is worth looking for those that were seen.
const SWEEP: usize = 256;

impl UnseenWrites {
    /// Remembers a write.
    pub(super) fn note(&self, key: &ObjectKey, mut write: Write) {
        let mut pending = self.pending.lock();
        if let Some(before) = pending.writes.get(key).filter(|before| before.uid == write.uid) {
            // Two writes to one object may be answered in either order: the newer one counts, and gone stays gone.
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

    /// Whether the cache has told of a write.
    pub(crate) fn has_seen(&self, write: &WriteRef) -> bool {
        has_seen(&write.key, &write.uid, write.revision, write.gone, self.cache.as_ref())
    }

    /// The object under `key`. `read` reads the cache; `holds` says whether the cache would hold a written object.
    pub(crate) fn get(
        &self,
        key: &ObjectKey,
        holds: impl Fn(&RawObject) -> bool,
        read: impl FnOnce() -> Option<RawObject>,
    ) -> Option<RawObject> {
        match self.unseen_of(key) {
            None => read(),
            Some(Write { state: State::Alive(object), .. }) => holds(&object).then_some(object),
            // Another object of that name may have come since.
            Some(Write { state: State::Gone, uid, .. }) => read().filter(|object| object.uid() != &*uid),
        }
    }

    /// The objects of a list; `wanted` says whether the list would hold a written object.
    pub(crate) fn list(
        &self,
        wanted: impl Fn(&RawObject) -> bool,
        read: impl FnOnce() -> Vec<RawObject>,
    ) -> Vec<RawObject> {
        let unseen = self.unseen();
        let mut objects = read();
        for (key, write) in unseen {
            match write.state {
                State::Gone => objects.retain(|object| *object.uid() != *write.uid),
                State::Alive(written) => {
                    objects.retain(|object| {
                        (object.namespace(), object.name()) != (key.namespace(), key.name())
                    });
                    if wanted(&written) {
                        objects.push(written);
                    }
                }
            }
        }
        objects
    }

    // Both of these come before the cache is read: a write that is forgotten here is one that the cache has.

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
        has_seen(key, &self.uid, self.revision, self.state.is_gone(), cache)
    }
}

impl State {
    fn is_gone(&self) -> bool {
        matches!(self, Self::Gone)
    }
}
