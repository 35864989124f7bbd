//! The envelope of a watch event.

use super::{ScanError, cursor::ReadContainers, object::ObjectScan};

/// The type of a watch event.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum WatchEventType {
    /// The object was created, or is one of the initial objects.
    Added,
    /// The object was changed.
    Modified,
    /// The object was deleted; the event has the last state.
    Deleted,
    /// Everything up to the object's resource version has been sent.
    Bookmark,
    /// The watch failed; the object is a `Status`.
    Error,
    /// A type that this version of the crate does not know.
    Unknown,
}

impl ObjectScan<'_, '_> {
    /// Reads the event that begins at the cursor.
    pub(super) fn event(&mut self) -> Result<WatchEventType, ScanError> {
        let mut event = None;
        let mut has_object = false;
        self.each_member(|scan, key| {
            match &*scan.cursor.unescaped(key)? {
                b"type" => event = scan.event_type()?,
                b"object" => {
                    // The last of duplicate keys wins.
                    scan.index.clear();
                    scan.object()?;
                    has_object = true;
                }
                _ => scan.cursor.skip_value()?,
            }
            Ok(())
        })?;
        if !has_object {
            return Err(ScanError::field("object", "the object of a watch event"));
        }
        event.ok_or(ScanError::field("type", "the type of a watch event"))
    }

    fn event_type(&mut self) -> Result<Option<WatchEventType>, ScanError> {
        let Some(text) = self.text("type")? else { return Ok(None) };
        Ok(Some(match self.index.text(self.cursor.bytes, text) {
            b"ADDED" => WatchEventType::Added,
            b"MODIFIED" => WatchEventType::Modified,
            b"DELETED" => WatchEventType::Deleted,
            b"BOOKMARK" => WatchEventType::Bookmark,
            b"ERROR" => WatchEventType::Error,
            _ => WatchEventType::Unknown,
        }))
    }
}
