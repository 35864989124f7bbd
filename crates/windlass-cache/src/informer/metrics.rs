//! What an informer counts.

/// What an informer has counted, and how large it is now.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct InformerMetrics {
    /// Objects in the store.
    pub objects: usize,
    /// Bytes that the objects take.
    pub object_bytes: usize,
    /// Bytes that tables and indexes take.
    pub index_bytes: usize,
    /// Bytes of the shapes that objects share.
    pub shape_bytes: usize,
    /// Bytes of the dictionaries that objects are compressed with.
    pub dictionary_bytes: usize,
    /// Bytes that decoded objects take, as far as they are remembered. An estimate.
    pub decoded_bytes: usize,
    /// Bytes of the changes that handlers have not been told yet, with the states of objects that only these keep.
    pub backlog_bytes: usize,
    /// The limit on all of them but the backlog, if one was set.
    pub memory_limit: Option<usize>,
    /// Objects that appeared.
    pub added: u64,
    /// Changes of objects.
    pub updated: u64,
    /// Objects that went away.
    pub deleted: u64,
    /// Lists, and watches that began with the objects.
    pub lists: u64,
    /// Lists and watches that failed.
    pub failures: u64,
    /// Objects that could not be read.
    pub unreadable: u64,
    /// Changes that slow handlers were not told one by one.
    pub coalesced: u64,
    /// Changes that the slowest handler has not been told yet.
    pub backlog: usize,
}
