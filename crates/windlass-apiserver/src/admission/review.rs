//! `AdmissionReview`: the request to a webhook, and the response.

use serde_json::{Value, json};
use windlass_schema::{go_quote, json_type};

use super::attributes::{Attributes, kind_of, resource_of};
use super::configuration::Hook;
use super::criteria::texts;
use super::{CallError, Objects, failure, request, response_types};
use crate::resource::Resource;
use crate::webhook::Clients;
use crate::work_memory;

/// The largest reply of a webhook, in bytes: a patch may replace an object of three megabytes, in base64.
const MAX_REPLY: usize = 8 << 20;

const GROUP: &str = "admission.k8s.io";

/// A call of a webhook.
pub(super) struct Review<'a> {
    pub(super) hook: &'a Hook,
    pub(super) request: &'a Attributes<'a>,
    /// The resource in the version of the objects.
    pub(super) shown: &'a Resource,
    pub(super) objects: Objects<'a>,
    pub(super) uid: String,
    pub(super) is_mutating: bool,
}

impl Review<'_> {
    /// Calls the webhook and returns the JSON patch, which may be empty. `warnings` gets the warnings of the
    /// response, even of a denial.
    pub(super) async fn send(
        &self,
        clients: &Clients,
        warnings: &mut Vec<String>,
    ) -> Result<Vec<u8>, CallError> {
        let hook = self.hook;
        if self.request.dry_run && !hook.allows_dry_run {
            return Err(failure::no_dry_run(&hook.name));
        }
        let Some(version) = hook.review_version else {
            let why = "could not create admission objects: webhook does not accept known AdmissionReview versions (v1, v1beta1)";
            return Err(CallError::Failed { why: why.to_owned(), code: 400 });
        };
        let body = self.body(version).to_string();
        let call = clients.post(&hook.endpoint, body.into(), hook.timeout, MAX_REPLY);
        let reply = work_memory::calling(call).await;
        let reply = reply.map_err(CallError::not_called)?;
        let review = read(&reply, version).map_err(CallError::not_called)?;
        let answer = self.verify(&review, version);
        let response =
            answer.map_err(|why| CallError::unusable(format!("received invalid webhook response: {why}")))?;
        warnings.extend(texts(&response["warnings"]));
        if response["allowed"] != true {
            return Err(CallError::Denied(failure::denied(&hook.name, &response["status"])));
        }
        if let Some(other) = response["patchType"].as_str().filter(|found| *found != "JSONPatch") {
            return Err(CallError::unusable(format!("unsupported patch type {}", go_quote(other))));
        }
        patch(response).map_err(CallError::not_called)
    }

    fn body(&self, version: &str) -> Value {
        let (kind, resource) = (kind_of(self.shown, self.request.subresource), resource_of(self.shown));
        let mut request = request::fields(self.request, kind, resource);
        let mut set = |field: &str, value: Value| {
            request.insert(field.to_owned(), value);
        };
        set("uid", self.uid.clone().into());
        set("object", self.objects.new.cloned().unwrap_or_default());
        set("oldObject", self.objects.old.cloned().unwrap_or_default());
        json!({"kind": "AdmissionReview", "apiVersion": format!("{GROUP}/{version}"), "request": request})
    }

    /// Checks a review, and returns the `response`.
    fn verify<'r>(&self, review: &'r Value, version: &str) -> Result<&'r Value, String> {
        let response = &review["response"];
        if !response.is_object() {
            return Err("webhook response was absent".to_owned());
        }
        if version != "v1" {
            // Reviews of v1beta1 need no uid in the response.
            return Ok(response);
        }
        let uid = response["uid"].as_str().unwrap_or_default();
        if uid != self.uid {
            return Err(format!("expected response.uid={}, got {}", go_quote(&self.uid), go_quote(uid)));
        }
        let text = |field: &str| review[field].as_str().unwrap_or_default();
        let (found_version, kind) = (text("apiVersion"), text("kind"));
        if found_version != "admission.k8s.io/v1" || kind != "AdmissionReview" {
            return Err(format!(
                "expected webhook response of {GROUP}/v1, Kind=AdmissionReview, got {}, Kind={kind}",
                go_group_version(found_version)
            ));
        }
        let has_patch = response["patch"].as_str().is_some_and(|patch| !patch.is_empty());
        let patch_type = response["patchType"].as_str();
        match (self.is_mutating, has_patch, patch_type) {
            (true, true, None) => {
                Err("webhook returned response.patch but not response.patchType".to_owned())
            }
            (true, false, Some(_)) => {
                Err("webhook returned response.patchType but not response.patch".to_owned())
            }
            (true, true, Some("")) => Err("webhook returned invalid response.patchType of \"\"".to_owned()),
            (false, true, _) => Err("validating webhook may not return response.patch".to_owned()),
            (false, false, Some(_)) => Err("validating webhook may not return response.patchType".to_owned()),
            _ => Ok(response),
        }
    }
}

/// Returns a group and version in Go's printed form; an empty group version is `/`.
fn go_group_version(api_version: &str) -> String {
    match api_version.split_once('/') {
        Some(_) => api_version.to_owned(),
        None => format!("/{api_version}"),
    }
}

/// Reads the body of a reply.
fn read(body: &[u8], version: &str) -> Result<Value, String> {
    if body.is_empty() {
        return Err("0-length response with status code: 200 and content type: application/json".to_owned());
    }
    let parsed = match crate::wire::from_json_with_duplicates(body) {
        // A body that is not JSON is parsed as YAML.
        Err(_) if body.first() != Some(&b'{') => crate::wire::from_yaml_with_duplicates(body),
        parsed => parsed,
    };
    let (value, _) = parsed.map_err(|why| format!("couldn't get version/kind; json parse error: {why}"))?;
    if !value.is_object() {
        return Err(format!(
            "couldn't get version/kind; json parse error: json: cannot unmarshal {} into Go value of type struct {{ APIVersion string \"json:\\\"apiVersion,omitempty\\\"\"; Kind string \"json:\\\"kind,omitempty\\\"\" }}",
            json_type(&value)
        ));
    }
    let text = |field: &str| value[field].as_str().unwrap_or_default();
    let (found, kind) = (text("apiVersion"), text("kind"));
    let short = found.rsplit_once('/').map_or(found, |(_, version)| version);
    // A missing field counts as expected; the check of the response looks at the field again.
    if !kind.is_empty() && !found.is_empty() {
        match (found, kind) {
            ("admission.k8s.io/v1" | "admission.k8s.io/v1beta1", "AdmissionReview") if short == version => {}
            ("admission.k8s.io/v1" | "admission.k8s.io/v1beta1", "AdmissionReview") | ("v1", "Status") => {
                return Err(format!(
                    "converting ({short}.{kind}) to ({version}.AdmissionReview): unknown conversion"
                ));
            }
            _ => {
                return Err(format!(
                    "no kind {} is registered for version {} in scheme \"pkg/runtime/scheme.go:111\"",
                    go_quote(kind),
                    go_quote(found)
                ));
            }
        }
    }
    response_types::check(&value["response"])?;
    Ok(value)
}

/// Returns the bytes of the patch in a response.
fn patch(response: &Value) -> Result<Vec<u8>, String> {
    use base64::Engine as _;
    use base64::engine::general_purpose::STANDARD;
    let Some(text) = response["patch"].as_str() else { return Ok(Vec::new()) };
    STANDARD.decode(text).map_err(|_| "illegal base64 data in response.patch".to_owned())
}
