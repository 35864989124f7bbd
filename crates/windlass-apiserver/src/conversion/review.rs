//! `ConversionReview`: the request to a webhook, and the response.

use serde_json::{Value, json};
use windlass_schema::{go_quote, json_type};

const GROUP: &str = "apiextensions.k8s.io";
/// The empty response in a request, in kube-apiserver's form.
const NO_RESPONSE: &str = r#"{"uid":"","convertedObjects":null,"result":{"metadata":{}}}"#;

/// Writes a review. The objects are JSON already.
pub(super) fn request<'a>(
    version: &str,
    uid: &str,
    wanted: &str,
    objects: impl Iterator<Item = &'a str>,
) -> String {
    let objects: Vec<&str> = objects.collect();
    let head = json!({"uid": uid, "desiredAPIVersion": wanted}).to_string();
    let head = head.trim_end_matches('}');
    let objects = objects.join(",");
    format!(
        "{{\"kind\":\"ConversionReview\",\"apiVersion\":\"{GROUP}/{version}\",\"request\":{head},\"objects\":[{objects}]}},\"response\":{NO_RESPONSE}}}"
    )
}

/// Reads the answer to a review, and returns the converted objects.
pub(super) fn answer(body: &[u8], version: &str, uid: &str) -> Result<Vec<Value>, String> {
    if body.is_empty() {
        return Err("0-length response with status code: 200 and content type: application/json".to_owned());
    }
    let (mut review, _) = crate::wire::from_json_with_duplicates(body)
        .map_err(|why| format!("couldn't get version/kind; json parse error: {why}"))?;
    if !review.is_object() {
        let found = json_type(&review);
        return Err(format!(
            "couldn't get version/kind; json parse error: json: cannot unmarshal {found} into Go value"
        ));
    }
    let text = |field: &str| review[field].as_str().unwrap_or_default().to_owned();
    let (found_version, found_kind) = (text("apiVersion"), text("kind"));
    let is_review = found_kind == "ConversionReview"
        && found_version.strip_prefix(GROUP).is_some_and(|rest| matches!(rest, "/v1" | "/v1beta1"));
    if !is_review && !found_kind.is_empty() && !found_version.is_empty() {
        return Err(format!(
            "no kind {} is registered for version {} in scheme \"pkg/runtime/scheme.go:111\"",
            go_quote(&found_kind),
            go_quote(&found_version)
        ));
    }
    if version == "v1" && (found_version != "apiextensions.k8s.io/v1" || !is_review) {
        let shown = if found_version.contains('/') { found_version } else { format!("/{found_version}") };
        return Err(format!(
            "expected webhook response of {GROUP}/v1, Kind=ConversionReview, got {shown}, Kind={found_kind}"
        ));
    }
    let response = review["response"].take();
    if !response.is_object() {
        return Err("no response provided".to_owned());
    }
    let found_uid = response["uid"].as_str().unwrap_or_default();
    if version == "v1" && found_uid != uid {
        return Err(format!("expected response.uid={}, got {}", go_quote(uid), go_quote(found_uid)));
    }
    converted(response)
}

fn converted(mut response: Value) -> Result<Vec<Value>, String> {
    let result = |field: &str| response["result"][field].as_str().unwrap_or_default();
    let (status, message) = (result("status"), result("message"));
    if status != "Success" {
        return Err(if message.is_empty() {
            format!("response.result.status was '{status}', not 'Success'")
        } else {
            message.to_owned()
        });
    }
    match response["convertedObjects"].take() {
        Value::Array(objects) => Ok(objects),
        Value::Null => Ok(Vec::new()),
        other => Err(format!(
            "json: cannot unmarshal {} into Go struct field ConversionResponse.response.convertedObjects of type []runtime.RawExtension",
            json_type(&other)
        )),
    }
}
