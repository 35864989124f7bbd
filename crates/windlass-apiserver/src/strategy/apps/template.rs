//! Pod templates and the selectors that must match their labels.

use serde_json::{Map, Value, json};
use windlass_schema::FieldError;

use crate::strategy::checks::{validate_annotations, validate_labels};
use crate::strategy::core::{default_spec, validate_spec};
use crate::strategy::fields::{entry_mut, list_at, map_at, text, text_at};
use crate::wire::{LabelSelector, names};

/// Sets the defaults of the pod template in a spec.
pub(in crate::strategy) fn default_template(spec: &mut Map<String, Value>) {
    if let Some(template) = entry_mut(spec, "template") {
        let pod = template.entry("spec").or_insert_with(|| json!({}));
        if let Some(pod) = pod.as_object_mut() {
            default_spec(pod);
        }
    }
}

/// Validates the selector of a workload.
pub(in crate::strategy) fn validate_selector(spec: &Value, kind: &str, errors: &mut Vec<FieldError>) {
    let Some(selector) = spec.get("selector") else {
        errors.push(FieldError::required("spec.selector", ""));
        return;
    };
    let found = validate_label_selector(selector, "spec.selector");
    let broken = !found.is_empty();
    errors.extend(found);
    let empty = selector.as_object().is_some_and(Map::is_empty);
    if empty && !kind.is_empty() {
        errors.push(FieldError::invalid(
            "spec.selector",
            json!({}),
            format!("empty selector is invalid for {kind}"),
        ));
    }
    if broken {
        errors.push(FieldError::invalid("spec.selector", selector.clone(), "invalid label selector"));
    }
}

/// Validates a label selector at `path`.
pub(in crate::strategy) fn validate_label_selector(selector: &Value, path: &str) -> Vec<FieldError> {
    let mut errors = Vec::new();
    if let Some(labels) = map_at(selector, "/matchLabels") {
        errors.extend(validate_labels(labels, &format!("{path}.matchLabels")));
    }
    for (index, expression) in list_at(selector, "/matchExpressions").iter().enumerate() {
        let path = format!("{path}.matchExpressions[{index}]");
        let operator = text(expression, "operator");
        let values = list_at(expression, "/values");
        match operator {
            "In" | "NotIn" if values.is_empty() => errors.push(FieldError::required(
                format!("{path}.values"),
                "must be specified when `operator` is 'In' or 'NotIn'",
            )),
            "Exists" | "DoesNotExist" if !values.is_empty() => errors.push(FieldError::forbidden(
                format!("{path}.values"),
                "may not be specified when `operator` is 'Exists' or 'DoesNotExist'",
            )),
            "In" | "NotIn" | "Exists" | "DoesNotExist" => {}
            other => errors.push(FieldError::invalid(
                format!("{path}.operator"),
                other,
                "not a valid selector operator",
            )),
        }
        let key = text(expression, "key");
        let problems = names::label_key(key);
        errors.extend(problems.into_iter().map(|text| FieldError::invalid(format!("{path}.key"), key, text)));
        for (index, value) in values.iter().filter_map(Value::as_str).enumerate() {
            let field = format!("{path}.values[{index}]");
            let problems = names::label_value(value);
            errors.extend(problems.into_iter().map(|text| FieldError::invalid(field.as_str(), value, text)));
        }
    }
    errors
}

/// Validates the template of a workload whose pods are always restarted.
pub(in crate::strategy) fn validate_template(spec: &Value, errors: &mut Vec<FieldError>) {
    let template = spec.get("template").unwrap_or(&Value::Null);
    let labels = map_at(template, "/metadata/labels");
    let mismatch = spec.get("selector").is_none_or(|selector| {
        // An empty or invalid selector has an error of its own.
        !selector.as_object().is_some_and(Map::is_empty)
            && validate_label_selector(selector, "").is_empty()
            && !LabelSelector::from_object(selector).matches(labels)
    });
    if mismatch {
        let value = labels.map_or(Value::Null, |labels| Value::Object(labels.clone()));
        let detail = "`selector` does not match template `labels`";
        errors.push(FieldError::invalid("spec.template.metadata.labels", value, detail));
    }
    errors.extend(validate_template_of(spec, "spec.template"));
    let policy = text_at(template, "/spec/restartPolicy");
    if !policy.is_empty() && policy != "Always" && ["OnFailure", "Never"].contains(&policy) {
        errors.push(FieldError::not_supported("spec.template.spec.restartPolicy", policy, &["Always"]));
    }
}

/// Validates a pod template in a spec.
pub(in crate::strategy) fn validate_template_of(spec: &Value, path: &str) -> Vec<FieldError> {
    let template = spec.get("template").unwrap_or(&Value::Null);
    let mut errors = Vec::new();
    if let Some(labels) = map_at(template, "/metadata/labels") {
        errors.extend(validate_labels(labels, &format!("{path}.labels")));
    }
    if let Some(annotations) = map_at(template, "/metadata/annotations") {
        errors.extend(validate_annotations(annotations, &format!("{path}.annotations")));
    }
    errors.extend(validate_spec(template.get("spec").unwrap_or(&Value::Null), &format!("{path}.spec")));
    errors
}
