//! The error of an object that does not decode.

use super::{RawObject, problem::describe_decode_error};
use crate::ObjectKey;

/// An object does not decode as the type that a read asked for.
///
/// The object is in the cache and in the cluster: treat the object as present and unreadable, never as
/// deleted. The message names the object, the field and the problem. The message repeats no value of the
/// object, because a value may be a secret.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{key} (resourceVersion {resource_version}) does not decode as {wanted}: {reason}")]
pub struct DecodeError {
    key: ObjectKey,
    resource_version: String,
    wanted: String,
    reason: String,
}

impl DecodeError {
    /// Describes the error of decoding `json`, the JSON of `object`, as the type of this name.
    pub(super) fn new(object: &RawObject, json: &[u8], type_name: &str, error: &serde_json::Error) -> Self {
        Self {
            key: object.key(),
            resource_version: object.resource_version().to_owned(),
            wanted: short_name(type_name),
            reason: describe_decode_error(json, error),
        }
    }

    /// Returns the key of the object.
    pub fn key(&self) -> &ObjectKey {
        &self.key
    }

    /// Returns the field and the problem: `spec.replicas: expected i32, found a string`.
    pub fn reason(&self) -> &str {
        &self.reason
    }
}

/// Returns the name of a type without the modules: `Vec<Pod>` of `alloc::vec::Vec<app::Pod>`.
fn short_name(name: &str) -> String {
    let mut short = String::new();
    let mut word = 0;
    for character in name.chars() {
        if character == ':' {
            short.truncate(word);
            continue;
        }
        short.push(character);
        if !character.is_alphanumeric() && character != '_' {
            word = short.len();
        }
    }
    short
}
