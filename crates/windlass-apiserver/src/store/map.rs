//! Objects and the persistent maps that hold them.

use std::fmt;
use std::sync::Arc;

use bytes::Bytes;
use rpds::RedBlackTreeMapSync;
use serde_json::Value;

/// A kind of object as it is stored: its group and its plural name, whatever version asks.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub(crate) struct ResourceId {
    /// The API group, empty for the core group.
    pub(crate) group: Arc<str>,
    /// The plural name in lower case.
    pub(crate) resource: Arc<str>,
}

impl ResourceId {
    pub(crate) fn new(group: &str, resource: &str) -> Self {
        Self { group: group.into(), resource: resource.into() }
    }
}

impl fmt::Display for ResourceId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if self.group.is_empty() {
            f.write_str(&self.resource)
        } else {
            write!(f, "{}.{}", self.resource, self.group)
        }
    }
}

/// One stored object: as a tree for those who look inside, as bytes for those who pass it on.
#[derive(Debug)]
pub(crate) struct Stored {
    /// The revision it was written at; also in its metadata.
    pub(crate) rv: u64,
    /// The object in its storage version.
    pub(crate) value: Value,
    /// The same, serialised once: `{"kind":…,"apiVersion":…,` and then [`Stored::tail`].
    pub(crate) json: Bytes,
    /// Where the fields after kind and apiVersion begin.
    tail: usize,
}

impl Stored {
    /// Stamps `value` with `rv` and serialises it.
    pub(crate) fn new(mut value: Value, rv: u64) -> Self {
        if let Some(metadata) = value.get_mut("metadata").and_then(Value::as_object_mut) {
            metadata.insert("resourceVersion".into(), Value::String(rv.to_string()));
        }
        Self::serialised(value, rv)
    }

    /// The object as a tree.
    pub(crate) fn value(&self) -> Value {
        self.value.clone()
    }

    /// An object that is shown as if it had been stored: that of a dry run.
    pub(crate) fn unversioned(value: Value) -> Self {
        Self::serialised(value, 0)
    }

    fn serialised(value: Value, rv: u64) -> Self {
        let mut json = Vec::with_capacity(512);
        let tail = write_object(&value, &mut json);
        Self { rv, value, json: json.into(), tail }
    }

    /// The bytes after `"kind":…,"apiVersion":…,` to the closing brace: what lists of built-in kinds show of an item
    /// after an opening brace, and what stays the same when the object is shown in another version.
    pub(crate) fn tail(&self) -> Bytes {
        self.json.slice(self.tail..)
    }
}

/// Appends an object as the real server writes it, kind and apiVersion first, and returns where the rest begins.
pub(crate) fn write_object(value: &Value, out: &mut Vec<u8>) -> usize {
    let Some(fields) = value.as_object() else {
        write_value(value, out);
        return 0;
    };
    out.push(b'{');
    for name in ["kind", "apiVersion"] {
        if let Some(field) = fields.get(name) {
            write_field(name, field, out);
        }
    }
    let tail = out.len();
    for (name, field) in fields {
        if name != "kind" && name != "apiVersion" {
            write_field(name, field, out);
        }
    }
    if out.last() == Some(&b',') {
        out.pop();
    }
    out.push(b'}');
    tail
}

fn write_field(name: &str, field: &Value, out: &mut Vec<u8>) {
    write_value(&Value::String(name.to_owned()), out);
    out.push(b':');
    write_value(field, out);
    out.push(b',');
}

fn write_value(value: &Value, out: &mut Vec<u8>) {
    // Writing a tree with string keys to memory does not fail.
    let written = serde_json::to_writer(out, value);
    debug_assert!(written.is_ok());
}

type Objects = RedBlackTreeMapSync<Arc<str>, Arc<Stored>>;

/// All objects of a server at one revision. Immutable; a clone costs two pointers.
#[derive(Clone)]
pub(crate) struct View {
    revision: u64,
    resources: RedBlackTreeMapSync<ResourceId, Objects>,
}

impl View {
    pub(super) fn empty() -> Self {
        // Revision 1 is taken: "0" has a meaning of its own in requests.
        Self { revision: 1, resources: RedBlackTreeMapSync::new_sync() }
    }

    pub(crate) fn revision(&self) -> u64 {
        self.revision
    }

    /// The object stored under `key`: `namespace/name`, or the name of a cluster-scoped object.
    pub(crate) fn get(&self, id: &ResourceId, key: &str) -> Option<Arc<Stored>> {
        self.resources.get(id)?.get(key).cloned()
    }

    /// The number of objects of a resource, in all namespaces.
    pub(crate) fn count(&self, id: &ResourceId) -> usize {
        self.resources.get(id).map_or(0, RedBlackTreeMapSync::size)
    }

    /// The objects of a resource in key order, of one namespace or of all.
    pub(crate) fn range<'a>(
        &'a self,
        id: &ResourceId,
        namespace: Option<&str>,
    ) -> impl Iterator<Item = (&'a Arc<str>, &'a Arc<Stored>)> + use<'a> {
        self.range_from(id, namespace, None)
    }

    /// As [`View::range`], beginning at the first key that is not less than `start`.
    pub(crate) fn range_from<'a>(
        &'a self,
        id: &ResourceId,
        namespace: Option<&str>,
        start: Option<&str>,
    ) -> impl Iterator<Item = (&'a Arc<str>, &'a Arc<Stored>)> + use<'a> {
        let prefix = namespace.map(|namespace| format!("{namespace}/"));
        let from: Arc<str> = match (start, &prefix) {
            (Some(start), Some(prefix)) => start.max(prefix.as_str()).into(),
            (Some(start), None) => start.into(),
            (None, Some(prefix)) => prefix.as_str().into(),
            (None, None) => "".into(),
        };
        let objects = self.resources.get(id);
        objects
            .into_iter()
            .flat_map(move |objects| objects.range(from.clone()..))
            .take_while(move |(key, _)| prefix.as_ref().is_none_or(|prefix| key.starts_with(prefix.as_str())))
    }

    pub(super) fn with(&self, revision: u64, id: &ResourceId, key: &str, stored: Arc<Stored>) -> Self {
        let objects = self.resources.get(id).cloned().unwrap_or_else(Objects::new_sync);
        let objects = objects.insert(key.into(), stored);
        Self { revision, resources: self.resources.insert(id.clone(), objects) }
    }

    pub(super) fn without(&self, revision: u64, id: &ResourceId, key: &str) -> Self {
        let Some(objects) = self.resources.get(id) else { return self.clone().at(revision) };
        Self { revision, resources: self.resources.insert(id.clone(), objects.remove(key)) }
    }

    pub(super) fn without_resource(&self, id: &ResourceId) -> Self {
        Self { revision: self.revision, resources: self.resources.remove(id) }
    }

    pub(super) fn at(mut self, revision: u64) -> Self {
        self.revision = revision;
        self
    }
}
