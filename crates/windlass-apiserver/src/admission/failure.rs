//! The errors that webhooks cause, in the words of kube-apiserver.

use serde_json::Value;
use windlass_schema::go_quote;

use super::CallError;
use crate::wire::patch::JsonPatchError;
use crate::wire::{ApiError, Details};

/// 500: a webhook whose failure counts could not be called.
pub(super) fn failed(hook: &str, why: &str) -> ApiError {
    ApiError::internal(format!("failed calling webhook {}: {why}", go_quote(hook)))
}

/// 400: a webhook may have side effects, and the request is a dry run.
pub(super) fn no_dry_run(hook: &str) -> CallError {
    let why = format!("admission webhook {} does not support dry run", go_quote(hook));
    CallError::Refused(ApiError::bad_request(why))
}

/// The error that a webhook gives by `response.status`, which may be absent.
pub(super) fn denied(hook: &str, status: &Value) -> ApiError {
    let text = |field: &str| status[field].as_str().unwrap_or_default();
    let denied_by = format!("admission webhook {} denied the request", go_quote(hook));
    let message = match (text("message"), text("reason")) {
        ("", "") => format!("{denied_by} without explanation"),
        ("", why) | (why, _) => format!("{denied_by}: {why}"),
    };
    let code = status["code"].as_u64().and_then(|code| u16::try_from(code).ok());
    let code = code.filter(|code| (400..1000).contains(code)).unwrap_or(400);
    let details = serde_json::from_value::<Details>(status["details"].clone()).ok();
    ApiError::rejected(code, text("reason"), message, details)
}

/// Explains why the operations of a JSON patch do not apply.
pub(super) fn not_applied(error: &JsonPatchError, operations: &Value) -> String {
    let JsonPatchError::DoesNotApply { operation, .. } = error else { return error.to_string() };
    let operation = &operations[*operation];
    let text = |field: &str| operation[field].as_str().unwrap_or_default();
    let (op, path) = (text("op"), text("path"));
    if op == "test" {
        return format!("testing value {path} failed: test failed");
    }
    format!("{op} operation does not apply: doc is missing path: {}: missing value", go_quote(path))
}
