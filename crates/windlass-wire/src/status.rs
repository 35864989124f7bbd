//! `metav1.Status`: the reply to every request that fails, and to some that succeed.

mod denied;

use std::borrow::Cow;
use std::collections::HashSet;
use std::fmt;

use serde::{Deserialize, Serialize};
use windlass_schema::{ErrorBudget, FieldError, go_quote};

pub use denied::Denied;

use super::GroupResource;

/// The error of etcd for an object that is too large.
const STORAGE_TOO_LARGE: &str = "etcdserver: request is too large";
/// The largest number of errors in a reply. An object of three megabytes can have a million errors.
const MAX_ERRORS: usize = 1000;

/// The `Status` object.
#[derive(Clone, Debug, Default, PartialEq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct Status {
    kind: &'static str,
    api_version: &'static str,
    metadata: ListMeta,
    /// `Success` or `Failure`.
    pub status: &'static str,
    /// The message for people.
    #[serde(skip_serializing_if = "String::is_empty")]
    pub message: String,
    /// The machine-readable reason.
    #[serde(skip_serializing_if = "str::is_empty")]
    pub reason: Cow<'static, str>,
    /// The object of the status, and the errors.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub details: Option<Details>,
    /// The HTTP status code; 0 (absent) on some successes.
    #[serde(skip_serializing_if = "is_zero")]
    pub code: u16,
}

#[derive(Clone, Debug, Default, PartialEq, Serialize)]
struct ListMeta {
    #[serde(rename = "continue", skip_serializing_if = "String::is_empty")]
    continue_token: String,
}

/// The `details` of a [`Status`].
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct Details {
    /// Name of the object.
    #[serde(skip_serializing_if = "String::is_empty")]
    pub name: String,
    /// API group of the object.
    #[serde(skip_serializing_if = "String::is_empty")]
    pub group: String,
    /// The resource (`pods`), or for validation errors the kind (`Pod`).
    #[serde(skip_serializing_if = "String::is_empty")]
    pub kind: String,
    /// Uid of the object.
    #[serde(skip_serializing_if = "String::is_empty")]
    pub uid: String,
    /// The errors of single fields.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub causes: Vec<Cause>,
    /// The seconds after which a client may try again; 0 for no advice.
    #[serde(skip_serializing_if = "is_zero_u32")]
    pub retry_after_seconds: u32,
}

/// An entry of [`Details::causes`].
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct Cause {
    /// The machine-readable reason: `FieldValueInvalid`, `ResourceVersionTooLarge`, …
    #[serde(skip_serializing_if = "String::is_empty")]
    pub reason: String,
    /// The message for people.
    #[serde(skip_serializing_if = "String::is_empty")]
    pub message: String,
    /// The path of the field.
    #[serde(skip_serializing_if = "String::is_empty")]
    pub field: String,
}

#[expect(clippy::trivially_copy_pass_by_ref, reason = "the signature serde asks for")]
fn is_zero(value: &u16) -> bool {
    *value == 0
}

#[expect(clippy::trivially_copy_pass_by_ref, reason = "the signature serde asks for")]
fn is_zero_u32(value: &u32) -> bool {
    *value == 0
}

impl Status {
    fn failure(code: u16, reason: &'static str, message: impl Into<String>) -> Self {
        Self {
            kind: "Status",
            api_version: "v1",
            status: "Failure",
            message: message.into(),
            reason: reason.into(),
            code,
            ..Self::default()
        }
    }

    /// Creates the `Status` of a completed delete: `{status: Success, details}` without message and code.
    pub fn success(details: Details) -> Self {
        Self {
            kind: "Status",
            api_version: "v1",
            status: "Success",
            details: Some(details),
            ..Self::default()
        }
    }

    /// Returns the token that continues a list after the list's own token expired, or "".
    pub fn continue_token(&self) -> &str {
        &self.metadata.continue_token
    }

    /// Writes the status as JSON.
    pub fn to_json(&self) -> Vec<u8> {
        serde_json::to_vec(self).unwrap_or_default()
    }
}

/// The error of a request, in the form that is sent to the client.
#[derive(Clone, PartialEq)]
pub struct ApiError(Box<Status>);

impl ApiError {
    /// The largest number of objects that the error of an unreadable list names, as in kube-apiserver.
    pub const MAX_UNREADABLE: usize = 100;

    fn new(code: u16, reason: &'static str, message: impl Into<String>) -> Self {
        Self(Box::new(Status::failure(code, reason, message)))
    }

    fn about(mut self, resource: &GroupResource, name: &str) -> Self {
        self.0.details = Some(Details {
            name: name.to_owned(),
            group: resource.group.clone(),
            kind: resource.resource.clone(),
            ..Details::default()
        });
        self
    }

    /// Adds a cause to the details.
    pub fn caused_by(self, cause: Cause) -> Self {
        self.causes(vec![cause])
    }

    fn causes(mut self, causes: Vec<Cause>) -> Self {
        self.0.details.get_or_insert_default().causes.extend(causes);
        self
    }

    fn retry_after(mut self, seconds: u32) -> Self {
        self.0.details.get_or_insert_default().retry_after_seconds = seconds;
        self
    }

    /// Returns the status object.
    pub fn status(&self) -> &Status {
        &self.0
    }

    /// Returns the HTTP status code.
    pub fn code(&self) -> u16 {
        self.0.code
    }

    /// Returns the machine-readable reason.
    pub fn reason(&self) -> &str {
        &self.0.reason
    }

    /// Returns 404: there is no object with this name.
    pub fn not_found(resource: &GroupResource, name: &str) -> Self {
        Self::new(404, "NotFound", format!("{resource} {} not found", go_quote(name))).about(resource, name)
    }

    /// Returns 404: the path has the form of a resource, but there is no such resource.
    pub fn no_such_resource() -> Self {
        let mut error = Self::new(404, "NotFound", "the server could not find the requested resource");
        error.0.details = Some(Details::default());
        error
    }

    /// Returns 409: there is already an object with this name.
    pub fn already_exists(resource: &GroupResource, name: &str) -> Self {
        Self::new(409, "AlreadyExists", format!("{resource} {} already exists", go_quote(name)))
            .about(resource, name)
    }

    /// Says that the object that an error is about is being deleted.
    #[must_use]
    pub fn while_deleting(mut self) -> Self {
        self.0.message.insert_str(0, "object is being deleted: ");
        self
    }

    /// Returns 409: no free name was found for a `generateName`.
    pub fn generate_name_conflict(resource: &GroupResource, name: &str) -> Self {
        let message = format!(
            "{resource} {} already exists, the server was not able to generate a unique name for the object",
            go_quote(name)
        );
        Self::new(409, "AlreadyExists", message).about(resource, name).retry_after(1)
    }

    /// Returns 409 with the caller's reason.
    pub fn conflict(resource: &GroupResource, name: &str, why: impl fmt::Display) -> Self {
        let message = format!("Operation cannot be fulfilled on {resource} {}: {why}", go_quote(name));
        Self::new(409, "Conflict", message).about(resource, name)
    }

    /// Returns 409: the object has changed since the client read the object.
    pub fn modified(resource: &GroupResource, name: &str) -> Self {
        Self::conflict(
            resource,
            name,
            "the object has been modified; please apply your changes to the latest version and try again",
        )
    }

    /// Returns 409: an apply would change fields that other managers own. `conflicts` has the manager and the
    /// path of each.
    pub fn apply_conflict(message: String, conflicts: impl IntoIterator<Item = (String, String)>) -> Self {
        let cause = |(manager, field)| Cause {
            reason: "FieldManagerConflict".to_owned(),
            message: format!("conflict with {manager}"),
            field,
        };
        Self::new(409, "Conflict", message).causes(conflicts.into_iter().map(cause).collect())
    }

    /// Returns 409: the object does not have the uid in `preconditions`.
    pub fn uid_precondition(resource: &GroupResource, name: &str, wanted: &str, found: &str) -> Self {
        let why = format!("Precondition failed: UID in precondition: {wanted}, UID in object meta: {found}");
        Self::conflict(resource, name, why)
    }

    /// Returns 422: the object is invalid; `kind` is the kind, not the resource.
    pub fn invalid(group: &str, kind: &str, name: &str, errors: &[FieldError]) -> Self {
        let qualified = if group.is_empty() { kind.to_owned() } else { format!("{kind}.{group}") };
        let head = format!("{qualified} {} is invalid", go_quote(name));
        let others = ErrorBudget::others();
        let listed = &errors[..errors.len().min(MAX_ERRORS)];
        let errors = || listed.iter().chain((listed.len() < errors.len()).then_some(&others));
        let mut seen = HashSet::with_capacity(listed.len());
        let mut texts: Vec<String> = errors().map(FieldError::to_string).collect();
        texts.retain(|text| seen.insert(text.clone()));
        let message = match texts.as_slice() {
            [] => head,
            [only] => format!("{head}: {only}"),
            many => format!("{head}: [{}]", many.join(", ")),
        };
        let mut error = Self::new(422, "Invalid", message);
        error.0.details = Some(Details {
            name: name.to_owned(),
            group: group.to_owned(),
            kind: kind.to_owned(),
            ..Details::default()
        });
        error.causes(
            errors()
                .map(|error| Cause {
                    reason: error.kind.reason().to_owned(),
                    message: error.body(),
                    field: error.field.clone(),
                })
                .collect(),
        )
    }

    /// Returns 422: the options of a request (`ListOptions`, `DeleteOptions`, …) are invalid.
    pub fn invalid_options(kind: &str, errors: &[FieldError]) -> Self {
        Self::invalid("meta.k8s.io", kind, "", errors)
    }

    /// Returns 422: a JSON patch does not apply to the object.
    pub fn unprocessable() -> Self {
        let mut error =
            Self::new(422, "Invalid", "the server rejected our request due to an error in our request");
        error.0.details = Some(Details::default());
        error
    }

    /// Returns 400.
    pub fn bad_request(message: impl Into<String>) -> Self {
        Self::new(400, "BadRequest", message)
    }

    /// Returns 401.
    pub fn unauthorized() -> Self {
        Self::new(401, "Unauthorized", "Unauthorized")
    }

    /// Returns 403 about a resource or an object.
    pub fn forbidden(resource: &GroupResource, name: &str, why: impl fmt::Display) -> Self {
        let message = if resource.is_empty() {
            format!("forbidden: {why}")
        } else if name.is_empty() {
            format!("{resource} is forbidden: {why}")
        } else {
            format!("{resource} {} is forbidden: {why}", go_quote(name))
        };
        Self::new(403, "Forbidden", message).about(resource, name)
    }

    /// Returns 403: the user is not authorised.
    pub fn denied(denied: &Denied<'_>) -> Self {
        Self::forbidden(&denied.resource, denied.name, denied)
    }

    /// Returns 403: no object can be created in a terminating namespace.
    pub fn namespace_terminating(resource: &GroupResource, name: &str, namespace: &str) -> Self {
        let why =
            format!("unable to create new content in namespace {namespace} because it is being terminated");
        Self::forbidden(resource, name, why).causes(vec![Cause {
            reason: "NamespaceTerminating".to_owned(),
            message: format!("namespace {namespace} is being terminated"),
            field: "metadata.namespace".to_owned(),
        }])
    }

    /// Returns 405: the path does not support the method.
    pub fn method_not_allowed() -> Self {
        let mut error = Self::new(
            405,
            "MethodNotAllowed",
            "the server does not allow this method on the requested resource",
        );
        error.0.details = Some(Details::default());
        error
    }

    /// Returns 405: a custom resource does not support the verb.
    pub fn verb_not_supported(resource: &GroupResource, verb: &str) -> Self {
        let kind = go_quote(&resource.to_string());
        Self::new(405, "MethodNotAllowed", format!("{verb} is not supported on resources of kind {kind}"))
            .about(resource, "")
    }

    /// Returns 406.
    pub fn not_acceptable(accepted: &[&str]) -> Self {
        let message = format!("only the following media types are accepted: {}", accepted.join(", "));
        Self::new(406, "NotAcceptable", message)
    }

    /// Returns 406: the client asked for a list as the metadata of an object, or for an object as a list of
    /// metadata.
    ///
    /// `go_type` is the type of the response in kube-apiserver, for example `core.PodList`.
    pub fn wrong_form(is_list: bool, go_type: &str) -> Self {
        let (form, found) = if is_list {
            ("PartialObjectMetadata", "is a list")
        } else {
            ("PartialObjectMetadataList", "is not a list")
        };
        let message = format!("you requested {form}, but the requested object {found} (*{go_type})");
        Self::new(406, "NotAcceptable", message)
    }

    /// Returns 406: `Accept` names no media type that the server supports.
    pub fn not_acceptable_text(message: impl Into<String>) -> Self {
        let mut error = Self::new(406, "NotAcceptable", message);
        error.0.details = Some(Details::default());
        error
    }

    /// Returns whether kube-apiserver's router gives the reply, before a handler could add warnings.
    pub fn is_of_router(&self) -> bool {
        ["406: ", "415: "].iter().any(|start| self.0.message.starts_with(start))
    }

    /// Returns 415.
    pub fn unsupported_media_type(accepted: &[&str]) -> Self {
        let message = format!(
            "the body of the request was in an unknown format - accepted media types include: {}",
            accepted.join(", ")
        );
        Self::new(415, "UnsupportedMediaType", message)
    }

    /// Returns 415 for a patch of a type that does not exist.
    pub fn no_media_type() -> Self {
        let mut error = Self::new(415, "UnsupportedMediaType", "415: Unsupported Media Type");
        error.0.details = Some(Details::default());
        error
    }

    /// Returns 410: the state at a resource version, or of a continue token, is no longer kept.
    pub fn expired(message: impl Into<String>) -> Self {
        Self::new(410, "Expired", message)
    }

    /// Returns 410: a watch or a list starts before the oldest resource version that is kept.
    pub fn too_old_resource_version(wanted: u64, oldest: u64) -> Self {
        Self::expired(format!("too old resource version: {wanted} ({oldest})"))
    }

    /// Returns 410 with a token that continues the list at the current state. The list is then inconsistent.
    pub fn continue_expired(continue_token: String) -> Self {
        let mut error = Self::expired(
            "The provided continue parameter is too old to display a consistent list result. You can start a \
             new list without the continue parameter, or use the continue token in this response to retrieve \
             the remainder of the results. Continuing with the provided token results in an inconsistent list \
             - objects that were created, modified, or deleted between the time the first chunk was returned \
             and now may show up in the list.",
        );
        error.0.metadata.continue_token = continue_token;
        error
    }

    /// Returns 504: the requested resource version is newer than the server's.
    ///
    /// `retry_after_seconds` tells the client when to try again; 0 for no advice.
    pub fn resource_version_too_large(wanted: u64, current: u64, retry_after_seconds: u32) -> Self {
        let message = format!("Too large resource version: {wanted}, current: {current}");
        Self::timeout(message, retry_after_seconds).causes(vec![Cause {
            reason: "ResourceVersionTooLarge".to_owned(),
            message: "Too large resource version".to_owned(),
            field: String::new(),
        }])
    }

    /// Returns 504.
    pub fn timeout(message: impl fmt::Display, retry_after_seconds: u32) -> Self {
        Self::new(504, "Timeout", format!("Timeout: {message}")).retry_after(retry_after_seconds)
    }

    /// Returns 413.
    pub fn too_large(message: impl fmt::Display) -> Self {
        Self::new(413, "RequestEntityTooLarge", format!("Request entity too large: {message}"))
    }

    /// Returns 413: the body is longer than `limit` bytes.
    pub fn body_too_large(limit: usize) -> Self {
        Self::too_large(format!("limit is {limit}"))
    }

    /// Returns 429.
    pub fn too_many_requests(message: impl Into<String>, retry_after_seconds: u32) -> Self {
        Self::new(429, "TooManyRequests", message).retry_after(retry_after_seconds)
    }

    /// Returns 429: a disruption budget does not allow the eviction of a pod.
    ///
    /// `retry_after_seconds` tells the client when to try again; 0 for no advice.
    pub fn disruption_budget(budget: &str, message: impl Into<String>, retry_after_seconds: u32) -> Self {
        let message: String = message.into();
        let text = "Cannot evict pod as it would violate the pod's disruption budget.";
        Self::too_many_requests(text, retry_after_seconds).causes(vec![Cause {
            reason: "DisruptionBudget".to_owned(),
            message: format!("The disruption budget {budget} {message}"),
            field: String::new(),
        }])
    }

    /// Returns 500.
    pub fn internal(why: impl fmt::Display) -> Self {
        let why = why.to_string();
        Self::new(500, "InternalError", format!("Internal error occurred: {why}"))
            .causes(vec![Cause { message: why, ..Cause::default() }])
    }

    /// Returns 500: a list of `resource` has objects that cannot be read. `failures` has the storage key and the error of each object. A list with more
    /// such objects ends after [`MAX_UNREADABLE`](Self::MAX_UNREADABLE).
    pub fn unreadable_list(resource: &GroupResource, failures: Vec<(String, String)>) -> Self {
        let count = failures.len();
        let first = failures.first().map_or("", |(_, why)| why);
        let others = if count > 1 { format!(" (and {} more)", count - 1) } else { String::new() };
        let message = format!("failed to read one or more {resource} from the storage: {first}{others}");
        let unreadable =
            |(field, message)| Cause { reason: "UnexpectedServerResponse".to_owned(), message, field };
        let mut causes: Vec<Cause> = failures.into_iter().map(unreadable).collect();
        if count >= Self::MAX_UNREADABLE {
            causes.push(Cause {
                reason: "FieldValueTooMany".to_owned(),
                message: "too many errors, the list is truncated".to_owned(),
                field: String::new(),
            });
        }
        Self::new(500, "StorageReadError", message).about(resource, "list").causes(causes)
    }

    /// Returns the error of a watch that cannot show a deleted object. A client lists again, because a later watch cannot show the object either.
    pub fn undecodable_deletion(why: impl fmt::Display) -> Self {
        Self::new(500, "StorageReadError", why.to_string())
    }

    /// Returns the reply of an admission webhook that denied a request, with the webhook's code, reason and
    /// details.
    pub fn rejected(
        code: u16,
        reason: impl Into<String>,
        message: impl Into<String>,
        details: Option<Details>,
    ) -> Self {
        let mut error = Self::new(code, "", message);
        error.0.reason = reason.into().into();
        error.0.details = details;
        error
    }

    /// Returns 501: this server does not implement the subresource.
    pub fn not_served(resource: &GroupResource, subresource: &str) -> Self {
        let message = format!("this server does not implement the subresource {subresource} of {resource}");
        Self::new(501, "NotImplemented", message)
    }

    /// Returns 500 without a reason, as kube-apiserver replies to some errors.
    pub fn unexplained(message: impl Into<String>) -> Self {
        Self::new(500, "", message)
    }

    /// Returns 500: the object is larger than etcd accepts. The message is etcd's.
    pub fn storage_too_large() -> Self {
        Self::unexplained(STORAGE_TOO_LARGE)
    }

    /// Returns whether the object of the request is larger than etcd accepts.
    pub fn is_storage_too_large(&self) -> bool {
        self.0.message == STORAGE_TOO_LARGE
    }

    /// Returns 503.
    pub fn unavailable(message: impl Into<String>) -> Self {
        Self::new(503, "ServiceUnavailable", message)
    }
}

impl fmt::Display for ApiError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0.message)
    }
}

impl fmt::Debug for ApiError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} {}: {}", self.0.code, self.0.reason, self.0.message)
    }
}

impl std::error::Error for ApiError {}

#[cfg(test)]
mod tests;
