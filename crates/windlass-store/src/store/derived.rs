//! State that is a function of the objects of a resource, computed again after a change.

use std::sync::Arc;

use parking_lot::Mutex;

use super::{ResourceId, View};

/// A function of the objects of a resource. The result is remembered until an object changes.
///
/// Used for state that many requests need: the rules of an authoriser, the classes of pods, the definitions
/// of kinds.
pub struct Derived<T> {
    resource: ResourceId,
    derive: fn(&View, &ResourceId) -> T,
    known: Mutex<Option<(u64, Arc<T>)>>,
}

impl<T> Derived<T> {
    /// Creates state that `derive` computes from the objects of `resource`.
    pub fn new(resource: ResourceId, derive: fn(&View, &ResourceId) -> T) -> Self {
        Self { resource, derive, known: Mutex::new(None) }
    }

    /// Returns the value in `view`.
    pub fn get(&self, view: &View) -> Arc<T> {
        let revision = view.changed(&self.resource);
        let known = self.known.lock().clone();
        match known {
            Some((at, value)) if at == revision => value,
            _ => {
                let value = Arc::new((self.derive)(view, &self.resource));
                let mut known = self.known.lock();
                // A request on an old view must not replace the result for a newer view.
                if known.as_ref().is_none_or(|(at, _)| *at < revision) {
                    *known = Some((revision, Arc::clone(&value)));
                }
                value
            }
        }
    }
}
