//! The name of an object within its kind.

use std::{
    cmp::Ordering,
    fmt,
    hash::{Hash, Hasher},
    sync::Arc,
};

/// Names one object of a kind: `namespace/name`, or `name` when the kind is cluster scoped.
///
/// One allocation, shared by clones. Keys order by namespace, then name; cluster-scoped ones come first.
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
    /// Length of the namespace; zero for a cluster-scoped object.
    namespace: u32,
}

impl ObjectKey {
    /// A key from an optional namespace (an empty one counts as none) and a name.
    pub fn new(namespace: Option<&str>, name: &str) -> Self {
        match namespace {
            Some(namespace) if !namespace.is_empty() => Self::namespaced(namespace, name),
            _ => Self::cluster(name),
        }
    }

    /// The key of an object in a namespace.
    pub fn namespaced(namespace: &str, name: &str) -> Self {
        if namespace.is_empty() {
            return Self::cluster(name);
        }
        let text = [namespace, "/", name].concat();
        Self { text: text.into(), namespace: namespace.len() as u32 }
    }

    /// The key of an object that is in no namespace.
    pub fn cluster(name: &str) -> Self {
        Self { text: name.into(), namespace: 0 }
    }

    /// The namespace, or `None` for a cluster-scoped object.
    pub fn namespace(&self) -> Option<&str> {
        (self.namespace > 0).then(|| &self.text[..self.namespace as usize])
    }

    /// The name.
    pub fn name(&self) -> &str {
        match self.namespace {
            0 => &self.text,
            length => &self.text[length as usize + 1..],
        }
    }

    /// The key as it is printed: `namespace/name` or `name`.
    pub fn as_str(&self) -> &str {
        &self.text
    }
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
        // By its parts, so that whoever has these need not put them together.
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
#[error("a key is `name` or `namespace/name`, neither part empty, with at most one slash")]
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
