//! The error of the command.

/// Any error. It is only printed.
pub(crate) type Error = Box<dyn std::error::Error + Send + Sync>;

pub(crate) type Result<T, E = Error> = std::result::Result<T, E>;
