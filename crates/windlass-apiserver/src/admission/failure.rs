//! The errors that webhooks cause, in the words of kube-apiserver.

use serde_json::Value;
use windlass_schema::go_quote;

use super::CallError;
use crate::wire::patch::{JsonPatchError, Mismatch};
use crate::wire::{ApiError, Details};

/// Returns 500: a webhook with the failure policy `Fail` could not be called.
pub(super) fn failed(hook: &str, why: &str) -> ApiError {
    ApiError::internal(format!("failed calling webhook {}: {why}", go_quote(hook)))
}

/// Returns 400: a webhook may have side effects, and the request is a dry run.
pub(super) fn no_dry_run(hook: &str) -> CallError {
    let why = format!("admission webhook {} does not support dry run", go_quote(hook));
    CallError::Refused(ApiError::bad_request(why))
}

/// Returns the error in a webhook's `response.status`, which may be absent.
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
    let JsonPatchError::DoesNotApply { operation, why } = error else { return error.to_string() };
    let operation = &operations[*operation];
    let text = |field: &str| operation[field].as_str().unwrap_or_default();
    let (op, path, from) = (text("op"), text("path"), text("from"));
    match (op, why) {
        (_, Mismatch::Kind) => format!("Unexpected kind: {}", operation["op"].as_str().unwrap_or("unknown")),
        (_, Mismatch::Document) => "replace operation value must be object or array: %!w(<nil>)".to_owned(),
        (_, Mismatch::Value) => format!("testing value {path} failed: test failed"),
        ("move", Mismatch::Member) => missing_member(op, &last_key(from), from),
        (_, Mismatch::Member) => missing_member(op, path, path),
        ("replace", Mismatch::Index) => {
            format!("replace operation does not apply: doc is missing key: {path}: missing value")
        }
        (_, Mismatch::Index) => format!("error in {op} for path: '{path}': {}", bad_index(&last_key(path))),
        ("test", _) => format!("test operation does not apply: is missing path: {path}: missing value"),
        ("replace", _) => {
            format!("replace operation does not apply: doc is missing path: {path}: missing value")
        }
        ("move" | "copy", _) => {
            format!("{op} operation does not apply: doc is missing from path: {from}: missing value")
        }
        _ => format!("{op} operation does not apply: doc is missing path: {}: missing value", go_quote(path)),
    }
}

fn missing_member(op: &str, shown: &str, path: &str) -> String {
    let key = last_key(path);
    format!("error in {op} for path: '{shown}': Unable to remove nonexistent key: {key}: missing value")
}

fn bad_index(key: &str) -> String {
    match key.parse::<i64>() {
        Ok(index) => format!("Unable to access invalid index: {index}: invalid index referenced"),
        Err(_) => format!("strconv.Atoi: parsing {}: invalid syntax", go_quote(key)),
    }
}

/// Returns the last segment of a JSON pointer, unescaped.
fn last_key(pointer: &str) -> String {
    let key = pointer.rsplit_once('/').map_or(pointer, |(_, key)| key);
    key.replace("~1", "/").replace("~0", "~")
}
