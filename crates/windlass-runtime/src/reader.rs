//! The part of an operator that reads caches.

use std::fmt;

/// The part of an operator that reads caches, for error messages.
#[derive(Clone, Debug)]
pub(crate) enum Reader {
    Controller(String),
    /// A runnable, or the webhooks of a server.
    Runnable(String),
}

impl Reader {
    pub(crate) fn name(&self) -> &str {
        match self {
            Self::Controller(name) | Self::Runnable(name) => name,
        }
    }
}

impl fmt::Display for Reader {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Controller(name) => write!(f, "controller {name:?}"),
            Self::Runnable(name) => write!(f, "runnable {name:?}"),
        }
    }
}
