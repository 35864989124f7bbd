//! The rules for autoscalers.

use std::borrow::Cow;

use serde_json::Value;
use windlass_schema::FieldError;
use windlass_wire::names;

use super::{Autoscalers, version1};
use crate::checks::path_segment;
use crate::field::{self, Errors, Field};
use crate::json::text;
use crate::kind::{Validate, WriteContext};
use crate::pod_template::resources::validate_container_name;
use crate::subresource::Subresource;

impl Validate for Autoscalers {
    fn validate_create(&self, _cx: &WriteContext<'_>, object: &Value) -> Vec<FieldError> {
        spec(&newest(object)["spec"], None)
    }

    fn validate_update(&self, cx: &WriteContext<'_>, object: &Value, old: &Value) -> Vec<FieldError> {
        if *cx.subresource == Subresource::Status {
            return status(&object["status"]);
        }
        spec(&newest(object)["spec"], Some(&newest(old)["spec"]))
    }
}

/// Returns an autoscaler in the version of the rules.
fn newest(object: &Value) -> Cow<'_, Value> {
    if text(object, "apiVersion") != "autoscaling/v1" {
        return Cow::Borrowed(object);
    }
    let mut object = object.clone();
    version1::to_v2(&mut object);
    Cow::Owned(object)
}

const LONGEST_PERIOD: i64 = 1_800;
const LONGEST_WINDOW: i64 = 3_600;
/// The types of metrics, and the fields that have them.
const METRICS: [(&str, &str); 5] = [
    ("ContainerResource", "containerResource"),
    ("External", "external"),
    ("Object", "object"),
    ("Pods", "pods"),
    ("Resource", "resource"),
];

/// The accepted versions of referenced objects.
#[derive(Clone, Copy)]
struct References {
    any_version: bool,
    no_group: bool,
}

pub(super) fn spec(spec: &Value, old: Option<&Value>) -> Vec<FieldError> {
    field::validate("spec", spec, |spec, errors| validate_spec(spec, old, errors))
}

pub(super) fn status(status: &Value) -> Vec<FieldError> {
    field::validate("status", status, |status, errors| {
        for field in ["currentReplicas", "desiredReplicas"] {
            status.at(field).not_negative(errors);
        }
        for condition in status.at("conditions").items() {
            condition.at("observedGeneration").not_negative(errors);
        }
    })
}

fn validate_spec(spec: &Field<'_>, old: Option<&Value>, errors: &mut Errors) {
    let (least, most) = (spec.at("minReplicas"), spec.at("maxReplicas"));
    if least.is_set() && most.int() < least.int() {
        errors.push(most.invalid_as(most.int(), "must be greater than or equal to `minReplicas`"));
    }
    let target = spec.at("scaleTargetRef");
    let was = old.map(|old| &old["scaleTargetRef"]);
    let is_same = was.is_some_and(|was| {
        ["apiVersion", "kind"].iter().all(|field| {
            was.get(*field).and_then(Value::as_str).unwrap_or_default() == target.at(field).text()
        })
    });
    let no_group = target.at("kind").text() == "ReplicationController";
    validate_reference(&target, References { any_version: is_same, no_group }, errors);
    let metrics = spec.at("metrics");
    let objects = References { any_version: old.is_some_and(has_broken_metric), no_group: true };
    for metric in metrics.items() {
        validate_metric(&metric, objects, errors);
    }
    let scales_to_zero = |metric: Field<'_>| matches!(metric.at("type").text(), "Object" | "External");
    if least.is_set() && least.int() == 0 && !metrics.items().any(scales_to_zero) {
        errors.push(metrics.forbidden(
            "must specify at least one Object or External metric to support scaling to zero replicas",
        ));
    }
    for direction in ["scaleUp", "scaleDown"] {
        let rules = spec.at("behavior").at(direction);
        if rules.is_set() {
            validate_rules(&rules, errors);
        }
    }
    // As in kube-apiserver, the errors of its declarative rules are the last ones.
    least.not_negative(errors);
    if most.int() == 0 {
        errors.push(most.required(""));
    } else if most.int() < 0 {
        errors.push(most.invalid("must be greater than or equal to 1"));
    }
}

/// Returns whether a metric of an object refers to it by a version that is none.
fn has_broken_metric(spec: &Value) -> bool {
    spec.get("metrics").and_then(Value::as_array).into_iter().flatten().any(|metric| {
        let version = metric.pointer("/object/describedObject/apiVersion").and_then(Value::as_str);
        version.is_some_and(|version| version.matches('/').count() > 1)
    })
}

fn validate_reference(reference: &Field<'_>, accepted: References, errors: &mut Errors) {
    for field in ["kind", "name"] {
        reference.at(field).require_check(path_segment, errors);
    }
    let version = reference.at("apiVersion");
    if accepted.any_version {
        return;
    }
    match version.text().matches('/').count() {
        0 if !accepted.no_group => {
            errors.push(version.invalid_as(version.text(), "apiVersion must specify API group"));
        }
        // A slash at the start, too, leaves no group.
        1 if !accepted.no_group && version.text().starts_with('/') && version.text() != "/" => {
            errors.push(version.invalid("apiVersion must specify API group"));
        }
        0 | 1 => {}
        _ => {
            let detail = format!("unexpected GroupVersion string: {}", version.text());
            errors.push(version.invalid(detail));
        }
    }
}

fn validate_metric(metric: &Field<'_>, objects: References, errors: &mut Errors) {
    let kind = metric.at("type");
    let known = METRICS.map(|(known, _)| known);
    if kind.text().is_empty() {
        errors.push(kind.required("must specify a metric source type"));
    }
    let is_known = known.contains(&kind.text());
    if !is_known {
        errors.push(kind.unsupported(&known));
    }
    let order = ["object", "external", "pods", "resource", "containerResource"];
    let present: Vec<&str> = order.into_iter().filter(|source| metric.at(source).is_set()).collect();
    if let Some(first) = present.first() {
        validate_source(first, &metric.at(first), objects, errors);
    }
    let expected = METRICS.iter().find(|(known, _)| *known == kind.text()).map(|(_, source)| *source);
    match expected {
        Some(source) if !metric.at(source).is_set() => {
            errors.push(metric.at(source).required("must populate information for the given metric source"));
        }
        Some(_) => {}
        None => errors.push(kind.unsupported(&known)),
    }
    if present.len() != 1 {
        for source in present.into_iter().filter(|source| Some(*source) != expected) {
            errors.push(metric.at(source).forbidden("must populate the given metric source only"));
        }
    }
}

fn validate_source(kind: &str, source: &Field<'_>, objects: References, errors: &mut Errors) {
    let target = source.at("target");
    let [value, average, utilization] =
        ["value", "averageValue", "averageUtilization"].map(|field| target.at(field));
    match kind {
        "resource" | "containerResource" => {
            let name = source.at("name");
            if name.text().is_empty() {
                errors.push(name.required("must specify a resource name"));
            } else if kind == "containerResource" {
                validate_container_name(name.text(), &name, errors);
            }
            if kind == "containerResource" {
                let container = source.at("container");
                if container.text().is_empty() {
                    errors.push(container.required("must specify a container"));
                } else {
                    container.check(names::dns_1123_label, errors);
                }
            }
            validate_target(&target, errors);
            if !utilization.is_set() && !average.is_set() {
                errors
                    .push(utilization.required("must set either a target raw value or a target utilization"));
            }
            if utilization.is_set() && average.is_set() {
                errors
                    .push(average.forbidden("may not set both a target raw value and a target utilization"));
            }
            return;
        }
        "object" => validate_reference(&source.at("describedObject"), objects, errors),
        _ => {}
    }
    let name = source.at_path("metric/name");
    if name.text().is_empty() {
        errors.push(name.required("must specify a metric name"));
    } else {
        name.check(path_segment, errors);
    }
    validate_target(&target, errors);
    let has_none = !value.is_set() && !average.is_set();
    match kind {
        "object" if has_none => {
            errors.push(average.required("must set either a target value or averageValue"));
        }
        "external" if has_none => {
            errors.push(average.required("must set either a target value for metric or a per-pod target"));
        }
        "external" if value.is_set() && average.is_set() => {
            errors.push(value.forbidden("may not set both a target value for metric and a per-pod target"));
        }
        "pods" if !average.is_set() => {
            errors.push(average.required("must specify a positive target averageValue"));
        }
        _ => {}
    }
}

fn validate_target(target: &Field<'_>, errors: &mut Errors) {
    let kind = target.at("type");
    if kind.text().is_empty() {
        errors.push(kind.required("must specify a metric target type"));
    }
    if !["Utilization", "Value", "AverageValue"].contains(&kind.text()) {
        errors.push(kind.invalid_as(kind.text(), "must be either Utilization, Value, or AverageValue"));
    }
    for amount in ["value", "averageValue"].map(|field| target.at(field)) {
        if let Some(quantity) = amount.quantity()
            && quantity.signum() <= 0
        {
            errors.push(amount.invalid("must be positive"));
        }
    }
    let percent = target.at("averageUtilization");
    if percent.is_set() && percent.int() < 1 {
        errors.push(percent.invalid("must be greater than 0"));
    }
}

fn validate_rules(rules: &Field<'_>, errors: &mut Errors) {
    let window = rules.at("stabilizationWindowSeconds");
    if window.int() < 0 {
        errors.push(window.invalid("must be greater than or equal to zero"));
    }
    if window.int() > LONGEST_WINDOW {
        errors.push(window.invalid(format!("must be less than or equal to {LONGEST_WINDOW}")));
    }
    rules.at("selectPolicy").one_of(&["Disabled", "Max", "Min"], errors);
    let policies = rules.at("policies");
    if policies.is_empty() {
        errors.push(policies.required("must specify at least one Policy"));
    }
    for policy in policies.items() {
        let (kind, period) = (policy.at("type"), policy.at("periodSeconds"));
        if !["Pods", "Percent"].contains(&kind.text()) {
            errors.push(kind.unsupported(&["Percent", "Pods"]));
        }
        policy.at("value").positive(errors);
        period.positive(errors);
        if period.int() > LONGEST_PERIOD {
            errors.push(period.invalid(format!("must be less than or equal to {LONGEST_PERIOD}")));
        }
    }
    let tolerance = rules.at("tolerance");
    if let Some(quantity) = tolerance.quantity()
        && quantity.signum() < 0
    {
        errors.push(tolerance.invalid_as(quantity.to_string(), "must be greater than or equal to 0"));
    }
}
