//! The error type of this crate.

mod chain;
mod field_conflict;

use std::{fmt, time::Duration};

use kube_core::response::Status;
use windlass_cache::ObjectKey;

pub(crate) use self::chain::{
    chain, is_conflict, is_terminal, is_undecodable, requested_retry, server_retry_after,
};
pub use self::field_conflict::FieldConflict;
use crate::{path_segment::InvalidName, reader::Reader, resource_path::GroupResource};

/// The longest wait that a server can ask for. Longer waits are cut to this.
pub(crate) const MAX_RETRY_AFTER: Duration = Duration::from_mins(2);

/// Any error. A reconciler may return each error type that converts into `BoxError`.
pub type BoxError = Box<dyn std::error::Error + Send + Sync + 'static>;

/// A `Result`. The default error type is [`Error`].
pub type Result<T, E = Error> = std::result::Result<T, E>;

/// Returns the time that a `Status` asks the client to wait, at most [`MAX_RETRY_AFTER`].
fn retry_after_of(status: &Status) -> Option<Duration> {
    let seconds = status.details.as_ref()?.retry_after_seconds;
    (seconds > 0).then(|| Duration::from_secs(u64::from(seconds)).min(MAX_RETRY_AFTER))
}

/// An error of the runtime or the API server.
///
/// The type is opaque, so that new kinds of failure break no caller. Methods such as
/// [`is_not_found`](Error::is_not_found) and [`is_conflict`](Error::is_conflict) distinguish the kinds.
///
/// `Display` and `Debug` print one line with the causes, and never the contents of an object.
pub struct Error(Box<Inner>);

struct Inner {
    kind: Kind,
    /// The operation that failed, outermost first: "creating pod default/a".
    doing: Option<String>,
    terminal: bool,
    /// When a reconcile that failed with this error is retried, in place of the back-off.
    retry_after: Option<Duration>,
}

enum Kind {
    /// The API server responded with a failure.
    Api { status: Box<Status>, retry_after: Option<Duration> },
    /// The API server did not respond: connection, TLS, credentials.
    Transport(BoxError),
    /// The API server did not respond in time.
    Timeout(Duration),
    /// A response with a body that stopped arriving.
    Stalled(Duration),
    /// Data that does not decode into the type.
    Decode { what: String, cause: BoxError },
    /// A cached object that does not decode. The cause names the object.
    Undecodable { resource: Box<GroupResource>, cause: windlass_cache::DecodeError },
    /// A read of a kind that the controller did not declare.
    NotDeclared { reader: Reader, kind: String },
    /// A mistake in the program or the environment: flags, kubeconfig, addresses in use.
    Setup(String),
    /// This replica is not the leader any more.
    LostLeadership,
    /// The manager is stopping.
    Stopped,
    /// An error of another crate.
    Other(BoxError),
}

impl Error {
    fn new(kind: Kind) -> Self {
        Self(Box::new(Inner { kind, doing: None, terminal: false, retry_after: None }))
    }

    /// Wraps an error of any type.
    pub fn other(error: impl Into<BoxError>) -> Self {
        let error: BoxError = error.into();
        match error.downcast::<Self>() {
            Ok(ours) => *ours,
            Err(error) => match error.downcast::<kube_client::Error>() {
                Ok(kube) => Self::from(*kube),
                Err(error) => Self::new(Kind::Other(error)),
            },
        }
    }

    /// Wraps an error that a retry does not cure. The error is logged and counted; the key is not retried
    /// until an object of the key changes.
    pub fn terminal(error: impl Into<BoxError>) -> Self {
        let mut error = Self::other(error);
        error.0.terminal = true;
        error
    }

    pub(crate) fn api(status: Box<Status>, retry_after: Option<Duration>) -> Self {
        Self::new(Kind::Api { status, retry_after })
    }

    /// Returns a conflict that the server reports in other words, such as a failed test of a JSON patch.
    pub(crate) fn conflict(message: String) -> Self {
        let mut status = Status::failure(&message, "Conflict");
        status.code = 409;
        Self::api(status.boxed(), None)
    }

    pub(crate) fn transport(cause: impl Into<BoxError>) -> Self {
        Self::new(Kind::Transport(cause.into()))
    }

    /// Converts the error of a client's service. Any unknown error means that the server did not respond.
    pub(crate) fn of_service(cause: BoxError) -> Self {
        match cause.downcast::<Self>() {
            Ok(ours) => *ours,
            // A client around a client.
            Err(cause) => match cause.downcast::<kube_client::Error>() {
                Ok(inner) => Self::from(*inner),
                Err(cause) => Self::transport(cause),
            },
        }
    }

    pub(crate) fn timeout(after: Duration) -> Self {
        Self::new(Kind::Timeout(after))
    }

    pub(crate) fn stalled(after: Duration) -> Self {
        Self::new(Kind::Stalled(after))
    }

    pub(crate) fn decode(what: impl Into<String>, cause: impl Into<BoxError>) -> Self {
        Self::new(Kind::Decode { what: what.into(), cause: cause.into() })
    }

    pub(crate) fn undecodable(resource: GroupResource, cause: windlass_cache::DecodeError) -> Self {
        Self::new(Kind::Undecodable { resource: Box::new(resource), cause })
    }

    /// Returns the resource and the key of the cached object that does not decode.
    pub(crate) fn undecodable_object(&self) -> Option<(&GroupResource, &ObjectKey)> {
        match &self.0.kind {
            Kind::Undecodable { resource, cause } => Some((resource, cause.key())),
            _ => None,
        }
    }

    /// Reports the position only: the messages of serde repeat values, which may be secret.
    pub(crate) fn undecodable_answer(cause: &serde_json::Error) -> Self {
        let what = match cause.classify() {
            serde_json::error::Category::Data => "a field is missing or of another type",
            _ => "it is not complete, valid JSON",
        };
        let position = format!("{what}, at line {} column {}", cause.line(), cause.column());
        Self::decode("the API server's response", position)
    }

    /// Returns the error of a read without a declaration. The type names the kind.
    pub(crate) fn not_declared(reader: Reader, type_: impl Into<String>) -> Self {
        Self::new(Kind::NotDeclared { reader, kind: type_.into() })
    }

    pub(crate) fn setup(message: impl Into<String>) -> Self {
        Self::new(Kind::Setup(message.into()))
    }

    pub(crate) fn lost_leadership() -> Self {
        Self::new(Kind::LostLeadership)
    }

    pub(crate) fn stopped() -> Self {
        Self::new(Kind::Stopped)
    }

    /// Adds the operation that failed to the front of the message.
    #[must_use]
    pub fn while_doing(mut self, what: impl fmt::Display) -> Self {
        self.0.doing = Some(match self.0.doing.take() {
            Some(inner) => format!("{what}: {inner}"),
            None => what.to_string(),
        });
        self
    }

    /// Returns the `Status` of the API server's response, if there was a response.
    pub fn status(&self) -> Option<&Status> {
        match &self.0.kind {
            Kind::Api { status, .. } => Some(status),
            _ => None,
        }
    }

    fn reason_is(&self, reason: &str, code: u16) -> bool {
        self.status().is_some_and(|status| {
            status.reason == reason || (status.reason.is_empty() && status.code == code)
        })
    }

    /// Returns whether the object or the resource does not exist.
    pub fn is_not_found(&self) -> bool {
        self.reason_is("NotFound", 404)
    }

    /// Returns whether an object of this name exists already.
    pub fn is_already_exists(&self) -> bool {
        self.reason_is("AlreadyExists", 0)
    }

    /// Returns whether the object has changed or was replaced since the read; or whether a server-side apply
    /// conflicts with another owner of a field. [`is_field_conflict`](Self::is_field_conflict) distinguishes
    /// the two cases.
    pub fn is_conflict(&self) -> bool {
        self.reason_is("Conflict", 409)
    }

    /// Returns whether the object violates the schema or a validation rule.
    pub fn is_invalid(&self) -> bool {
        self.reason_is("Invalid", 422)
    }

    /// Returns whether a `test` of a JSON patch failed: the object has changed or was replaced since the
    /// read.
    pub(crate) fn is_failed_test(&self) -> bool {
        // A violated rule names the field; a failed test has no details.
        self.is_invalid()
            && self.status().is_some_and(|status| {
                status
                    .details
                    .as_ref()
                    .is_none_or(|details| details.name.is_empty() && details.causes.is_empty())
            })
    }

    /// Returns whether RBAC or an admission plugin forbids the request.
    pub fn is_forbidden(&self) -> bool {
        self.reason_is("Forbidden", 403)
    }

    /// Returns whether the credentials are missing or invalid.
    pub fn is_unauthorized(&self) -> bool {
        self.reason_is("Unauthorized", 401)
    }

    /// Returns whether the resource version or continue token is too old.
    pub fn is_gone(&self) -> bool {
        self.reason_is("Expired", 410) || self.reason_is("Gone", 410)
    }

    /// Returns whether the server asks the client to slow down.
    pub fn is_too_many_requests(&self) -> bool {
        self.reason_is("TooManyRequests", 429)
    }

    /// Returns whether the client or the server gave up waiting.
    pub fn is_timeout(&self) -> bool {
        matches!(self.0.kind, Kind::Timeout(_) | Kind::Stalled(_))
            || self.reason_is("Timeout", 0)
            || self.reason_is("ServerTimeout", 0)
            || self.reason_is("", 504)
    }

    /// Returns whether the namespace is terminating: no object can be created in the namespace.
    pub fn is_namespace_terminating(&self) -> bool {
        self.is_forbidden()
            && self.status().and_then(|status| status.details.as_ref()).is_some_and(|details| {
                details.causes.iter().any(|cause| cause.reason == "NamespaceTerminating")
            })
    }

    /// Returns whether the same request may succeed later.
    pub fn is_transient(&self) -> bool {
        match &self.0.kind {
            Kind::Transport(_) | Kind::Timeout(_) | Kind::Stalled(_) => true,
            Kind::Api { status, .. } => matches!(status.code, 429 | 500 | 502 | 503 | 504),
            _ => false,
        }
    }

    /// Returns whether an object does not decode into the requested type.
    pub fn is_decode(&self) -> bool {
        matches!(self.0.kind, Kind::Decode { .. } | Kind::Undecodable { .. })
    }

    /// Returns whether a kind was read that the controller did not declare with `.owns`, `.watches` or `.reads`. The error is
    /// [terminal](Self::terminal), unless a [`ControllerHandle`](crate::ControllerHandle) of the controller may add the watch.
    pub fn is_not_declared(&self) -> bool {
        matches!(self.0.kind, Kind::NotDeclared { .. })
    }

    /// Returns whether the operation did not happen because the manager is stopping.
    pub fn is_stopped(&self) -> bool {
        matches!(self.0.kind, Kind::Stopped)
    }

    /// Returns whether this replica lost the leader election.
    pub fn is_lost_leadership(&self) -> bool {
        matches!(self.0.kind, Kind::LostLeadership)
    }

    /// Returns whether a retry does not cure the error. See [`Error::terminal`].
    pub fn is_terminal(&self) -> bool {
        self.0.terminal
    }

    /// Returns the time that the server asked the client to wait, at most two minutes.
    pub fn server_retry_after(&self) -> Option<Duration> {
        match &self.0.kind {
            Kind::Api { status, retry_after } => retry_after.or_else(|| retry_after_of(status)),
            _ => None,
        }
    }

    /// Retries a reconcile that fails with this error after `delay`, instead of the controller's back-off. Has no effect on a
    /// terminal error or a conflict.
    ///
    /// ```
    /// use std::time::Duration;
    /// use windlass_runtime::{Action, Error};
    ///
    /// fn reconcile_backup() -> Result<Action, Error> {
    ///     Err(Error::other("the store is in maintenance").retry_after(Duration::from_secs(60)))
    /// }
    /// # assert!(reconcile_backup().is_err());
    /// ```
    #[must_use]
    pub fn retry_after(mut self, delay: Duration) -> Self {
        self.0.retry_after = Some(delay);
        self
    }

    /// Returns the delay that [`retry_after`](Self::retry_after) set.
    fn requested_retry(&self) -> Option<Duration> {
        self.0.retry_after
    }
}

impl fmt::Display for Error {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if let Some(doing) = &self.0.doing {
            write!(f, "{doing}: ")?;
        }
        match &self.0.kind {
            Kind::Api { status, .. } if status.message.is_empty() => {
                write!(f, "the API server responded with {} {}", status.code, status.reason)
            }
            Kind::Api { status, .. } if self.is_field_conflict() => {
                field_conflict::print(&field_conflict::field_conflicts(status), f)?;
                write!(f, " ({})", status.code)
            }
            Kind::Api { status, .. } if status.code == 0 => f.write_str(&status.message),
            Kind::Api { status, .. } => write!(f, "{} ({})", status.message, status.code),
            Kind::Transport(cause) => write!(f, "no response from the API server: {}", chain(cause.as_ref())),
            Kind::Timeout(after) => write!(f, "no response from the API server within {after:?}"),
            Kind::Stalled(after) => {
                write!(f, "the API server stopped sending its response: no byte within {after:?}")
            }
            Kind::Decode { what, cause } => write!(f, "{what} does not decode: {cause}"),
            Kind::Undecodable { cause, .. } => write!(f, "{cause}"),
            Kind::NotDeclared { reader, kind } => {
                let add = match reader {
                    Reader::Controller(_) => format!(
                        "add `.owns::<{kind}>()`, `.watches::<{kind}>(..)` or `.reads::<{kind}>()` where the controller is built"
                    ),
                    Reader::Runnable(_) => {
                        format!("add `.reads::<{kind}>()` where the runnable or the webhook is built")
                    }
                };
                write!(f, "{reader} reads {kind} but did not declare it; {add}")
            }
            Kind::Setup(message) => f.write_str(message),
            Kind::LostLeadership => {
                f.write_str("leader election lost: another replica may lead now, so this process must end")
            }
            Kind::Stopped => f.write_str("the manager is stopping"),
            Kind::Other(cause) => f.write_str(&chain(cause.as_ref())),
        }
    }
}

impl fmt::Debug for Error {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(self, f)
    }
}

impl std::error::Error for Error {
    fn source(&self) -> Option<&(dyn std::error::Error + 'static)> {
        match &self.0.kind {
            Kind::Transport(cause) | Kind::Decode { cause, .. } | Kind::Other(cause) => Some(cause.as_ref()),
            _ => None,
        }
    }
}

impl From<kube_client::Error> for Error {
    fn from(error: kube_client::Error) -> Self {
        match error {
            kube_client::Error::Api(status) => Self::api(status, None),
            kube_client::Error::Service(cause) => Self::of_service(cause),
            kube_client::Error::HyperError(cause) => Self::transport(cause),
            kube_client::Error::SerdeError(cause) => Self::undecodable_answer(&cause),
            other => Self::new(Kind::Other(other.into())),
        }
    }
}

impl From<serde_json::Error> for Error {
    fn from(error: serde_json::Error) -> Self {
        Self::new(Kind::Other(error.into()))
    }
}

impl From<BoxError> for Error {
    fn from(error: BoxError) -> Self {
        Self::other(error)
    }
}

impl From<windlass_cache::SelectorError> for Error {
    fn from(error: windlass_cache::SelectorError) -> Self {
        Self::setup(error.to_string())
    }
}

impl From<windlass_cache::FieldPathError> for Error {
    fn from(error: windlass_cache::FieldPathError) -> Self {
        Self::setup(error.to_string())
    }
}

impl From<InvalidName> for Error {
    fn from(error: InvalidName) -> Self {
        Self::setup(error.to_string())
    }
}

impl From<windlass_cache::ParseKeyError> for Error {
    fn from(error: windlass_cache::ParseKeyError) -> Self {
        Self::setup(error.to_string())
    }
}

impl From<std::io::Error> for Error {
    fn from(error: std::io::Error) -> Self {
        Self::new(Kind::Other(error.into()))
    }
}
