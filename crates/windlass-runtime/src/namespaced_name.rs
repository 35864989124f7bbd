//! An object's key in two parts.

use std::hash::{Hash, Hasher};

use windlass_cache::ObjectKey;
use windlass_workqueue::Equivalent;

/// A borrowed [`ObjectKey`]: most events concern keys that the queue knows, and need no allocation.
pub(crate) struct NamespacedName<'a> {
    namespace: Option<&'a str>,
    name: &'a str,
}

impl<'a> NamespacedName<'a> {
    pub(crate) fn new(namespace: Option<&'a str>, name: &'a str) -> Self {
        Self { namespace: namespace.filter(|namespace| !namespace.is_empty()), name }
    }
}

impl Hash for NamespacedName<'_> {
    fn hash<H: Hasher>(&self, state: &mut H) {
        (self.namespace, self.name).hash(state);
    }
}

impl Equivalent<ObjectKey> for NamespacedName<'_> {
    fn equivalent(&self, key: &ObjectKey) -> bool {
        key.name() == self.name && key.namespace() == self.namespace
    }
}

impl From<&NamespacedName<'_>> for ObjectKey {
    fn from(parts: &NamespacedName<'_>) -> Self {
        Self::new(parts.namespace, parts.name)
    }
}

#[cfg(test)]
mod tests {
    use std::hash::{BuildHasher, RandomState};

    use super::*;

    #[test]
    fn is_the_key_and_hashes_as_it_does() {
        let hasher = RandomState::new();
        for (namespace, name) in [
            (Some("default"), "web-0"),
            (None, "node-1"),
            (Some(""), "node-1"),
            (Some("n\u{e4}me"), "\u{1f980}"),
            (None, ""),
        ] {
            let parts = NamespacedName::new(namespace, name);
            let key = ObjectKey::new(namespace, name);
            assert_eq!(ObjectKey::from(&parts), key);
            assert!(parts.equivalent(&key), "{key}");
            assert_eq!(hasher.hash_one(&parts), hasher.hash_one(&key), "{key}");
        }
        let parts = NamespacedName::new(Some("a"), "b");
        assert!(!parts.equivalent(&ObjectKey::cluster("b")));
        assert!(!parts.equivalent(&ObjectKey::namespaced("b", "b")));
        assert!(!parts.equivalent(&ObjectKey::namespaced("a", "a")));
    }
}
