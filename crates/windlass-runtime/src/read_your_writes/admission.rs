//! Whether a filtered cache holds an object.

/// Whether a filtered cache holds an object.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Admission {
    Held,
    NotHeld,
    /// A field selector decides, which only the server evaluates.
    Unknown,
}
