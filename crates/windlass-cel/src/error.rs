//! Errors of an evaluation.

use std::fmt;

use crate::value::Text;

/// The reason why an evaluation has failed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ErrorKind {
    /// The expression has no value for its input. `&&`, `||`, `all` and `exists` may absorb the error.
    Evaluation,
    /// The evaluation has cost more than it may.
    CostLimit,
    /// The evaluation was interrupted.
    Interrupted,
    /// The evaluation would take more memory or time than it may, for little cost.
    ResourceLimit,
}

/// The error of an evaluation. `Display` writes the message.
#[derive(Clone, Debug, PartialEq)]
pub struct Error {
    kind: ErrorKind,
    /// The message. Empty for arguments that no overload takes, of which the caller knows the function.
    message: Text<'static>,
}

impl Error {
    /// Returns an error of the evaluation with this message.
    pub fn new(message: impl Into<String>) -> Self {
        Self { kind: ErrorKind::Evaluation, message: Text::owned(message.into()) }
    }

    pub(crate) const fn fixed(message: &'static str) -> Self {
        Self { kind: ErrorKind::Evaluation, message: Text::Borrowed(message) }
    }

    pub(crate) const fn cost_limit() -> Self {
        let message = Text::Borrowed("operation cancelled: actual cost limit exceeded");
        Self { kind: ErrorKind::CostLimit, message }
    }

    pub(crate) const fn interrupted() -> Self {
        Self { kind: ErrorKind::Interrupted, message: Text::Borrowed("operation interrupted") }
    }

    pub(crate) const fn resource_limit() -> Self {
        let message = Text::Borrowed("operation cancelled: the result is too large");
        Self { kind: ErrorKind::ResourceLimit, message }
    }

    /// Returns the error of arguments that no overload of the function takes.
    pub(crate) const fn no_overload() -> Self {
        Self::fixed("no such overload")
    }

    /// Returns the error of arguments for which the caller writes the message.
    pub(crate) const fn mismatch() -> Self {
        Self::fixed("")
    }

    pub(crate) fn is_mismatch(&self) -> bool {
        self.message.is_empty()
    }

    /// Returns the reason of the failure.
    pub fn kind(&self) -> ErrorKind {
        self.kind
    }

    /// Returns whether the error ends the evaluation at once.
    pub(crate) fn is_fatal(&self) -> bool {
        self.kind != ErrorKind::Evaluation
    }
}

impl fmt::Display for Error {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.message)
    }
}

impl std::error::Error for Error {}
