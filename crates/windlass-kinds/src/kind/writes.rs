//! The fields that a write to the main resource or to a subresource may change.

use serde_json::{Map, Value};
use windlass_store::object_meta as meta;

use crate::subresource::Subresource;

/// The fields that a write to the main resource or to a subresource may change.
///
/// A path is a list of field names with dots between them. `[*]` after a name stands for all elements of a list; the
/// elements are paired by position.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Writes {
    /// All fields except the fields at these paths, which keep the values of the stored object.
    AllBut(&'static [&'static str]),
    /// The fields at these paths. All other fields keep the values of the stored object.
    Only(&'static [&'static str]),
}

/// The writable fields of the main resource and of each subresource.
pub type WritesOf = &'static [(Subresource, Writes)];

impl Writes {
    /// The status is written by `status`, along with labels, annotations, finalizers and owner references.
    pub const STATUS: WritesOf =
        &[(Subresource::None, Self::AllBut(&["status"])), (Subresource::Status, Self::AllBut(&["spec"]))];

    /// The status is written by `status`, which writes no metadata.
    pub const STATUS_ONLY: WritesOf =
        &[(Subresource::None, Self::AllBut(&["status"])), (Subresource::Status, Self::Only(&["status"]))];

    /// Takes from `old` what the write may not change.
    pub(crate) fn restrict(self, object: &mut Value, old: &Value) {
        match self {
            Self::AllBut(paths) => paths.iter().for_each(|path| copy(object, old, path)),
            Self::Only(paths) => {
                let written = std::mem::replace(object, old.clone());
                // Identity and version are conditions of the write, not changes; the managers are of this write.
                for field in ["name", "namespace", "resourceVersion", "managedFields"] {
                    meta::copy(object, &written, field);
                }
                paths.iter().for_each(|path| copy(object, &written, path));
            }
        }
    }
}

/// Copies the field at a path from `from`, or removes the field if `from` does not have the field.
fn copy(to: &mut Value, from: &Value, path: &str) {
    let (name, rest) = path.split_once('.').map_or((path, None), |(name, rest)| (name, Some(rest)));
    let Some(rest) = rest else {
        meta::copy_field(to, from, name);
        return;
    };
    if let Some(name) = name.strip_suffix("[*]") {
        let elements = to.get_mut(name).and_then(Value::as_array_mut).into_iter().flatten();
        let sources = from.get(name).and_then(Value::as_array).into_iter().flatten();
        elements.zip(sources).for_each(|(element, source)| copy(element, source, rest));
        return;
    }
    let nothing = Value::Object(Map::new());
    let source = from.get(name).unwrap_or(&nothing);
    match to.get_mut(name) {
        Some(target) => copy(target, source, rest),
        None if source.is_object() => {
            let mut target = nothing.clone();
            copy(&mut target, source, rest);
            if target != nothing
                && let Some(fields) = to.as_object_mut()
            {
                fields.insert(name.to_owned(), target);
            }
        }
        None => {}
    }
}
