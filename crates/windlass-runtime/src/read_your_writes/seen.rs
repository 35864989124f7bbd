//! When a cache has seen a write.

use windlass_cache::{ObjectKey, RawObject};

use super::Admission;

/// The view of a cache that the record of unseen writes needs.
pub(crate) trait CacheView: Send + Sync + 'static {
    /// Returns the object under a key, if the cache holds an object.
    fn object(&self, key: &ObjectKey) -> Option<RawObject>;

    /// Returns the newest resource version that the watch of a namespace has seen, bookmarks included. 0
    /// before the first list, `u64::MAX` for a namespace that no watch of the cache serves.
    fn high_water_mark(&self, namespace: Option<&str>) -> u64;

    /// Returns whether responses with this API version and kind have the form of the cache's objects.
    fn has_shape(&self, api_version: &str, kind: &str) -> bool;

    /// Returns the API version and kind of the cache's objects, if the cache holds only the metadata. The reply to a write of metadata names
    /// `PartialObjectMetadata` instead.
    fn kind_of_metadata(&self) -> Option<(&str, &str)>;

    /// Returns whether the cache would hold a written object.
    fn admits(&self, object: &RawObject) -> Admission;

    /// Returns whether the cache has a named index.
    fn has_index(&self, index: &str) -> bool;

    /// Returns the values that the named index gives to an object.
    fn index_values(&self, index: &str, object: &RawObject) -> Vec<String>;
}

/// Returns whether the cache has seen a write to the object under `key` with this uid.
pub(super) fn has_seen(key: &ObjectKey, uid: &str, revision: u64, gone: bool, cache: &dyn CacheView) -> bool {
    // The mark is read first: the mark grows with the cache, and an object that is read later is at least as
    // new.
    let mark = cache.high_water_mark(key.namespace());
    match cache.object(key) {
        Some(cached) if cached.uid() == uid => !gone && cached.revision() >= revision,
        // The object is absent, or another object has the name. A watch that has come as far as the write has
        // seen the end of the object as well, or filters the object out. A deletion has no resource version:
        // absence, at a mark no older than the object's last known version, is the only possible test.
        _ => mark >= revision,
    }
}
