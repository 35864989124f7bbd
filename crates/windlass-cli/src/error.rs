//! Errors as the command tells them: one sentence, with what to do.

/// Whatever went wrong; it is only ever shown.
pub(crate) type Error = Box<dyn std::error::Error + Send + Sync>;

pub(crate) type Result<T, E = Error> = std::result::Result<T, E>;
