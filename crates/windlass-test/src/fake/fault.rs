//! The answers of the fake API server to requests that a fault strikes.

use kube_core::response::Status;
use windlass_runtime::BoxError;

use super::{
    request::ApiRequest,
    status::{self, failure_of},
};
use crate::Fault;

/// Panics unless the fake API server knows the fault.
#[track_caller]
pub(super) fn check(fault: &Fault) {
    let is_known = matches!(
        fault,
        Fault::Conflict
            | Fault::TooManyRequests(_)
            | Fault::ServerError
            | Fault::Forbidden
            | Fault::NotFound
            | Fault::AlreadyExists
            | Fault::Status { .. }
            | Fault::Timeout { .. }
            | Fault::Cut { .. }
    );
    assert!(
        is_known,
        "{fault}: the fake cluster has no watches, no clock and no process that could end; inject the fault by `Faults` before a `TestCluster`"
    );
}

/// Returns the status that answers a request.
///
/// # Errors
/// The connection breaks.
pub(super) fn answer(fault: &Fault, request: &ApiRequest) -> Result<Box<Status>, BoxError> {
    let (resource, name) = (&request.resource, request.object_name().unwrap_or_default());
    let other = |code, reason: &str, message: &str| failure_of(code, reason, message, resource, name);
    Ok(match fault {
        Fault::Conflict => status::modified(resource, name),
        Fault::NotFound => status::not_found(resource, name),
        Fault::AlreadyExists => status::already_exists(resource, name),
        Fault::Forbidden => status::forbidden(resource, name, "injected by the test"),
        Fault::Status { code, reason, message } => other(*code, reason, message),
        Fault::TooManyRequests(wait) => {
            let mut status = other(429, "TooManyRequests", "too many requests, please try again later");
            if let Some(details) = &mut status.details {
                details.retry_after_seconds = wait.as_secs().try_into().unwrap_or(u32::MAX);
            }
            status
        }
        Fault::Timeout { .. } => {
            other(504, "Timeout", "Timeout: request did not complete within the allotted timeout")
        }
        Fault::Cut { .. } => return Err("injected: connection reset by peer".into()),
        _ => other(500, "InternalError", "Internal error occurred: injected by the test"),
    })
}
