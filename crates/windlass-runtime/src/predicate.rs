//! Predicates: the changes that a controller reacts to.

use std::sync::Arc;

use windlass_cache::{Delta, RawObject, Selector};

/// Decides whether a change is mapped to keys.
///
/// Predicates read the index of an object without decoding the object. They filter the queue, not the cache:
/// for less memory, select in the [`CacheOptions`](crate::informer::CacheOptions).
///
/// ```
/// use windlass_runtime::{Delta, Predicate};
///
/// let large = Predicate::new(|delta: &Delta| delta.object().annotation("size").as_deref() == Some("large"));
/// let spec_or_labels = Predicate::generation_changed().or(Predicate::label_changed()).and(large);
/// # let _ = spec_or_labels;
/// ```
#[derive(Clone)]
pub struct Predicate(Arc<dyn Fn(&Delta) -> bool + Send + Sync>);

impl Predicate {
    /// Returns a predicate from a function that returns true for the changes to react to.
    pub fn new(matches: impl Fn(&Delta) -> bool + Send + Sync + 'static) -> Self {
        Self(Arc::new(matches))
    }

    /// Matches updates for which `differs` returns true, and every creation and deletion.
    fn on_update(differs: impl Fn(&RawObject, &RawObject) -> bool + Send + Sync + 'static) -> Self {
        Self::new(move |delta| match delta {
            Delta::Updated { old, new } => differs(old, new),
            _ => true,
        })
    }

    /// Drops resyncs.
    pub fn resource_version_changed() -> Self {
        Self::on_update(|old, new| !old.is_same(new))
    }

    /// Drops updates of metadata and status alone, and resyncs.
    ///
    /// An update at the same resource version passes: the server serves the object with other content after a change of the CRD.
    ///
    /// Kinds without a spec, such as `ConfigMap` and `Secret`, have no generation: all of their updates are dropped.
    /// Setting `deletionTimestamp` changes the generation of most kinds; removing a finalizer does not.
    pub fn generation_changed() -> Self {
        Self::on_update(|old, new| old.generation() != new.generation() || is_served_anew(old, new))
    }

    /// Drops updates that do not change an annotation.
    pub fn annotation_changed() -> Self {
        Self::on_update(|old, new| old.annotations() != new.annotations())
    }

    /// Drops updates that do not change a label.
    pub fn label_changed() -> Self {
        Self::on_update(|old, new| !old.labels().eq(new.labels()))
    }

    /// Matches objects with matching labels; for an update, before or after the update.
    pub fn labels(selector: Selector) -> Self {
        Self::new(move |delta| delta.states().any(|object| selector.matches(object)))
    }

    /// Matches changes of objects in this namespace.
    pub fn namespace(namespace: impl Into<String>) -> Self {
        let namespace = namespace.into();
        Self::new(move |delta| delta.object().namespace() == Some(namespace.as_str()))
    }

    /// Matches where both predicates match.
    pub fn and(self, other: Self) -> Self {
        Self::new(move |delta| self.matches(delta) && other.matches(delta))
    }

    /// Matches where either predicate matches.
    pub fn or(self, other: Self) -> Self {
        Self::new(move |delta| self.matches(delta) || other.matches(delta))
    }

    /// Matches where this predicate does not.
    #[expect(clippy::should_implement_trait, reason = "reads like `.or` and `.and`")]
    pub fn not(self) -> Self {
        Self::new(move |delta| !self.matches(delta))
    }

    /// Returns whether the change matches.
    pub fn matches(&self, delta: &Delta) -> bool {
        (self.0)(delta)
    }
}

/// Returns whether the server serves the same version of an object with other content than before.
fn is_served_anew(old: &RawObject, new: &RawObject) -> bool {
    !old.is_same(new) && old.resource_version() == new.resource_version()
}

impl std::fmt::Debug for Predicate {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("Predicate")
    }
}
