//! Errors of field sets and of typed values.

use std::fmt;

/// The error of a `fieldsV1` that cannot be read.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct FieldsError(pub(super) String);

impl fmt::Display for FieldsError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

impl std::error::Error for FieldsError {}

/// A mismatch between a value and its schema.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct TypedError {
    /// The path of the value, such as `.spec.ports[port=80]`; empty for the object itself.
    pub path: String,
    /// The message, without the path.
    pub message: String,
}

impl fmt::Display for TypedError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if self.path.is_empty() {
            f.write_str(&self.message)
        } else {
            write!(f, "{}: {}", self.path, self.message)
        }
    }
}

/// The mismatches between an object and its schema; never empty.
///
/// A single error is printed without a list; several errors are printed as a list, an error a line, after
/// `errors:`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct TypedErrors(pub Vec<TypedError>);

impl fmt::Display for TypedErrors {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.0.as_slice() {
            [error] => error.fmt(f),
            errors => {
                f.write_str("errors:")?;
                errors.iter().try_for_each(|error| write!(f, "\n  {error}"))
            }
        }
    }
}

impl std::error::Error for TypedErrors {}
