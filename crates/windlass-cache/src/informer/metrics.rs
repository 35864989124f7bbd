//! The counters and sizes of an informer.

/// The counters and sizes of an informer.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct InformerMetrics {
    /// Objects in the store.
    pub objects: usize,
    /// Bytes of the objects.
    pub object_bytes: usize,
    /// Bytes of tables and indexes.
    pub index_bytes: usize,
    /// Bytes of the text that objects share.
    pub shared_bytes: usize,
    /// Bytes of the compression dictionaries.
    pub dictionary_bytes: usize,
    /// Bytes of the remembered decoded objects. An estimate.
    pub decoded_bytes: usize,
    /// Bytes of the changes that wait for delivery, including the old states of objects.
    pub backlog_bytes: usize,
    /// The limit on the sum of all bytes except `backlog_bytes`.
    pub memory_limit: Option<usize>,
    /// Objects that were added.
    pub added: u64,
    /// Objects that were updated.
    pub updated: u64,
    /// Objects that were deleted.
    pub deleted: u64,
    /// Lists, including watches that began with the objects.
    pub lists: u64,
    /// Watches that could not resume and therefore listed everything again.
    pub relists: u64,
    /// Lists and watches that failed.
    pub failures: u64,
    /// Objects that could not be read.
    pub unreadable: u64,
    /// Changes during which an index function panicked, counted for each index separately.
    pub index_panics: u64,
    /// Changes that were coalesced with later changes, because a handler was slow.
    pub coalesced: u64,
    /// Changes that wait for delivery to the slowest handler.
    pub backlog: usize,
}
