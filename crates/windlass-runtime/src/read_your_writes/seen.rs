//! When a cache has seen a write.

use windlass_cache::ObjectKey;

use super::{Pending, State, WriteRef};

/// What of a cache the question needs.
pub(crate) trait CacheView {
    /// The uid and resourceVersion of the object under a key. `None`: the cache has none.
    fn object(&self, key: &ObjectKey) -> Option<(String, u64)>;
    /// The newest resourceVersion of the kind that the watch has told of, bookmarks included. 0 before the first list.
    fn high_water_mark(&self) -> u64;
}

/// The one question.
pub(crate) struct Seen;

impl Seen {
    pub(crate) fn of(write: &Pending, key: &ObjectKey, cache: &dyn CacheView) -> bool {
        let gone = matches!(write.state, State::Gone);
        has_seen(key, &write.uid, write.revision, gone, cache)
    }

    pub(crate) fn of_ref(write: &WriteRef, cache: &dyn CacheView) -> bool {
        has_seen(&write.key, &write.uid, write.revision, write.gone, cache)
    }
}

fn has_seen(key: &ObjectKey, uid: &str, revision: u64, gone: bool, cache: &dyn CacheView) -> bool {
    // The mark first: it only grows, so an object read after it cannot be older than it says.
    let mark = cache.high_water_mark();
    match cache.object(key) {
        Some((cached_uid, cached)) if cached_uid == uid => !gone && cached >= revision,
        // Not there, or another of that name. A watch that has come as far as the write has seen the object's end as well,
        // or filters it out. A deletion has no resourceVersion of its own: absence, no earlier than the object was
        // last known, is all that can be asked for.
        _ => mark >= revision,
    }
}
