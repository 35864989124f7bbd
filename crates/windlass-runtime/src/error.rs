//! The error of this crate: one opaque type that answers questions.

use std::{fmt, time::Duration};

use kube_core::response::Status;

use crate::client::MAX_RETRY_AFTER;

/// Any error: what a reconciler of one's own may return.
pub type BoxError = Box<dyn std::error::Error + Send + Sync + 'static>;

/// `Result` with this crate's [`Error`] unless another is named.
pub type Result<T, E = Error> = std::result::Result<T, E>;

/// What went wrong, in a sentence, with questions a program can ask.
///
/// The kinds of failure are not an enum that callers match on, so that new ones can be told apart without breaking
/// anybody: ask [`is_not_found`](Error::is_not_found), [`is_conflict`](Error::is_conflict) and so on.
///
/// Both `Display` and `Debug` print one readable line with the causes; neither prints an object's contents.
pub struct Error(Box<Inner>);

struct Inner {
    kind: Kind,
    /// What was being done, outermost first: "creating pod default/a".
    doing: Option<String>,
    terminal: bool,
    /// When a reconcile that failed with this error is retried, in place of the back-off.
    retry_after: Option<Duration>,
}

enum Kind {
    /// The API server answered with a failure.
    Api { status: Box<Status>, retry_after: Option<Duration> },
    /// The API server gave no answer: connection, TLS, credentials.
    Transport(BoxError),
    /// No answer in time.
    Timeout(Duration),
    /// A response whose body stopped arriving.
    Stalled(Duration),
    /// An object that is not what its type says.
    Decode { what: String, cause: BoxError },
    /// A cached object that does not decode. The cause names it.
    Undecodable(windlass_cache::DecodeError),
    /// A read of a kind that the controller did not declare.
    NotDeclared { controller: String, kind: String },
    /// The program's own mistake, or its environment's: flags, kubeconfig, addresses in use.
    Setup(String),
    /// Another replica leads now.
    LostLeadership,
    /// The manager is stopping.
    Stopped,
    /// An error of somebody else.
    Other(BoxError),
}

impl Error {
    fn new(kind: Kind) -> Self {
        Self(Box::new(Inner { kind, doing: None, terminal: false, retry_after: None }))
    }

    /// An error of one's own.
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

    /// An error that trying again does not cure: it is counted and shown, and the key is not retried until something
    /// about its objects changes.
    pub fn terminal(error: impl Into<BoxError>) -> Self {
        let mut error = Self::other(error);
        error.0.terminal = true;
        error
    }

    pub(crate) fn api(status: Box<Status>, retry_after: Option<Duration>) -> Self {
        Self::new(Kind::Api { status, retry_after })
    }

    pub(crate) fn transport(cause: impl Into<BoxError>) -> Self {
        Self::new(Kind::Transport(cause.into()))
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

    pub(crate) fn undecodable(cause: windlass_cache::DecodeError) -> Self {
        Self::new(Kind::Undecodable(cause))
    }

    /// Where, and not what: serde's own words repeat values, which may be secrets.
    pub(crate) fn undecodable_answer(cause: &serde_json::Error) -> Self {
        let what = match cause.classify() {
            serde_json::error::Category::Data => "a field is missing or of another type",
            _ => "it is not JSON, or not all of it",
        };
        let place = format!("{what}, at line {} column {}", cause.line(), cause.column());
        Self::decode("the API server's answer", place)
    }

    pub(crate) fn not_declared(controller: &str, kind: &str) -> Self {
        Self::new(Kind::NotDeclared { controller: controller.to_owned(), kind: kind.to_owned() })
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

    /// Adds what was being done, before what is known already.
    #[must_use]
    pub fn while_doing(mut self, what: impl fmt::Display) -> Self {
        self.0.doing = Some(match self.0.doing.take() {
            Some(inner) => format!("{what}: {inner}"),
            None => what.to_string(),
        });
        self
    }

    /// The `Status` the API server answered with, if it did.
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

    /// The object, or the resource, does not exist.
    pub fn is_not_found(&self) -> bool {
        self.reason_is("NotFound", 404)
    }

    /// An object of this name exists already.
    pub fn is_already_exists(&self) -> bool {
        self.reason_is("AlreadyExists", 0)
    }

    /// Somebody else wrote the object in between, or it is not the one that was meant: read it again.
    pub fn is_conflict(&self) -> bool {
        self.reason_is("Conflict", 409)
    }

    /// The object breaks its schema or a rule.
    pub fn is_invalid(&self) -> bool {
        self.reason_is("Invalid", 422)
    }

    /// A `test` of a JSON patch failed: the object is not as it was read, or not the one that was read.
    pub(crate) fn is_failed_test(&self) -> bool {
        // A field that breaks a rule is named; this names nothing.
        self.is_invalid()
            && self.status().is_some_and(|status| {
                status
                    .details
                    .as_ref()
                    .is_none_or(|details| details.name.is_empty() && details.causes.is_empty())
            })
    }

    /// The credentials are good but do not allow this: RBAC, or an admission plugin.
    pub fn is_forbidden(&self) -> bool {
        self.reason_is("Forbidden", 403)
    }

    /// The credentials are missing or not good.
    pub fn is_unauthorized(&self) -> bool {
        self.reason_is("Unauthorized", 401)
    }

    /// The resourceVersion or continue token is too old.
    pub fn is_gone(&self) -> bool {
        self.reason_is("Expired", 410) || self.reason_is("Gone", 410)
    }

    /// The server asks to slow down.
    pub fn is_too_many_requests(&self) -> bool {
        self.reason_is("TooManyRequests", 429)
    }

    /// No answer in time, ours or the server's word.
    pub fn is_timeout(&self) -> bool {
        matches!(self.0.kind, Kind::Timeout(_) | Kind::Stalled(_))
            || self.reason_is("Timeout", 0)
            || self.reason_is("ServerTimeout", 0)
            || self.reason_is("", 504)
    }

    /// The namespace is being deleted: nothing can be created in it.
    pub fn is_namespace_terminating(&self) -> bool {
        self.is_forbidden()
            && self.status().and_then(|status| status.details.as_ref()).is_some_and(|details| {
                details.causes.iter().any(|cause| cause.reason == "NamespaceTerminating")
            })
    }

    /// It may work when tried again, unchanged.
    pub fn is_transient(&self) -> bool {
        match &self.0.kind {
            Kind::Transport(_) | Kind::Timeout(_) | Kind::Stalled(_) => true,
            Kind::Api { status, .. } => matches!(status.code, 429 | 500 | 502 | 503 | 504),
            _ => false,
        }
    }

    /// An object did not decode into the type it was read as.
    pub fn is_decode(&self) -> bool {
        matches!(self.0.kind, Kind::Decode { .. } | Kind::Undecodable(_))
    }

    /// A kind was read that the controller did not declare with `.owns` or `.watches`.
    pub fn is_not_declared(&self) -> bool {
        matches!(self.0.kind, Kind::NotDeclared { .. })
    }

    /// What was asked for did not happen, because the manager is stopping.
    pub fn is_stopped(&self) -> bool {
        matches!(self.0.kind, Kind::Stopped)
    }

    /// This replica lost its Lease.
    pub fn is_lost_leadership(&self) -> bool {
        matches!(self.0.kind, Kind::LostLeadership)
    }

    /// Retrying does not cure it; see [`Error::terminal`].
    pub fn is_terminal(&self) -> bool {
        self.0.terminal
    }

    /// The time that the server asked to wait, at most two minutes.
    pub fn server_retry_after(&self) -> Option<Duration> {
        match &self.0.kind {
            Kind::Api { status, retry_after } => retry_after.or_else(|| {
                let seconds = status.details.as_ref()?.retry_after_seconds;
                (seconds > 0).then(|| Duration::from_secs(u64::from(seconds)).min(MAX_RETRY_AFTER))
            }),
            _ => None,
        }
    }

    /// Retries a reconcile that fails with this error after `delay`, instead of the controller's back-off.
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
}

/// Finds the first answer that an [`Error`] in the chain of causes gives.
fn find_in_chain<T>(
    error: &(dyn std::error::Error + 'static),
    find: impl Fn(&Error) -> Option<T>,
) -> Option<T> {
    let mut next = Some(error);
    while let Some(error) = next {
        if let Some(found) = error.downcast_ref::<Error>().and_then(&find) {
            return Some(found);
        }
        next = error.source();
    }
    None
}

/// The delay that [`Error::retry_after`] set on an error or one of its causes.
pub(crate) fn requested_retry(error: &(dyn std::error::Error + 'static)) -> Option<Duration> {
    find_in_chain(error, |error| error.0.retry_after)
}

/// Whether an error or one of its causes is a conflict, of this crate or of `kube_client`.
pub(crate) fn is_conflict(error: &(dyn std::error::Error + 'static)) -> bool {
    let mut next = Some(error);
    while let Some(error) = next {
        let is_kubes = matches!(
            error.downcast_ref::<kube_client::Error>(),
            Some(kube_client::Error::Api(status)) if status.code == 409 && status.reason != "AlreadyExists"
        );
        if is_kubes || error.downcast_ref::<Error>().is_some_and(Error::is_conflict) {
            return true;
        }
        next = error.source();
    }
    false
}

/// Whether any error in the chain of causes is terminal.
pub(crate) fn is_terminal(error: &(dyn std::error::Error + 'static)) -> bool {
    find_in_chain(error, |error| error.is_terminal().then_some(())).is_some()
}

/// Returns an error with its causes on one line. A cause whose text the line has already is left out.
pub(crate) fn chain(error: &(dyn std::error::Error + 'static)) -> String {
    let mut error = error;
    // kube's client wraps every error of a request in one that says "ServiceError".
    while let Some(kube_client::Error::Service(cause)) = error.downcast_ref() {
        error = cause.as_ref();
    }
    let mut text = error.to_string();
    let mut next = error.source();
    while let Some(cause) = next {
        let said = cause.to_string();
        if !text.contains(&said) {
            text.push_str(": ");
            text.push_str(&said);
        }
        next = cause.source();
    }
    text
}

impl fmt::Display for Error {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if let Some(doing) = &self.0.doing {
            write!(f, "{doing}: ")?;
        }
        match &self.0.kind {
            Kind::Api { status, .. } if status.message.is_empty() => {
                write!(f, "the API server answered {} {}", status.code, status.reason)
            }
            Kind::Api { status, .. } if status.code == 0 => f.write_str(&status.message),
            Kind::Api { status, .. } => write!(f, "{} ({})", status.message, status.code),
            Kind::Transport(cause) => write!(f, "no answer from the API server: {}", chain(cause.as_ref())),
            Kind::Timeout(after) => write!(f, "no answer from the API server within {after:?}"),
            Kind::Stalled(after) => {
                write!(f, "the API server stopped sending its answer: no byte within {after:?}")
            }
            Kind::Decode { what, cause } => write!(f, "{what} does not decode: {cause}"),
            Kind::Undecodable(cause) => write!(f, "{cause}"),
            Kind::NotDeclared { controller, kind } => write!(
                f,
                "controller {controller:?} reads {kind} but did not declare it; \
                 add `.owns::<{kind}>()` or `.watches::<{kind}>(..)` where the controller is built"
            ),
            Kind::Setup(message) => f.write_str(message),
            Kind::LostLeadership => {
                f.write_str("leader election lost: another replica may lead now, this one must end")
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
            kube_client::Error::Service(cause) => match cause.downcast::<Self>() {
                Ok(ours) => *ours,
                // A client around a client.
                Err(cause) => match cause.downcast::<kube_client::Error>() {
                    Ok(inner) => Self::from(*inner),
                    Err(cause) => Self::transport(cause),
                },
            },
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

impl From<std::io::Error> for Error {
    fn from(error: std::io::Error) -> Self {
        Self::new(Kind::Other(error.into()))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_chain_says_each_cause_once_and_nothing_of_kubes_wrapping() {
        let refused = std::io::Error::other("connection refused");
        let inner = kube_client::Error::Service(Error::transport(refused).while_doing("listing pods").into());
        let outer = kube_client::Error::Service(inner.into());
        assert_eq!(chain(&outer), "listing pods: no answer from the API server: connection refused");
    }
}
