//! The cache of one kind, as readers see it.

use std::sync::Arc;

use windlass_cache::{DecodeError, ObjectKey, Query, RawObject, UnknownIndex};

use crate::{
    informer::{Admission, SharedInformer},
    read_your_writes::{UnseenWrites, WriteRef},
    undecodable::UndecodableReporter,
};

/// The cache of one kind, with the process's own unseen writes laid over it.
pub(crate) struct KindCache {
    pub(crate) informer: SharedInformer,
    /// `None` for a reader outside of a controller, which sees what the watch has seen.
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

    /// A cache without unseen writes.
    pub(crate) fn of_informer(informer: SharedInformer) -> Self {
        Self { informer, writes: None, reporter: None }
    }

    pub(crate) fn kind(&self) -> &str {
        &self.informer.resource().kind
    }

    pub(crate) fn get(&self, key: &ObjectKey) -> Option<RawObject> {
        let read = || self.informer.store().get(key);
        match &self.writes {
            Some(writes) => writes.get(key, |object| self.admits(object), read),
            None => read(),
        }
    }

    /// The objects that match a query.
    pub(crate) fn list(&self, query: &Query<'_>) -> Result<Vec<RawObject>, UnknownIndex> {
        let read = || self.informer.store().query(query);
        let Some(writes) = &self.writes else { return read() };
        let wanted = |object: &RawObject| {
            query.matches(object)
                && query.named_index().is_none_or(|(index, value)| {
                    self.informer.index_values(index, object).iter().any(|of_object| of_object == value)
                })
        };
        writes.list(wanted, |object| self.admits(object), read)
    }

    fn admits(&self, object: &RawObject) -> Admission {
        self.informer.options().admits(object)
    }

    /// Reports an object that does not decode, once for each resource version, and has the watch list the object again.
    pub(crate) fn report_undecodable(&self, object: &RawObject, error: &DecodeError) {
        self.informer.report_undecodable(object);
        if let Some(reporter) = &self.reporter {
            reporter.report(self.informer.resource(), object, error);
        }
    }

    /// Whether the watch has seen a write.
    pub(crate) fn has_seen(&self, write: &WriteRef) -> bool {
        self.writes.as_ref().is_none_or(|writes| writes.has_seen(write))
    }

    /// Completes when the watch has seen a write, or has ended.
    pub(crate) async fn seen(&self, write: &WriteRef) {
        let mut progress = self.informer.progress();
        while !self.has_seen(write) && progress.changed().await.is_ok() {}
    }
}
