//! `GET …/log` of a pod. The log of a simulated pod is the text in its annotations.

use http::{HeaderValue, Response, StatusCode, header};
use serde_json::Value;
use windlass_schema::FieldError;

use super::Call;
use crate::body::{Body, ByteStream};
use crate::wire::ApiError;

/// The annotation with the log of all containers. Followed by a dot and a container's name, it holds the log of that
/// container.
const ANNOTATION: &str = "kubelet.windlass.dev/log";

/// Answers a request for a log: 204 for a pod that is on no node.
///
/// # Errors
/// 404 for an absent pod, 400 for a container that it does not have, and 422 for a count that is out of range.
pub(super) fn read(call: &Call<'_>) -> Result<Response<Body>, ApiError> {
    let view = call.state.store.view();
    let pod = view.get(&call.resource.storage, &call.key()).ok_or_else(|| call.not_found())?;
    let pod = pod.value();
    let tail = count(call, "tailLines", 0)?;
    let limit = count(call, "limitBytes", 1)?;
    let container = container(&call.route.name, call.query.text("container"), &pod)?;
    let node = pod.pointer("/spec/nodeName").and_then(Value::as_str);
    if node.is_none_or(str::is_empty) {
        let mut response = Response::new(Body::empty());
        *response.status_mut() = StatusCode::NO_CONTENT;
        return Ok(response);
    }
    let mut log = log_of(&pod, &container);
    if let Some(lines) = tail {
        let all = log.split_inclusive('\n').count();
        log = log.split_inclusive('\n').skip(all.saturating_sub(lines)).collect();
    }
    if let Some(bytes) = limit {
        let end = (0..=bytes.min(log.len())).rev().find(|end| log.is_char_boundary(*end)).unwrap_or(0);
        log.truncate(end);
    }
    let mut response = Response::new(Body::full(log));
    response.headers_mut().insert(header::CONTENT_TYPE, HeaderValue::from_static("text/plain"));
    response.extensions_mut().insert(ByteStream);
    Ok(response)
}

/// Reads a number from the query that must be at least `least`.
fn count(call: &Call<'_>, name: &str, least: i64) -> Result<Option<usize>, ApiError> {
    let text = call.query.text(name);
    if text.is_empty() {
        return Ok(None);
    }
    let number: i64 = text.parse().map_err(|_| {
        let quoted = windlass_schema::go_quote(text);
        ApiError::bad_request(format!("strconv.ParseInt: parsing {quoted}: invalid syntax"))
    })?;
    if number < least {
        let why = if least == 0 { "must be greater than or equal to 0" } else { "must be greater than 0" };
        let error = FieldError::invalid(name, number, why);
        return Err(ApiError::invalid("", "PodLogOptions", &call.route.name, std::slice::from_ref(&error)));
    }
    Ok(usize::try_from(number).ok())
}

/// Returns the container `wanted` of the pod `name`, or its only one if `wanted` is empty.
pub(super) fn container(name: &str, wanted: &str, pod: &Value) -> Result<String, ApiError> {
    let names = |field: &str| -> Vec<String> {
        let list = pod.pointer(&format!("/spec/{field}")).and_then(Value::as_array);
        let names = list.into_iter().flatten().filter_map(|container| container["name"].as_str());
        names.map(str::to_owned).collect()
    };
    let (plain, initial, debug) =
        (names("containers"), names("initContainers"), names("ephemeralContainers"));
    if wanted.is_empty() {
        if let [only] = plain.as_slice() {
            return Ok(only.clone());
        }
        let others = if initial.is_empty() {
            String::new()
        } else {
            format!(" or one of the init containers: [{}]", initial.join(" "))
        };
        return Err(ApiError::bad_request(format!(
            "a container name must be specified for pod {name}, choose one of: [{}]{others}",
            plain.join(" ")
        )));
    }
    if [&plain, &initial, &debug].iter().any(|names| names.iter().any(|name| name == wanted)) {
        Ok(wanted.to_owned())
    } else {
        Err(ApiError::bad_request(format!("container {wanted} is not valid for pod {name}")))
    }
}

fn log_of(pod: &Value, container: &str) -> String {
    let annotations = pod.pointer("/metadata/annotations").and_then(Value::as_object);
    let text = |key: &str| annotations.and_then(|all| all.get(key)).and_then(Value::as_str);
    let log = text(&format!("{ANNOTATION}.{container}")).or_else(|| text(ANNOTATION));
    let mut log = log.unwrap_or_default().to_owned();
    if !log.is_empty() && !log.ends_with('\n') {
        log.push('\n');
    }
    log
}
