//! Finds objects in bodies that arrive in pieces.
//!
//! A piece is indexed where it lies. Only what is cut by its end is copied, once, and goes on with the next piece; no
//! byte is looked at more than twice, however the pieces are cut.

mod buffer;
mod list;
mod value;
mod watch;

pub use self::{
    list::{ListFramer, ListMeta},
    watch::{WatchEvent, WatchFramer},
};

use crate::{ObjectKey, scan::ScanError};

/// An object in a body that could not be read. The body goes on behind it.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("an object could not be read{}: {error}", .key.as_ref().map(|key| format!(" ({key})")).unwrap_or_default())]
pub struct BadObject {
    /// Its key, as far as that could be read.
    pub key: Option<ObjectKey>,
    /// What is wrong with it.
    pub error: ScanError,
}

impl BadObject {
    fn new(error: ScanError, key: Option<ObjectKey>) -> Self {
        Self { key, error }
    }
}

/// The key of an object that does not scan, read slowly and leniently.
fn key_of(value: &serde_json::Value) -> Option<ObjectKey> {
    let metadata = value.get("metadata")?;
    let text = |field| metadata.get(field).and_then(serde_json::Value::as_str);
    Some(ObjectKey::new(text("namespace"), text("name").filter(|name| !name.is_empty())?))
}
