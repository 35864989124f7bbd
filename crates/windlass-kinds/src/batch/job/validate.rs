//! Validation and warnings.

use serde_json::{Map, Value};
use windlass_schema::FieldError;
use windlass_wire::{LabelSelector, names};

use super::{Jobs, MANY_COMPLETIONS, NAME_LABELS, UID_LABELS, status, validate_job_spec};
use crate::checks::dns_label_warning;
use crate::field::{self, Errors, Field};
use crate::json::{entry_mut, text};
use crate::kind::{Validate, WriteContext};
use crate::pod_template::warnings::pod_template_warnings;
use crate::selector::{label_selector, validate_label_selector};

impl Validate for Jobs {
    fn validate(&self, object: &Value) -> Vec<FieldError> {
        field::validate("", object, |job, errors| {
            validate_generated(job, errors);
            validate_spec(&job.at("spec"), errors);
            validate_host_name(job, errors);
        })
    }

    fn validate_change(&self, object: &Value, old: &Value) -> Vec<FieldError> {
        field::validate("", object, |job, errors| {
            // kube-apiserver validates the spec again, and repeats its errors.
            validate_spec(&job.at("spec"), errors);
            validate_change(job, &job.with(old), errors);
        })
    }

    fn validate_status(&self, object: &Value, old: &Value) -> Vec<FieldError> {
        field::validate("", object, |job, errors| status::validate(job, &job.with(old), errors))
    }

    fn warnings(&self, cx: &WriteContext<'_>, object: &Value, old: Option<&Value>) -> Vec<String> {
        if !cx.subresource.is_empty() {
            return Vec::new();
        }
        let mut warnings: Vec<String> = Vec::new();
        let spec = &object["spec"];
        if old.is_none() {
            warnings.extend(dns_label_warning(object, "this is used in Pod names and hostnames"));
        }
        if old.is_none_or(|old| old["spec"] != *spec) {
            let number = |field: &str| spec.get(field).and_then(Value::as_i64);
            let is_large = number("completions").is_some_and(|count| count > MANY_COMPLETIONS)
                && number("parallelism").is_some_and(|count| count > 10_000);
            if text(spec, "completionMode") == "Indexed" && is_large {
                warnings.push("spec: In Indexed Jobs with a number of completions higher than 10^5 and a parallelism higher than 10^4, Kubernetes might not be able to track completedIndexes when a big number of indexes fail".to_owned());
            }
            warnings.extend(pod_template_warnings("spec.template.", &spec["template"]));
        }
        warnings
    }
}

/// Checks that generated labels and selectors are unchanged.
fn validate_generated(job: &Field<'_>, errors: &mut Errors) {
    let spec = job.at("spec");
    let selector = spec.at("selector");
    if spec.at("manualSelector").flag() || !selector.is_set() {
        return;
    }
    let labels = spec.at_path("template/metadata/labels");
    let (uid, name) = (job.at_path("metadata/uid").text(), job.at_path("metadata/name").text());
    let expected =
        [(UID_LABELS[0], uid), (NAME_LABELS[0], name), (UID_LABELS[1], uid), (NAME_LABELS[1], name)];
    for (key, value) in expected {
        let label = labels.key(key);
        let detail = format!("must be '{value}'");
        if !label.is_set() {
            errors.push(label.required(detail));
        } else if label.text() != value {
            errors.push(label.invalid_as(labels.value().clone(), detail));
        }
    }
    let generated: Map<String, Value> =
        expected.iter().map(|(key, value)| ((*key).to_owned(), (*value).into())).collect();
    let is_valid = validate_label_selector(selector.value(), "").is_empty();
    if is_valid && !LabelSelector::from_object(selector.value()).matches(Some(&generated)) {
        errors.push(selector.invalid("`selector` not auto-generated"));
    }
}

fn validate_spec(spec: &Field<'_>, errors: &mut Errors) {
    validate_job_spec(spec, errors);
    let (selector, labels) = (spec.at("selector"), spec.at_path("template/metadata/labels"));
    if !selector.is_set() {
        errors.push(selector.required(""));
    }
    let before = errors.len();
    label_selector(&selector, errors);
    let is_valid = errors.len() == before;
    let matches = selector.is_set() && LabelSelector::from_object(selector.value()).matches(labels.map());
    if is_valid && !matches {
        errors.push(labels.invalid("`selector` does not match template `labels`"));
    }
}

/// Checks that the name of the last pod of an indexed job is a host name.
fn validate_host_name(job: &Field<'_>, errors: &mut Errors) {
    let completions = job.at_path("spec/completions").int();
    if job.at_path("spec/completionMode").text() != "Indexed" || completions <= 0 {
        return;
    }
    let name = job.at_path("metadata/name");
    let host = format!("{}-{}", name.text(), completions - 1);
    if !names::dns_1123_label(&host).is_empty() {
        errors.push(name.invalid(format!("will not able to create pod with invalid DNS label: {host}")));
    }
}

fn validate_change(job: &Field<'_>, old: &Field<'_>, errors: &mut Errors) {
    let (spec, before) = (job.at("spec"), old.at("spec"));
    let completions = spec.at("completions");
    if completions.value() != before.at("completions").value() {
        if spec.at("completionMode").text() != "Indexed" {
            errors.push(completions.invalid("field is immutable"));
        } else if completions.is_set() && completions.int() != spec.at("parallelism").int() {
            errors.push(completions.invalid("can only be modified in tandem with spec.parallelism"));
        }
    }
    let immutable = |name: &str, errors: &mut Errors| {
        let field = spec.at(name);
        if field.value() != before.at(name).value() {
            errors.push(field.invalid("field is immutable"));
        }
    };
    immutable("selector", errors);
    validate_template_change(&spec, old, errors);
    for field in ["completionMode", "podFailurePolicy", "backoffLimitPerIndex", "managedBy", "successPolicy"]
    {
        immutable(field, errors);
    }
}

/// Validates a change of the template. Before the job starts, scheduling and resources may change.
fn validate_template_change(spec: &Field<'_>, old: &Field<'_>, errors: &mut Errors) {
    let (template, before) = (spec.at("template"), old.at_path("spec/template"));
    let suspended = old.at_path("spec/suspend").flag();
    let was_suspended = status::is_true(&old.at("status"), "Suspended");
    let is_mutable = suspended
        && (!old.at_path("status/startTime").is_set() || was_suspended)
        && old.at_path("status/active").int() == 0;
    if !is_mutable {
        if template.value() != before.value() {
            errors.push(template.invalid("field is immutable"));
        }
        return;
    }
    let pod = template.at("spec");
    if fixed(pod.value(), before.at("spec").value()) != fixed(before.at("spec").value(), pod.value()) {
        errors.push(pod.invalid("field is immutable"));
    }
}

/// Returns the part of a pod's spec that is fixed. The resources of containers with the same name in both are not.
fn fixed(spec: &Value, other: &Value) -> Value {
    let mut fixed = spec.clone();
    let Some(fields) = fixed.as_object_mut() else { return fixed };
    for field in ["nodeSelector", "tolerations", "schedulingGates"] {
        fields.remove(field);
    }
    if let Some(affinity) = entry_mut(fields, "affinity") {
        affinity.remove("nodeAffinity");
        if affinity.is_empty() {
            fields.remove("affinity");
        }
    }
    for list in ["containers", "initContainers"] {
        let others = other.get(list).and_then(Value::as_array).map_or(&[][..], Vec::as_slice);
        let Some(containers) = fields.get_mut(list).and_then(Value::as_array_mut) else { continue };
        if containers.len() != others.len() {
            continue;
        }
        for (container, other) in containers.iter_mut().zip(others) {
            if text(container, "name") == text(other, "name")
                && let Some(container) = container.as_object_mut()
            {
                container.remove("resources");
            }
        }
    }
    fixed
}
