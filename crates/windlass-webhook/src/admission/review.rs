//! `AdmissionReview`s: from the bytes of a request to the bytes of the reply.

use std::{panic::AssertUnwindSafe, sync::Arc};

use base64::{Engine as _, engine::general_purpose::STANDARD};
use bytes::Bytes;
use futures::FutureExt;
use http::Extensions;
use kube_core::{
    DynamicObject, TypeMeta,
    admission::{AdmissionRequest, AdmissionResponse},
};
use serde_json::{Value, json};

use super::handler::{Admit, Call, errored};
use crate::{
    call::{Deadline, on_body, panic_message},
    json::{MAX_DEPTH, is_deeper_than},
    metrics::WebhookMetrics,
};

const V1: &str = "admission.k8s.io/v1";
const V1BETA1: &str = "admission.k8s.io/v1beta1";

/// Answers the review in `body`.
///
/// A panic or a time-out of the handler is a denial. Without a decoded request, the reply has no uid.
pub(crate) async fn review(
    admit: &Admit,
    body: Bytes,
    extensions: &Arc<Extensions>,
    deadline: Deadline,
    metrics: &WebhookMetrics,
) -> Vec<u8> {
    let (types, mut call) = match on_body(body, decode).await {
        Ok(decoded) => decoded,
        Err(error) => {
            tracing::warn!(error, "an AdmissionReview does not decode");
            return review_of_error(400, error);
        }
    };
    call.extensions = extensions.clone();
    let uid = call.request.uid.clone();
    let mut response = answer(admit, call, deadline, metrics).await;
    response.uid = uid;
    encode(Some(&types), response)
}

/// Returns a review that denies a request that could not be read.
pub(crate) fn review_of_error(code: u16, message: impl Into<String>) -> Vec<u8> {
    encode(None, errored(code, message))
}

async fn answer(
    admit: &Admit,
    call: Call,
    deadline: Deadline,
    metrics: &WebhookMetrics,
) -> AdmissionResponse {
    let span = tracing::debug_span!(
        "admission",
        namespace = call.request.namespace.as_deref().unwrap_or_default(),
        name = call.request.name,
        resource = call.request.resource.resource,
        user = call.request.user_info.username.as_deref().unwrap_or_default(),
        requestID = call.request.uid,
    );
    let handled = AssertUnwindSafe(async { admit(call).await }).catch_unwind();
    let handled = tracing::Instrument::instrument(handled, span.clone());
    match deadline.run(handled).await {
        Some(Ok(response)) => response,
        Some(Err(payload)) => {
            metrics.count_panic();
            let panic = panic_message(payload.as_ref());
            span.in_scope(|| tracing::error!(panic, "a webhook panicked"));
            errored(500, format!("panic: {panic} [recovered]"))
        }
        None => {
            span.in_scope(|| tracing::error!(after = ?deadline.limit(), "a webhook did not answer in time"));
            let mut response =
                errored(504, format!("the webhook did not answer within {:?}", deadline.limit()));
            response.result.reason = "Timeout".to_owned();
            response
        }
    }
}

fn decode(body: &[u8]) -> Result<(TypeMeta, Call), String> {
    if is_deeper_than(body, MAX_DEPTH) {
        return Err(format!("the review is nested deeper than {MAX_DEPTH} levels"));
    }
    let mut review: Value = serde_json::from_slice(body).map_err(|error| position("the review", &error))?;
    if !review.is_object() {
        return Err("the review is not an object".to_owned());
    }
    let text = |field: &str| review[field].as_str().unwrap_or_default().to_owned();
    let mut types = TypeMeta { api_version: text("apiVersion"), kind: text("kind") };
    if types.api_version.is_empty() && types.kind.is_empty() {
        types = TypeMeta { api_version: V1.to_owned(), kind: "AdmissionReview".to_owned() };
    }
    if !matches!(&*types.api_version, V1 | V1BETA1) || types.kind != "AdmissionReview" {
        return Err(format!("no kind {:?} is registered for version {:?}", types.kind, types.api_version));
    }
    let mut request = review["request"].take();
    if !request.is_object() {
        return Err("the review has no request".to_owned());
    }
    let (mut object, mut old) = (request["object"].take(), request["oldObject"].take());
    name_type(&mut object, &request["kind"]);
    name_type(&mut old, &request["kind"]);
    let mut request: AdmissionRequest<DynamicObject> =
        serde_json::from_value(request).map_err(|error| format!("the request does not decode: {error}"))?;
    request.types = types.clone();
    Ok((types, Call { request, object, old, extensions: Arc::default() }))
}

/// Sets a missing API version and kind of an object.
fn name_type(object: &mut Value, kind: &Value) {
    let Some(object) = object.as_object_mut().filter(|object| !object.contains_key("kind")) else { return };
    let text = |field: &str| kind[field].as_str().unwrap_or_default();
    let api_version = match text("group") {
        "" => text("version").to_owned(),
        group => format!("{group}/{}", text("version")),
    };
    object.insert("kind".to_owned(), json!(text("kind")));
    object.insert("apiVersion".to_owned(), json!(api_version));
}

/// Returns an error of the JSON parser, without values of the object.
pub(crate) fn position(what: &str, error: &serde_json::Error) -> String {
    format!("{what} is not valid JSON, at line {} column {}", error.line(), error.column())
}

fn encode(types: Option<&TypeMeta>, mut response: AdmissionResponse) -> Vec<u8> {
    if response.result.code == 0 {
        response.result.code = if response.allowed { 200 } else { 403 };
    }
    // Go's `[]byte` is base64, where serde writes numbers.
    let patch = response.patch.take();
    let mut encoded = serde_json::to_value(&response).unwrap_or_default();
    match patch {
        Some(patch) => encoded["patch"] = json!(STANDARD.encode(patch)),
        None => drop(encoded.as_object_mut().map(|response| response.remove("patchType"))),
    }
    let mut review = json!({ "response": encoded });
    if let Some(types) = types {
        review["kind"] = json!(types.kind);
        review["apiVersion"] = json!(types.api_version);
    }
    review.to_string().into_bytes()
}
