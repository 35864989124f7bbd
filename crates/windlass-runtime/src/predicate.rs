//! Which events count. Predicates look at the index of an object; nothing is decoded for one.

use std::sync::Arc;

use windlass_cache::{RawObject, Selector};

use crate::handler::Event;

/// Says of an event whether it counts.
///
/// Predicates filter what is queued, not what is cached: for less memory, select in the
/// [`WatchOptions`](crate::informer::WatchOptions).
#[derive(Clone)]
pub struct Predicate(Arc<dyn Fn(&Event<'_>) -> bool + Send + Sync>);

impl Predicate {
    /// A predicate of one's own.
    pub fn new(counts: impl Fn(&Event<'_>) -> bool + Send + Sync + 'static) -> Self {
        Self(Arc::new(counts))
    }

    /// Updates count only if `differs`; creations and deletions always do.
    fn on_update(differs: impl Fn(&RawObject, &RawObject) -> bool + Send + Sync + 'static) -> Self {
        Self::new(move |event| match event {
            Event::Update { old, new } => differs(old, new),
            _ => true,
        })
    }

    /// Not a resync.
    pub fn resource_version_changed() -> Self {
        Self::on_update(|old, new| old.resource_version() != new.resource_version())
    }

    /// The spec changed, not only metadata or status. Mind that a deletion which finalizers hold up changes the generation of
    /// most kinds, but a finalizer's removal does not.
    pub fn generation_changed() -> Self {
        Self::on_update(|old, new| old.generation() != new.generation())
    }

    /// An annotation changed.
    pub fn annotation_changed() -> Self {
        Self::on_update(|old, new| old.annotations() != new.annotations())
    }

    /// A label changed.
    pub fn label_changed() -> Self {
        Self::on_update(|old, new| !old.labels().eq(new.labels()))
    }

    /// The object has matching labels; for an update, before or after.
    pub fn labels(selector: Selector) -> Self {
        Self::new(move |event| match event {
            Event::Update { old, new } => selector.matches(old) || selector.matches(new),
            _ => selector.matches(event.object()),
        })
    }

    /// The object lies in this namespace.
    pub fn namespace(namespace: impl Into<String>) -> Self {
        let namespace = namespace.into();
        Self::new(move |event| event.object().namespace() == Some(namespace.as_str()))
    }

    /// Both count.
    pub fn and(self, other: Self) -> Self {
        Self::new(move |event| self.counts(event) && other.counts(event))
    }

    /// Either counts.
    pub fn or(self, other: Self) -> Self {
        Self::new(move |event| self.counts(event) || other.counts(event))
    }

    /// The other way round.
    #[expect(clippy::should_implement_trait, reason = "reads as .or and .and do")]
    pub fn not(self) -> Self {
        Self::new(move |event| !self.counts(event))
    }

    /// Whether the event counts.
    pub fn counts(&self, event: &Event<'_>) -> bool {
        (self.0)(event)
    }
}

impl std::fmt::Debug for Predicate {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("Predicate")
    }
}
