//! When a cache has seen a write.

use windlass_cache::ObjectKey;

/// What of a cache the question needs.
pub(crate) trait CacheView: Send + Sync + 'static {
    /// The uid and resourceVersion of the object under a key. `None`: the cache has none.
    fn object(&self, key: &ObjectKey) -> Option<(String, u64)>;
    /// The newest resourceVersion of the kind that the watch has told of, bookmarks included. 0 before the first list.
    fn high_water_mark(&self) -> u64;
}

/// Whether the cache has told of a write to the object under `key` with this uid.
pub(super) fn has_seen(key: &ObjectKey, uid: &str, revision: u64, gone: bool, cache: &dyn CacheView) -> bool {
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
