//! The error type of this crate.

use std::{error::Error as StdError, fmt, sync::Arc};

/// Any error.
pub type BoxError = Box<dyn StdError + Send + Sync + 'static>;

/// A `Result` whose error type is [`Error`].
pub type Result<T, E = Error> = std::result::Result<T, E>;

/// A failure to build a client, to connect, or to exchange a request and a response. `Display` never prints a header or a body; the cause is
/// in [`source`](StdError::source).
#[derive(Debug, Clone)]
pub struct Error(Kind, Option<Arc<dyn StdError + Send + Sync>>);

#[derive(Debug, Clone)]
enum Kind {
    Setup(&'static str),
    Credentials,
    Connect(Arc<str>),
    Exchange,
    Stopped,
}

impl Error {
    pub(crate) fn setup(what: &'static str, cause: impl Into<BoxError>) -> Self {
        Self::new(Kind::Setup(what), cause)
    }

    pub(crate) fn credentials(cause: impl Into<BoxError>) -> Self {
        Self::new(Kind::Credentials, cause)
    }

    pub(crate) fn connect(server: &str, cause: impl Into<BoxError>) -> Self {
        Self::new(Kind::Connect(server.into()), cause)
    }

    pub(crate) fn exchange(cause: impl Into<BoxError>) -> Self {
        Self::new(Kind::Exchange, cause)
    }

    /// Returns the error of a client whose tokio runtime has shut down.
    pub(crate) fn stopped() -> Self {
        Self(Kind::Stopped, None)
    }

    fn new(kind: Kind, cause: impl Into<BoxError>) -> Self {
        Self(kind, Some(Arc::from(cause.into())))
    }

    /// Returns true if no connection was made, so that the server does not have the request.
    pub fn is_connect(&self) -> bool {
        matches!(self.0, Kind::Connect(_))
    }
}

impl fmt::Display for Error {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match &self.0 {
            Kind::Setup(what) => write!(f, "{what} of the client's configuration"),
            Kind::Credentials => f.write_str("the credentials of the client's configuration"),
            Kind::Connect(server) => write!(f, "cannot connect to the API server at {server}"),
            Kind::Exchange => f.write_str("the exchange with the API server failed"),
            Kind::Stopped => f.write_str("the tokio runtime of the client has shut down"),
        }
    }
}

impl StdError for Error {
    fn source(&self) -> Option<&(dyn StdError + 'static)> {
        self.1.as_deref().map(|cause| cause as &(dyn StdError + 'static))
    }
}
