//! The size of an object as JSON, counted without writing the JSON.

use std::io;

use serde_json::Value;

/// The size of the largest object that the store takes, in bytes: that of etcd.
pub(crate) const MAX_STORED: usize = 1536 << 10;

/// Returns whether an object as JSON has at most `limit` bytes.
pub(crate) fn fits(object: &Value, limit: usize) -> bool {
    serde_json::to_writer(Room(limit), object).is_ok()
}

/// The bytes that are left for an object.
struct Room(usize);

impl io::Write for Room {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.0 = self.0.checked_sub(bytes.len()).ok_or(io::ErrorKind::StorageFull)?;
        Ok(bytes.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn an_object_of_exactly_the_limit_fits() {
        let object = json!({"a": [1, "b"]});
        let size = object.to_string().len();
        assert!(fits(&object, size) && !fits(&object, size - 1));
    }
}
