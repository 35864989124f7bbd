//! Pod templates and the selectors that must match their labels.

use serde_json::{Map, Value, json};
use windlass_schema::FieldError;
use windlass_wire::LabelSelector;

use crate::checks::dns_label_warning;
use crate::field;
use crate::json::{entry_mut, map_at, spec_mut, text_at};
use crate::pod_template::defaults::default_spec;
use crate::pod_template::validate::validate_template as validate_pod_template;
use crate::pod_template::warnings::pod_template_warnings;
use crate::selector::validate_label_selector;

/// Sets the defaults of the pod template in a spec.
pub(crate) fn default_template(spec: &mut Map<String, Value>) {
    if let Some(template) = entry_mut(spec, "template") {
        let pod = template.entry("spec").or_insert_with(|| json!({}));
        if let Some(pod) = pod.as_object_mut() {
            default_spec(pod);
        }
    }
}

/// Completes a workload without any field set: to Go's internal types, its replicas are never absent.
pub(crate) fn complete_zero_scale(object: &mut Value) {
    let spec = spec_mut(object);
    spec.insert("replicas".to_owned(), 0.into());
    spec.insert("selector".to_owned(), Value::Null);
}

/// Validates the selector of a workload.
pub(crate) fn validate_selector(spec: &Value, kind: &str, errors: &mut Vec<FieldError>) {
    let Some(selector) = spec.get("selector").filter(|selector| !selector.is_null()) else {
        if kind != "daemonset" {
            errors.push(FieldError::required("spec.selector", ""));
        }
        return;
    };
    let found = validate_label_selector(selector, "spec.selector");
    let is_broken = !found.is_empty();
    errors.extend(found);
    if is_empty_selector(selector) {
        let detail = format!("empty selector is invalid for {kind}");
        errors.push(FieldError::invalid("spec.selector", selector.clone(), detail));
    }
    if is_broken && kind != "daemonset" {
        let detail = if kind == "statefulset" { "" } else { "invalid label selector" };
        errors.push(FieldError::invalid("spec.selector", selector.clone(), detail));
    }
}

/// Validates the template of a workload of this kind, whose pods are always restarted.
pub(crate) fn validate_template(spec: &Value, kind: &str, errors: &mut Vec<FieldError>) -> bool {
    let template = spec.get("template").unwrap_or(&Value::Null);
    match Selector::of(spec) {
        Selector::Invalid if kind != "DaemonSet" => return false,
        Selector::Matching(true) | Selector::Invalid => {}
        Selector::Matching(false) => errors.push(mismatch(template)),
    }
    errors.extend(validate_template_of(spec, "spec.template"));
    validate_restarts(template, kind, errors);
    true
}

/// The match between a selector and the labels of the template.
enum Selector {
    /// The selector is not valid.
    Invalid,
    /// True if the selector matches. An empty selector matches.
    Matching(bool),
}

impl Selector {
    fn of(spec: &Value) -> Self {
        let labels = map_at(spec, "/template/metadata/labels");
        match spec.get("selector").filter(|selector| !selector.is_null()) {
            None => Self::Matching(false),
            Some(selector) if !validate_label_selector(selector, "").is_empty() => Self::Invalid,
            Some(selector) => Self::Matching(
                is_empty_selector(selector) || LabelSelector::from_object(selector).matches(labels),
            ),
        }
    }
}

/// Returns whether a selector has no requirements.
fn is_empty_selector(selector: &Value) -> bool {
    let is_empty = |field: &str| match selector.get(field) {
        Some(Value::Object(labels)) => labels.is_empty(),
        Some(Value::Array(expressions)) => expressions.is_empty(),
        _ => true,
    };
    is_empty("matchLabels") && is_empty("matchExpressions")
}

fn mismatch(template: &Value) -> FieldError {
    let labels = map_at(template, "/metadata/labels");
    let value = labels.map_or(Value::Null, |labels| Value::Object(labels.clone()));
    let detail = "`selector` does not match template `labels`";
    FieldError::invalid("spec.template.metadata.labels", value, detail)
}

/// Checks that the pods of a workload run for ever.
pub(crate) fn validate_restarts(template: &Value, kind: &str, errors: &mut Vec<FieldError>) {
    let policy = text_at(template, "/spec/restartPolicy");
    if policy != "Always" {
        errors.push(
            FieldError::not_supported("spec.template.spec.restartPolicy", policy, &["Always"])
                .of_named_type(),
        );
    }
    if template.pointer("/spec/activeDeadlineSeconds").is_some_and(|seconds| !seconds.is_null()) {
        let detail = format!("activeDeadlineSeconds in {kind} is not Supported");
        errors.push(FieldError::forbidden("spec.template.spec.activeDeadlineSeconds", detail));
    }
}

/// Validates a pod template in a spec.
pub(crate) fn validate_template_of(spec: &Value, path: &str) -> Vec<FieldError> {
    field::validate(path, spec.get("template").unwrap_or(&Value::Null), validate_pod_template)
}

/// Returns the warnings about a workload: about the template, and about the name of a new workload if pods
/// have the name.
pub(crate) fn template_warnings(object: &Value, old: Option<&Value>, names_pods: bool) -> Vec<String> {
    let mut warnings = Vec::new();
    if old.is_none() && names_pods {
        warnings.extend(dns_label_warning(object, "this is used in Pod names and hostnames"));
    }
    if old.is_none_or(|old| old["spec"] != object["spec"]) {
        warnings.extend(pod_template_warnings("spec.template.", &object["spec"]["template"]));
    }
    warnings
}
