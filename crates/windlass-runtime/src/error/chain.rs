//! Questions to an error and its causes.

use std::time::Duration;

use super::Error;

/// Returns the first result of `find` for an [`Error`] in the chain of causes.
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
    find_in_chain(error, Error::requested_retry)
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

/// Whether an error or one of its causes is terminal.
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_chain_says_each_cause_once_and_nothing_of_kubes_wrapping() {
        let refused = std::io::Error::other("connection refused");
        let inner = kube_client::Error::Service(Error::transport(refused).while_doing("listing pods").into());
        let outer = kube_client::Error::Service(inner.into());
        assert_eq!(chain(&outer), "listing pods: no response from the API server: connection refused");
    }
}
