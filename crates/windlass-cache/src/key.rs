//! The key of an object within a kind.

use std::{
    cmp::Ordering,
    fmt,
    hash::{Hash, Hasher},
    sync::Arc,
};

/// The key of an object within a kind: `namespace/name`, or `name` for a cluster-scoped kind.
///
/// Clones share an allocation. Keys are ordered by namespace, then by name; keys without a namespace come
/// first.
///
/// ```
/// use windlass_cache::ObjectKey;
///
/// let key = ObjectKey::namespaced("default", "web-0");
/// assert_eq!(key.to_string(), "default/web-0");
/// assert_eq!((key.namespace(), key.name()), (Some("default"), "web-0"));
/// assert_eq!("default/web-0".parse(), Ok(key));
/// ```
#[derive(Clone, PartialEq, Eq)]
pub struct ObjectKey {
    text: Arc<str>,
    /// The length of the namespace; zero for a cluster-scoped object.
    namespace: u32,
}

impl ObjectKey {
    /// Creates a key from an optional namespace and a name. An empty namespace counts as none.
    pub fn new(namespace: Option<&str>, name: &str) -> Self {
        match namespace {
            Some(namespace) if !namespace.is_empty() => Self::namespaced(namespace, name),
            _ => Self::cluster(name),
        }
    }

    /// Creates the key of an object in a namespace. An empty namespace counts as none.
    pub fn namespaced(namespace: &str, name: &str) -> Self {
        if namespace.is_empty() {
            return Self::cluster(name);
        }
        Self { text: joined(namespace, name), namespace: namespace.len() as u32 }
    }

    /// Creates the key of a cluster-scoped object.
    pub fn cluster(name: &str) -> Self {
        Self { text: name.into(), namespace: 0 }
    }

    /// Returns the key of another object in the same namespace. The sibling of a cluster-scoped object is cluster-scoped.
    ///
    /// ```
    /// use windlass_cache::ObjectKey;
    ///
    /// let database = ObjectKey::namespaced("default", "orders");
    /// assert_eq!(database.sibling("orders-password").to_string(), "default/orders-password");
    /// ```
    #[must_use]
    pub fn sibling(&self, name: &str) -> Self {
        Self::new(self.namespace(), name)
    }

    /// Returns the namespace, or `None` for a cluster-scoped object.
    pub fn namespace(&self) -> Option<&str> {
        (self.namespace > 0).then(|| &self.text[..self.namespace as usize])
    }

    /// Returns the name.
    pub fn name(&self) -> &str {
        match self.namespace {
            0 => &self.text,
            length => &self.text[length as usize + 1..],
        }
    }

    /// Returns the key as text: `namespace/name` or `name`.
    pub fn as_str(&self) -> &str {
        &self.text
    }
}

/// Returns `namespace/name`. A short text is joined on the stack, to allocate once.
fn joined(namespace: &str, name: &str) -> Arc<str> {
    const SHORT: usize = 128;
    let (slash, length) = (namespace.len(), namespace.len() + 1 + name.len());
    let mut buffer = [0; SHORT];
    if length <= SHORT {
        buffer[..slash].copy_from_slice(namespace.as_bytes());
        buffer[slash] = b'/';
        buffer[slash + 1..length].copy_from_slice(name.as_bytes());
        if let Ok(text) = std::str::from_utf8(&buffer[..length]) {
            return text.into();
        }
    }
    [namespace, "/", name].concat().into()
}

impl Ord for ObjectKey {
    fn cmp(&self, other: &Self) -> Ordering {
        (self.namespace(), self.name()).cmp(&(other.namespace(), other.name()))
    }
}

impl PartialOrd for ObjectKey {
    fn partial_cmp(&self, other: &Self) -> Option<Ordering> {
        Some(self.cmp(other))
    }
}

impl Hash for ObjectKey {
    fn hash<H: Hasher>(&self, state: &mut H) {
        // Hash the parts: a lookup with the parts then needs no key.
        (self.namespace(), self.name()).hash(state);
    }
}

impl fmt::Display for ObjectKey {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.text)
    }
}

impl fmt::Debug for ObjectKey {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.text)
    }
}

/// The text is not `name` or `namespace/name`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("expected `name` or `namespace/name`, with no empty part and at most one slash")]
pub struct ParseKeyError;

impl std::str::FromStr for ObjectKey {
    type Err = ParseKeyError;

    fn from_str(text: &str) -> Result<Self, ParseKeyError> {
        match text.split_once('/') {
            None if !text.is_empty() => Ok(Self::cluster(text)),
            Some((namespace, name)) if !namespace.is_empty() && !name.is_empty() && !name.contains('/') => {
                Ok(Self::namespaced(namespace, name))
            }
            _ => Err(ParseKeyError),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_key_of_any_length_is_joined() {
        for length in [1, 60, 100, 120, 127, 128, 253] {
            let name = "é".repeat(length);
            let key = ObjectKey::namespaced("default", &name);
            assert_eq!((key.as_str(), key.name()), (format!("default/{name}").as_str(), name.as_str()));
        }
    }
}
