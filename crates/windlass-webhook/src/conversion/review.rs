//! `ConversionReview`s: from the bytes of a request to the bytes of the reply.

use std::{collections::BTreeMap, panic::AssertUnwindSafe};

use bytes::Bytes;
use futures::FutureExt;
use kube_core::{
    conversion::{ConversionRequest, ConversionResponse},
    response::{Status, StatusSummary},
};
use serde_json::{Value, json};

use super::Conversions;
use crate::{
    call::{Deadline, on_body, panic_message},
    json::{MAX_DEPTH, is_deeper_than},
    metrics::WebhookMetrics,
};

/// The number of objects after which a conversion yields to other tasks.
const BATCH: usize = 16;

/// All converters, by group and kind.
type Converters = BTreeMap<(String, String), Conversions>;

/// Answers the review in `body`; `None` stands for HTTP status 400 without a body.
pub(crate) async fn review(
    converters: &Converters,
    body: Bytes,
    deadline: Deadline,
    metrics: &WebhookMetrics,
) -> Option<Vec<u8>> {
    let (api_version, kind, request) = match on_body(body, decode).await {
        Ok(decoded) => decoded,
        Err(error) => {
            tracing::warn!(error, "a ConversionReview does not decode");
            return None;
        }
    };
    let mut response = ConversionResponse::invalid(Status::default());
    response.uid.clone_from(&request.uid);
    match answer(converters, request, deadline, metrics).await {
        Ok(objects) => response = response.success(objects),
        Err(message) => {
            tracing::error!(requestID = response.uid, error = message, "failed to convert");
            let status = Some(StatusSummary::Failure);
            response = response.failure(Status { status, message, ..Status::default() });
        }
    }
    let review = json!({ "apiVersion": api_version, "kind": kind, "response": response });
    Some(review.to_string().into_bytes())
}

async fn answer(
    converters: &Converters,
    request: ConversionRequest,
    deadline: Deadline,
    metrics: &WebhookMetrics,
) -> Result<Vec<Value>, String> {
    let converting = convert_objects(converters, request.objects, &request.desired_api_version);
    match deadline.run(AssertUnwindSafe(converting).catch_unwind()).await {
        Some(Ok(converted)) => converted,
        Some(Err(payload)) => {
            metrics.count_conversion_panic();
            tracing::error!(panic = panic_message(payload.as_ref()), "a conversion panicked");
            Err("internal error occurred during conversion".to_owned())
        }
        None => Err(format!("the conversion did not end within {:?}", deadline.limit())),
    }
}

/// Converts objects to another API version, and yields periodically.
async fn convert_objects(
    converters: &Converters,
    objects: Vec<Value>,
    api_version: &str,
) -> Result<Vec<Value>, String> {
    let mut converted = Vec::with_capacity(objects.len());
    for (at, object) in objects.into_iter().enumerate() {
        if at % BATCH == BATCH - 1 {
            tokio::task::yield_now().await;
        }
        converted.push(convert(converters, object, api_version)?);
    }
    Ok(converted)
}

fn convert(converters: &Converters, object: Value, api_version: &str) -> Result<Value, String> {
    let text = |field: &str| object[field].as_str().unwrap_or_default().to_owned();
    let (from, kind) = (text("apiVersion"), text("kind"));
    let group = from.rsplit_once('/').map_or("", |(group, _)| group);
    let Some(conversions) = converters.get(&(group.to_owned(), kind.clone())) else {
        return Err(format!("no kind {kind:?} is registered for version {from:?}"));
    };
    match api_version.rsplit_once('/') {
        Some((wanted, version)) if wanted == group => conversions.convert(object, version),
        _ => Err(format!("no kind {kind:?} is registered for version {api_version:?}")),
    }
}

fn decode(body: &[u8]) -> Result<(String, String, ConversionRequest), String> {
    if is_deeper_than(body, MAX_DEPTH) {
        return Err(format!("the review is nested deeper than {MAX_DEPTH} levels"));
    }
    let mut review: Value = serde_json::from_slice(body).map_err(|error| error.to_string())?;
    let text = |field: &str| review[field].as_str().unwrap_or_default().to_owned();
    let (api_version, kind) = (text("apiVersion"), text("kind"));
    if !review.is_object() || review["request"].is_null() {
        return Err("conversion request is nil".to_owned());
    }
    let request = serde_json::from_value(review["request"].take()).map_err(|error| error.to_string())?;
    Ok((api_version, kind, request))
}
