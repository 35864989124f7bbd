//! An object that is not what it was read as.

use std::any::type_name;

use super::RawObject;
use crate::ObjectKey;

/// An object does not decode as the type it was read as.
///
/// It is in the cache and in the cluster: treat it as present and unreadable, never as gone.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{key} (resourceVersion {resource_version}) does not decode as {wanted}: {reason}")]
pub struct DecodeError {
    key: ObjectKey,
    resource_version: String,
    wanted: &'static str,
    reason: String,
}

impl DecodeError {
    pub(super) fn new<K>(object: &RawObject, error: &serde_json::Error) -> Self {
        let wanted = type_name::<K>();
        Self {
            key: object.key(),
            resource_version: object.resource_version().to_owned(),
            wanted: wanted.rsplit("::").next().unwrap_or(wanted),
            reason: redact(&error.to_string()),
        }
    }

    /// The object.
    pub fn key(&self) -> &ObjectKey {
        &self.key
    }
}

/// Takes quoted values out of a message of serde's: they come from the object, which may be a secret.
///
/// Field names and alternatives stand in backticks and stay.
fn redact(message: &str) -> String {
    let Some(start) = message.find('"') else { return message.to_owned() };
    let end = message.rfind('"').unwrap_or(start);
    format!("{}\"…\"{}", &message[..start], message.get(end + 1..).unwrap_or_default())
}
