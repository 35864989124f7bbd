//! The admission of an object to a filtered cache.

/// The admission of an object to a filtered cache.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Admission {
    Held,
    NotHeld,
    /// A field selector decides, and only the server evaluates field selectors.
    Unknown,
}
