//! The cache of a kind, for readers.

use std::{sync::Arc, time::Duration};

use windlass_cache::{DecodeError, ObjectKey, Query, RawObject, UnknownIndex};

use crate::{
    informer::SharedInformer,
    read_your_writes::{UnseenWrites, WriteRef},
    undecodable::UndecodableReporter,
};

/// The cache of a kind, with the process's own unseen writes laid over.
pub(crate) struct KindCache {
    pub(crate) informer: SharedInformer,
    /// `None` for a reader outside of a controller, which sees only the state of the watch.
    writes: Option<Arc<UnseenWrites>>,
    reporter: Option<Arc<UndecodableReporter>>,
}

impl KindCache {
    pub(crate) fn new(
        informer: SharedInformer,
        writes: Arc<UnseenWrites>,
        reporter: Arc<UndecodableReporter>,
    ) -> Self {
        Self { informer, writes: Some(writes), reporter: Some(reporter) }
    }

    /// Returns a cache without unseen writes.
    pub(crate) fn of_informer(informer: SharedInformer) -> Self {
        Self { informer, writes: None, reporter: None }
    }

    pub(crate) fn kind(&self) -> &str {
        &self.informer.resource().kind
    }

    pub(crate) fn get(&self, key: &ObjectKey) -> Option<RawObject> {
        let read = || self.informer.cached(key);
        match &self.writes {
            Some(writes) => writes.get(key, read),
            None => read(),
        }
    }

    /// Returns the objects that match a query.
    pub(crate) fn list(&self, query: &Query<'_>) -> Result<Vec<RawObject>, UnknownIndex> {
        let read = || self.informer.cached_matches(query);
        match &self.writes {
            Some(writes) => writes.list(query, read),
            None => read(),
        }
    }

    /// Returns whether the process has written objects that the watch has not shown yet.
    pub(crate) fn has_unseen_writes(&self) -> bool {
        self.writes.as_ref().is_some_and(|writes| !writes.is_empty())
    }

    /// Reports an object that does not decode, once for each resource version, and has the watch list the object again.
    pub(crate) fn report_undecodable(&self, object: &RawObject, error: &DecodeError) {
        self.informer.report_undecodable(object);
        if let Some(reporter) = &self.reporter {
            reporter.report(self.informer.resource(), object, error);
        }
    }

    /// Returns whether the watch has seen a write, will never show the write, or has been failing for
    /// `patience`. Do not wait for a watch that keeps failing. Each namespace may have a watch.
    pub(crate) fn has_seen(&self, write: &WriteRef, patience: Duration) -> bool {
        self.writes.as_ref().is_none_or(|writes| writes.has_seen(write))
            || self
                .informer
                .failing_in(write.key.namespace())
                .is_some_and(|failing| failing.duration() >= patience)
    }

    /// Completes when [`has_seen`](Self::has_seen) is true, or the watch has ended.
    pub(crate) async fn seen(&self, write: &WriteRef, patience: Duration) {
        let mut progress = self.informer.progress();
        while !self.has_seen(write, patience) && progress.changed().await.is_ok() {}
    }

    /// Forgets the writes that the watch has seen, and returns the number of writes that stay.
    pub(crate) fn sweep(&self) -> usize {
        self.writes.as_ref().map_or(0, |writes| writes.sweep())
    }
}
