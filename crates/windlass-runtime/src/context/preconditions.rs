//! Conditions on the object that a write changes.

use serde_json::{Map, Value, json};

use crate::{
    client::{WithMetadata, decode},
    error::Error,
    read_your_writes::note_own_write,
};

/// Conditions on the object that a write changes.
#[derive(Clone, Debug, Default)]
pub(super) struct Preconditions {
    pub(super) uid: Option<String>,
    pub(super) resource_version: Option<String>,
}

impl Preconditions {
    /// Returns the fields of `metadata`, or of the preconditions of a deletion, and the required values.
    fn fields(&self) -> impl Iterator<Item = (&'static str, &String)> {
        let fields = [("uid", &self.uid), ("resourceVersion", &self.resource_version)];
        fields.into_iter().filter_map(|(name, value)| Some((name, value.as_ref()?)))
    }

    /// Adds the conditions to the metadata of an object or a merge patch. The server compares the metadata
    /// with the stored object. A body without an object as metadata stays as is: the server refuses the body.
    pub(super) fn put_into(&self, body: &mut Value) {
        let Some(body) = body.as_object_mut() else { return };
        for (name, value) in self.fields() {
            let metadata = body.entry("metadata").or_insert(Value::Null);
            if metadata.is_null() {
                *metadata = json!({});
            }
            if let Some(metadata) = metadata.as_object_mut() {
                metadata.insert(name.to_owned(), json!(value));
            }
        }
    }

    /// Returns the steps of a JSON patch that test the conditions.
    pub(super) fn tests(&self) -> Vec<Value> {
        let test =
            |(name, value)| json!({ "op": "test", "path": format!("/metadata/{name}"), "value": value });
        self.fields().map(test).collect()
    }

    /// Returns the preconditions of a deletion.
    pub(super) fn of_delete(&self) -> Option<Value> {
        let fields: Map<String, Value> =
            self.fields().map(|(name, value)| (name.to_owned(), json!(value))).collect();
        (!fields.is_empty()).then_some(Value::Object(fields))
    }

    /// Notes a write that demanded a resource version. `reply` has the metadata of the written object.
    pub(super) fn note_own_write(&self, reply: &[u8]) {
        if let Some(read) = self.resource_version.as_deref()
            && let Ok(WithMetadata { metadata }) = decode(reply)
            && let Some(uid) = &metadata.uid
        {
            note_own_write(uid, Some(read), metadata.resource_version.as_deref());
        }
    }

    /// Turns the server's other words for a condition that does not hold into a conflict.
    pub(super) fn explain(&self, error: Error) -> Error {
        if self.fields().next().is_some() && error.is_failed_test() {
            return Error::conflict(format!(
                "the object has changed, or a test of the patch failed: {error}"
            ));
        }
        // The server treats another uid as a change of the uid.
        let causes = error.status().and_then(|status| status.details.as_ref());
        let is_about_uid =
            causes.is_some_and(|details| details.causes.iter().any(|cause| cause.field == "metadata.uid"));
        if self.uid.is_some() && error.is_invalid() && is_about_uid {
            return Error::conflict(format!("the object was replaced: {error}"));
        }
        error
    }
}
