//! Objects in the form of Go's internal types, for tables and partial metadata.

use std::borrow::Cow;

use serde_json::Value;

use super::Resource;
use crate::meta;
use crate::store::read_value;

/// Removes the annotations that stand for fields of the internal type of a kind.
#[derive(Clone, Copy)]
pub(crate) struct InternalForm {
    annotations: &'static [&'static str],
}

impl Resource {
    /// Returns the conversion of the kind's objects to the internal type.
    pub(crate) fn internal_form(&self) -> InternalForm {
        InternalForm { annotations: self.strategy.config.encoding_annotations }
    }

    /// Returns an object after a conversion to the internal type and back: annotations replace fields that
    /// this version does not have.
    pub(crate) fn encoded<'o>(&self, object: &'o Value) -> Cow<'o, Value> {
        if *self.storage_version == *self.api_version() || self.internal_form().annotations.is_empty() {
            return Cow::Borrowed(object);
        }
        let mut object = object.clone();
        let stored = self.storage_version.rsplit('/').next().unwrap_or_default();
        (self.strategy.convert)(&mut object, stored);
        (self.strategy.convert)(&mut object, &self.version);
        Cow::Owned(object)
    }
}

impl InternalForm {
    /// Returns the metadata of an object, given as JSON.
    pub(crate) fn metadata<'m>(&self, metadata: &'m [u8]) -> Cow<'m, [u8]> {
        if self.annotations.is_empty() {
            return Cow::Borrowed(metadata);
        }
        let Ok(metadata_value) = read_value(metadata) else { return Cow::Borrowed(metadata) };
        let object = self.object(serde_json::json!({ "metadata": metadata_value }));
        Cow::Owned(object["metadata"].to_string().into_bytes())
    }

    /// Returns an object without the annotations.
    pub(crate) fn object(&self, mut object: Value) -> Value {
        if self.annotations.is_empty() {
            return object;
        }
        if let Some(Value::Object(annotations)) = object.pointer_mut("/metadata/annotations") {
            annotations.retain(|name, _| !self.annotations.contains(&name.as_str()));
            if annotations.is_empty() {
                meta::set(&mut object, "annotations", None);
            }
        }
        object
    }
}
