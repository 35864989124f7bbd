//! Reads of a namespace from a cache.

use std::{fmt, sync::Arc};

use serde::de::DeserializeOwned;
use windlass_runtime::{Lister, ObjectKey, Objects, Result, Selector};

/// Reads the objects of a namespace from the cache of an informer. A lister never sends a request.
pub struct NamespacedLister<K> {
    lister: Lister<K>,
    namespace: String,
}

impl<K: DeserializeOwned + Send + Sync + 'static> NamespacedLister<K> {
    /// Makes a lister of a namespace.
    pub fn new(lister: &Lister<K>, namespace: &str) -> Self {
        Self { lister: lister.namespace(namespace), namespace: namespace.to_owned() }
    }

    /// Returns the objects of the namespace with matching labels.
    pub fn list(&self, selector: &Selector) -> Result<Objects<K>> {
        self.lister.list(selector)
    }

    /// Returns an object, or `None` where Go returns a "not found" error.
    ///
    /// # Errors
    /// The object is there, and does not decode.
    pub fn get(&self, name: &str) -> Result<Option<Arc<K>>> {
        self.lister.get(&ObjectKey::namespaced(&self.namespace, name))
    }
}

impl<K> Clone for NamespacedLister<K> {
    fn clone(&self) -> Self {
        Self { lister: self.lister.clone(), namespace: self.namespace.clone() }
    }
}

impl<K> fmt::Debug for NamespacedLister<K> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("NamespacedLister").field("namespace", &self.namespace).finish_non_exhaustive()
    }
}
