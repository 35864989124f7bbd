//! The error of a scan.

/// The bytes are not the JSON of a Kubernetes object.
///
/// Messages name the place of the problem and the expected token. Messages repeat no value, because objects
/// may contain secrets.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum ScanError {
    /// The bytes end before the value does. The scan may succeed with more bytes.
    #[error("the JSON ends before the object does")]
    Incomplete,
    /// The bytes are not JSON.
    #[error("not JSON: expected {expected} at byte {offset}")]
    Syntax {
        /// Byte offset from the start of the scanned value.
        offset: usize,
        /// The expected syntax.
        expected: &'static str,
    },
    /// The bytes are not UTF-8.
    #[error("not UTF-8 near byte {offset}")]
    Utf8 {
        /// Byte offset from the start of the scanned value.
        offset: usize,
    },
    /// A field of the object's metadata is missing or has another type.
    #[error("{field} is not {expected}")]
    Field {
        /// The path of the field.
        field: &'static str,
        /// The type of the field in Kubernetes.
        expected: &'static str,
    },
    /// The object is larger than the limit.
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
