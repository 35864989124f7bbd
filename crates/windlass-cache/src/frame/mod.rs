//! Finds objects in response bodies that arrive in pieces.
//!
//! A piece is scanned in place. Only a value that continues in the next piece is copied, once. Each byte is read at most twice,
//! wherever the pieces end.

mod buffer;
mod list;
mod value;
mod watch;

pub use self::{
    list::{ListFramer, ListMeta},
    watch::{WatchEvent, WatchFramer},
};

use crate::{ObjectKey, scan::ScanError};

/// An object of a body that could not be read. Parsing continues after the object.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("an object could not be read{}: {error}", .key.as_ref().map(|key| format!(" ({key})")).unwrap_or_default())]
pub struct UnreadableObject {
    /// The key of the object, if it could be read.
    pub key: Option<ObjectKey>,
    /// The problem.
    pub error: ScanError,
}

impl UnreadableObject {
    fn new(error: ScanError, key: Option<ObjectKey>) -> Self {
        Self { key, error }
    }
}

/// Returns the key of an object that the scan rejects. The object is `json`, or its member `member`.
fn key_in(json: &[u8], member: Option<&str>) -> Option<ObjectKey> {
    let value = serde_json::from_slice::<serde_json::Value>(json).ok()?;
    let object = member.map_or(Some(&value), |member| value.get(member))?;
    let metadata = object.get("metadata")?;
    let text = |field| metadata.get(field).and_then(serde_json::Value::as_str);
    Some(ObjectKey::new(text("namespace"), text("name").filter(|name| !name.is_empty())?))
}
