//! The webhook server of a run. A response depends only on the path and the review.

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use serde_json::{Value, json};
use windlass_siege::HttpsServer;

/// Stands for the URL of the webhook server in scripts.
pub(crate) const URL: &str = "https://twin00-webhook";
/// Stands for the `caBundle` of the webhook server in scripts.
pub(crate) const AUTHORITY: &str = "dHdpbjAwLWF1dGhvcml0eQ==";

/// Starts a webhook server.
///
/// # Errors
/// No port is free, or no certificate can be made.
pub(crate) async fn start() -> windlass_siege::Result<HttpsServer> {
    HttpsServer::start(|path: String, review: Value| async move {
        match path.as_str() {
            "/error" => (500, "broken".into()),
            "/garbage" => (200, "no JSON".into()),
            _ => (200, reply(&path, &review).to_string().into()),
        }
    })
    .await
}

/// Returns the review that answers a review.
fn reply(path: &str, review: &Value) -> Value {
    let request = &review["request"];
    let mut response = match path {
        "/convert" => converted(request),
        "/convert-error" => {
            json!({"result": {"status": "Failure", "message": "not convertible"}, "convertedObjects": []})
        }
        _ => admitted(path, request),
    };
    response["uid"] = request["uid"].clone();
    json!({"apiVersion": review["apiVersion"], "kind": review["kind"], "response": response})
}

/// Converts objects between versions that differ only in name.
fn converted(request: &Value) -> Value {
    let mut objects = request["objects"].clone();
    for object in objects.as_array_mut().into_iter().flatten() {
        object["apiVersion"] = request["desiredAPIVersion"].clone();
    }
    json!({"result": {"status": "Success"}, "convertedObjects": objects})
}

fn admitted(path: &str, request: &Value) -> Value {
    let is_x = request["name"].as_str().is_some_and(|name| name.ends_with('x'));
    match path {
        "/deny" => json!({"allowed": false}),
        "/deny-x" if is_x => {
            json!({"allowed": false, "status": {"code": 422, "reason": "Invalid", "message": "x may not be"}})
        }
        "/warn" => {
            let operation = request["operation"].as_str().unwrap_or_default();
            json!({"allowed": true, "warnings": [format!("seen: {operation}"), "careful"]})
        }
        "/label" => patched(&label(request)),
        "/no-patch" => patched(&json!([{"op": "remove", "path": "/metadata/labels/nowhere"}])),
        "/rename" => patched(&json!([{"op": "replace", "path": "/metadata/name", "value": "other"}])),
        _ => json!({"allowed": true}),
    }
}

fn patched(patch: &Value) -> Value {
    json!({"allowed": true, "patchType": "JSONPatch", "patch": STANDARD.encode(patch.to_string())})
}

/// A patch that labels the object. A deletion has none.
fn label(request: &Value) -> Value {
    let object = &request["object"];
    if !object["metadata"].is_object() {
        json!([])
    } else if object["metadata"]["labels"].is_object() {
        json!([{"op": "add", "path": "/metadata/labels/hooked", "value": "yes"}])
    } else {
        json!([{"op": "add", "path": "/metadata/labels", "value": {"hooked": "yes"}}])
    }
}
