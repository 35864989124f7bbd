//! A cache with the unseen writes laid over it.

use windlass_cache::{ObjectKey, RawObject};

use super::{CacheView, KindWrites, Pending, State};

/// Lays the writes of one kind over reads of its cache.
pub(crate) struct Overlay<'a> {
    writes: &'a KindWrites,
    cache: &'a dyn CacheView,
}

impl<'a> Overlay<'a> {
    pub(crate) fn new(writes: &'a KindWrites, cache: &'a dyn CacheView) -> Self {
        Self { writes, cache }
    }

    /// The object under `key`; `read` reads the cache, `in_scope` says whether the cache would hold a written object.
    pub(crate) fn get(
        &self,
        key: &ObjectKey,
        in_scope: impl Fn(&RawObject) -> bool,
        read: impl FnOnce() -> Option<RawObject>,
    ) -> Option<RawObject> {
        match self.writes.unseen_of(key, self.cache) {
            None => read(),
            Some(Pending { state: State::Alive(object), .. }) => in_scope(&object).then_some(object),
            // Another object of that name may have come since.
            Some(Pending { state: State::Gone, uid, .. }) => read().filter(|object| object.uid() != &*uid),
        }
    }

    /// The objects of a list; `matches` says whether the list would hold a written object.
    pub(crate) fn list(
        &self,
        matches: impl Fn(&RawObject) -> bool,
        read: impl FnOnce() -> Vec<RawObject>,
    ) -> Vec<RawObject> {
        let unseen = self.writes.unseen(self.cache);
        let mut objects = read();
        if unseen.is_empty() {
            return objects;
        }
        for (key, write) in unseen {
            match write.state {
                State::Gone => objects.retain(|object| *object.uid() != *write.uid),
                State::Alive(written) => {
                    objects.retain(|object| {
                        (object.namespace(), object.name()) != (key.namespace(), key.name())
                    });
                    if matches(&written) {
                        objects.push(written);
                    }
                }
            }
        }
        objects
    }
}
