//! The failures of the fake API server, in the words of the real server.

use kube_core::response::{Status, StatusDetails};
use serde_json::Value;

use windlass_runtime::detached::GroupResource;

/// The result of a request: an answer, or the `Status` of a failure.
pub(super) type StatusResult<T> = Result<T, Box<Status>>;

/// Makes a failure without details.
pub(super) fn failure(code: u16, reason: &str, message: impl AsRef<str>) -> Box<Status> {
    Status::failure(message.as_ref(), reason).with_code(code).boxed()
}

/// Makes a failure of a request for an object, or for a resource if `name` is empty.
pub(super) fn failure_of(
    code: u16,
    reason: &str,
    message: impl AsRef<str>,
    resource: &GroupResource,
    name: &str,
) -> Box<Status> {
    Box::new(failure(code, reason, message).with_details(details(resource, name, "")))
}

pub(super) fn details(resource: &GroupResource, name: &str, uid: &str) -> StatusDetails {
    StatusDetails {
        name: name.to_owned(),
        group: resource.group.clone(),
        kind: resource.resource.clone(),
        uid: uid.to_owned(),
        causes: Vec::new(),
        retry_after_seconds: 0,
    }
}

pub(super) fn not_found(resource: &GroupResource, name: &str) -> Box<Status> {
    failure_of(404, "NotFound", format!("{resource} {name:?} not found"), resource, name)
}

/// Returns 404: the path is not that of a resource.
pub(super) fn no_such_resource() -> Box<Status> {
    failure_of(
        404,
        "NotFound",
        "the server could not find the requested resource",
        &GroupResource { group: String::new(), resource: String::new() },
        "",
    )
}

pub(super) fn already_exists(resource: &GroupResource, name: &str) -> Box<Status> {
    failure_of(409, "AlreadyExists", format!("{resource} {name:?} already exists"), resource, name)
}

pub(super) fn conflict(resource: &GroupResource, name: &str, why: &str) -> Box<Status> {
    let message = format!("Operation cannot be fulfilled on {resource} {name:?}: {why}");
    failure_of(409, "Conflict", message, resource, name)
}

/// Returns 409: the object has changed since the client's read.
pub(super) fn modified(resource: &GroupResource, name: &str) -> Box<Status> {
    conflict(
        resource,
        name,
        "the object has been modified; please apply your changes to the latest version and try again",
    )
}

/// Returns 409: the uid differs from the uid of the client's object.
pub(super) fn uid_precondition(
    resource: &GroupResource,
    name: &str,
    wanted: &str,
    found: &str,
) -> Box<Status> {
    let why = format!("Precondition failed: UID in precondition: {wanted}, UID in object meta: {found}");
    conflict(resource, name, &why)
}

pub(super) fn forbidden(resource: &GroupResource, name: &str, why: &str) -> Box<Status> {
    let message = if name.is_empty() {
        format!("{resource} is forbidden: {why}")
    } else {
        format!("{resource} {name:?} is forbidden: {why}")
    };
    failure_of(403, "Forbidden", message, resource, name)
}

pub(super) fn bad_request(message: impl AsRef<str>) -> Box<Status> {
    failure(400, "BadRequest", message)
}

/// Returns 422: a patch does not fit the object. Unlike the status of an invalid object, this status has no
/// details.
pub(super) fn unprocessable(message: impl AsRef<str>) -> Box<Status> {
    failure(422, "Invalid", message)
}

/// Returns 422: the object breaks a rule. The details name the kind, not the resource.
pub(super) fn invalid(resource: &GroupResource, kind: &str, name: &str, why: &str) -> Box<Status> {
    let qualified =
        if resource.group.is_empty() { kind.to_owned() } else { format!("{kind}.{}", resource.group) };
    let mut status =
        failure_of(422, "Invalid", format!("{qualified} {name:?} is invalid: {why}"), resource, name);
    if let Some(details) = &mut status.details {
        details.kind = kind.to_owned();
    }
    status
}

pub(super) fn method_not_allowed(message: impl AsRef<str>) -> Box<Status> {
    failure(405, "MethodNotAllowed", message)
}

pub(super) fn unsupported_media_type(media_type: &str) -> Box<Status> {
    failure(
        415,
        "UnsupportedMediaType",
        format!("the server does not support patches of type {media_type:?}"),
    )
}

/// Converts a `Status` to JSON, with the `kind` that clients look for.
pub(super) fn status_object(status: &Status) -> Value {
    let mut object = serde_json::to_value(status).unwrap_or_default();
    object["kind"] = "Status".into();
    object["apiVersion"] = "v1".into();
    object
}
