//! Replies that the server did not give.

use bytes::Bytes;
use http::{Response, StatusCode, header};
use http_body_util::combinators::UnsyncBoxBody;
use http_body_util::{BodyExt, Full};
use serde_json::{Value, json};
use windlass_runtime::BoxError;
use windlass_runtime::permission::Access;

/// A body of a reply.
pub(super) type AnyBody = UnsyncBoxBody<Bytes, BoxError>;

/// Makes a body of bytes.
pub(super) fn full(bytes: impl Into<Bytes>) -> AnyBody {
    Full::new(bytes.into()).map_err(|never| match never {}).boxed_unsync()
}

/// Makes a failure reply.
pub(super) fn failure(code: u16, reason: &str, message: &str, retry_after: Option<u64>) -> Response<AnyBody> {
    let mut response = Response::new(full(status(code, reason, message).to_string()));
    *response.status_mut() = StatusCode::from_u16(code).unwrap_or(StatusCode::INTERNAL_SERVER_ERROR);
    let headers = response.headers_mut();
    headers.insert(header::CONTENT_TYPE, header::HeaderValue::from_static("application/json"));
    if let Some(seconds) = retry_after {
        headers.insert(header::RETRY_AFTER, seconds.into());
    }
    response
}

/// Makes the `Status` of a failure.
pub(super) fn status(code: u16, reason: &str, message: &str) -> Value {
    json!({
        "kind": "Status", "apiVersion": "v1", "metadata": {}, "status": "Failure",
        "message": message, "reason": reason, "code": code,
    })
}

/// Makes the reply to a request without the right, in the words of RBAC.
pub(super) fn forbidden(access: &Access) -> Response<AnyBody> {
    let resource = access.resource().unwrap_or_default();
    let message = format!(
        "{resource} is forbidden: User \"injected\" cannot {} resource \"{resource}\" in API group \"\" at the cluster scope",
        access.verb()
    );
    failure(403, "Forbidden", &message, None)
}
