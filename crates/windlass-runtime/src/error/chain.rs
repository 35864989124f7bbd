//! Questions to an error and the error's causes.

use std::time::Duration;

use kube_core::response::Status;

use super::Error;
use crate::resource_path::GroupResource;

type DynError = dyn std::error::Error + 'static;

/// Returns an error and the causes of the error.
fn chain_of(error: &DynError) -> impl Iterator<Item = &DynError> {
    std::iter::successors(Some(error), |error| error.source())
}

/// Returns the first result of `find` for an [`Error`] in the chain of causes.
fn find_in_chain<T>(error: &DynError, find: impl Fn(&Error) -> Option<T>) -> Option<T> {
    chain_of(error).find_map(|error| error.downcast_ref::<Error>().and_then(&find))
}

/// Returns the delay that [`Error::retry_after`] set on an error or a cause.
pub(crate) fn requested_retry(error: &DynError) -> Option<Duration> {
    find_in_chain(error, Error::requested_retry)
}

/// Returns the time that the server asked the client to wait, in an error or a cause, of this crate or of `kube_client`.
pub(crate) fn server_retry_after(error: &DynError) -> Option<Duration> {
    chain_of(error).find_map(|error| match error.downcast_ref::<kube_client::Error>() {
        Some(kube_client::Error::Api(status)) => super::retry_after_of(status),
        _ => error.downcast_ref::<Error>().and_then(Error::server_retry_after),
    })
}

/// Returns whether an error or a cause is a conflict, of this crate or of `kube_client`.
pub(crate) fn is_conflict(error: &DynError) -> bool {
    let conflict = chain_of(error).find_map(|error| match error.downcast_ref::<kube_client::Error>() {
        Some(kube_client::Error::Api(status)) => {
            Some(&**status).filter(|status| status.code == 409 && status.reason != "AlreadyExists")
        }
        _ => error.downcast_ref::<Error>().filter(|error| error.is_conflict()).and_then(Error::status),
    });
    conflict.is_some_and(|status| !is_of_field_managers(status))
}

/// Returns whether a server-side apply failed because another manager owns a field. A retry fails in the same
/// way.
fn is_of_field_managers(status: &Status) -> bool {
    !super::field_conflict::field_conflicts(status).is_empty()
}

/// Returns whether an error or a cause is terminal.
pub(crate) fn is_terminal(error: &DynError) -> bool {
    find_in_chain(error, |error| error.is_terminal().then_some(())).is_some()
}

/// Returns whether the chain of causes says that the cached object of this resource and key does not decode.
pub(crate) fn is_undecodable(error: &DynError, resource: &GroupResource, key: &str) -> bool {
    let is_object = |error: &Error| {
        let (of, object) = error.undecodable_object()?;
        (of == resource && object.as_str() == key).then_some(())
    };
    find_in_chain(error, is_object).is_some()
}

/// Returns an error with all causes on one line. A cause with a text that is already on the line is left out.
pub(crate) fn chain(error: &DynError) -> String {
    let mut error = error;
    // kube's client wraps every error of a request in an error with the text "ServiceError".
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
    use serde_json::json;

    use super::*;

    /// Only a conflict that a new read resolves is quiet. A conflict about the owners of fields stays until a
    /// person resolves the conflict.
    #[test]
    fn a_conflict_of_field_managers_is_an_error() {
        let refused = |causes| {
            let status = json!({ "status": "Failure", "reason": "Conflict", "code": 409, "message": "no",
                "details": { "causes": causes } });
            kube_client::Error::Api(Box::new(serde_json::from_value(status).expect("a status")))
        };
        let (behind, owned) =
            (json!([]), json!([{ "reason": "FieldManagerConflict", "message": "x", "field": ".spec" }]));
        assert!(is_conflict(&refused(behind)));
        assert!(!is_conflict(&refused(owned.clone())));
        assert!(!is_conflict(&Error::from(refused(owned)).while_doing("applying")));
    }

    #[test]
    fn a_chain_says_each_cause_once_and_nothing_of_kubes_wrapping() {
        let refused = std::io::Error::other("connection refused");
        let inner = kube_client::Error::Service(Error::transport(refused).while_doing("listing pods").into());
        let outer = kube_client::Error::Service(inner.into());
        assert_eq!(chain(&outer), "listing pods: no response from the API server: connection refused");
    }
}
