//! Why bytes could not be indexed.

/// Bytes that are not the JSON of a Kubernetes object.
///
/// Messages say where and what was expected, never what was there: objects may hold secrets.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum ScanError {
    /// The bytes end before the value does. With more bytes the same scan may succeed.
    #[error("the JSON ends before the object does")]
    Incomplete,
    /// The bytes are not JSON.
    #[error("not JSON: expected {expected} at byte {offset}")]
    Syntax {
        /// Byte offset from the start of the scanned value.
        offset: usize,
        /// What would have been legal there.
        expected: &'static str,
    },
    /// The bytes are not UTF-8.
    #[error("not UTF-8 near byte {offset}")]
    Utf8 {
        /// Byte offset from the start of the scanned value.
        offset: usize,
    },
    /// A field of the object's metadata is missing or not of its type.
    #[error("{field} is not {expected}")]
    Field {
        /// Path of the field.
        field: &'static str,
        /// The type the field has in Kubernetes.
        expected: &'static str,
    },
    /// The object is larger than the cache is willing to hold.
    #[error("the object is larger than {limit} bytes")]
    TooLarge {
        /// The limit, in bytes.
        limit: usize,
    },
}

impl ScanError {
    pub(crate) fn syntax(offset: usize, expected: &'static str) -> Self {
        Self::Syntax { offset, expected }
    }

    pub(crate) fn field(field: &'static str, expected: &'static str) -> Self {
        Self::Field { field, expected }
    }
}
