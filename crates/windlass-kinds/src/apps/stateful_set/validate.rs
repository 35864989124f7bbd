//! Validation and warnings.

use std::collections::BTreeMap;

use serde_json::{Value, json};
use windlass_schema::FieldError;
use windlass_wire::names;

use super::StatefulSets;
use crate::checks::{immutable, invalid_names, validate_annotations, validate_labels};
use crate::field::{self, Errors, Field};
use crate::json::{int_at, list_at, map_at, text, text_at};
use crate::kind::{Validate, WriteContext};
use crate::subresource::Subresource;
use crate::volume::claim::{claim_spec_warnings, validate_claim_spec};
use crate::workload::counters::Counters;
use crate::workload::rollout::{at_most_all, int_or_percent, positive_int_or_percent, show_strategy};
use crate::workload::template::{template_warnings, validate_restarts, validate_selector, validate_template};

impl Validate for StatefulSets {
    fn validate_create(&self, _cx: &WriteContext<'_>, object: &Value) -> Vec<FieldError> {
        let mut errors = validate(object, true);
        let service = text_at(object, "/spec/serviceName");
        if !service.is_empty() {
            errors.extend(invalid_names("spec.serviceName", service, names::dns_1123_label(service)));
        }
        errors.extend(field::validate("", object, |object, errors| {
            for claim in object.at_path("spec/volumeClaimTemplates").items() {
                validate_claim_spec(&claim.at("spec"), errors);
            }
        }));
        errors
    }

    fn warnings(&self, cx: &WriteContext<'_>, object: &Value, old: Option<&Value>) -> Vec<String> {
        if !cx.subresource.is_empty() {
            return Vec::new();
        }
        let mut warnings = template_warnings(object, old, false);
        // The real server names the spec of a claim in an update only, as in Go.
        let name = if old.is_none() { "" } else { ".Spec" };
        for (index, claim) in list_at(object, "/spec/volumeClaimTemplates").iter().enumerate() {
            let path = format!("spec.volumeClaimTemplates[{index}]{name}");
            warnings.extend(field::validate(&path, &claim["spec"], claim_spec_warnings));
        }
        if int_at(object, "/spec/revisionHistoryLimit").is_some_and(|limit| limit < 0) {
            warnings.push("spec.revisionHistoryLimit: a negative value retains all historical revisions; a value >= 0 is recommended".to_owned());
        }
        warnings
    }

    fn validate_status(&self, object: &Value, old: &Value) -> Vec<FieldError> {
        COUNTERS.validate(object, old)
    }

    fn validate_update(&self, cx: &WriteContext<'_>, object: &Value, old: &Value) -> Vec<FieldError> {
        if *cx.subresource == Subresource::Status {
            return self.validate_status(object, old);
        }
        let mut errors = validate(object, validate(old, true).is_empty());
        errors.extend(FIXED.iter().flat_map(|pointer| immutable(object, old, pointer)));
        errors
    }
}

/// The fields that an update must not change.
const FIXED: [&str; 4] =
    ["/spec/selector", "/spec/volumeClaimTemplates", "/spec/serviceName", "/spec/podManagementPolicy"];

const COUNTERS: Counters = Counters {
    fields: &[
        "replicas",
        "readyReplicas",
        "currentReplicas",
        "updatedReplicas",
        "availableReplicas",
        "observedGeneration",
        "collisionCount",
    ],
    below_total: &["readyReplicas", "currentReplicas", "updatedReplicas", "availableReplicas"],
    ready: "status.readyReplicas",
    collisions: true,
};

/// Validates a stateful set, with its template if that was valid before.
fn validate(object: &Value, with_template: bool) -> Vec<FieldError> {
    let spec = &object["spec"];
    let mut errors = field::validate("spec", spec, validate_fields);
    validate_selector(spec, "statefulset", &mut errors);
    if with_template {
        let named = with_claims(spec);
        if !validate_template(named.as_ref().unwrap_or(spec), "StatefulSet", &mut errors) {
            validate_restarts(&spec["template"], "StatefulSet", &mut errors);
        }
    } else {
        validate_restarts(&spec["template"], "StatefulSet", &mut errors);
    }
    validate_metadata(&spec["template"], &mut errors);
    errors
}

/// Validates the labels and annotations of the template once more, as the real server does.
fn validate_metadata(template: &Value, errors: &mut Vec<FieldError>) {
    if let Some(labels) = map_at(template, "/metadata/labels") {
        errors.extend(validate_labels(labels, "spec.template.labels"));
    }
    if let Some(annotations) = map_at(template, "/metadata/annotations") {
        errors.extend(validate_annotations(annotations, "spec.template.annotations"));
    }
}

fn validate_fields(spec: &Field<'_>, errors: &mut Errors) {
    let management = spec.at("podManagementPolicy");
    if !management.require(errors) && !["OrderedReady", "Parallel"].contains(&management.text()) {
        errors.push(management.invalid("must be 'OrderedReady' or 'Parallel'"));
    }
    let update = spec.at("updateStrategy");
    let rolling = update.at("rollingUpdate");
    match update.at("type").text() {
        "" => errors.push(update.required("")),
        "RollingUpdate" => validate_rolling_update(&rolling, errors),
        "OnDelete" => {
            if rolling.is_set() {
                let partition = rolling.at("partition").int();
                let shown = format!("{{\"Partition\":{partition},\"MaxUnavailable\":null}}");
                let error = rolling.invalid("only allowed for updateStrategy 'RollingUpdate'");
                errors.push(error.showing(shown));
            }
        }
        other => {
            let error = update.invalid("must be 'RollingUpdate' or 'OnDelete'");
            errors.push(error.showing(show_strategy(other)));
        }
    }
    let retention = spec.at("persistentVolumeClaimRetentionPolicy");
    if retention.is_set() {
        for event in ["whenDeleted", "whenScaled"].map(|event| retention.at(event)) {
            if !["Retain", "Delete"].contains(&event.text()) {
                errors.push(event.unsupported(&["Retain", "Delete"]));
            }
        }
    }
    for field in ["replicas", "minReadySeconds"] {
        spec.at(field).not_negative(errors);
    }
    spec.at_path("ordinals/start").not_negative(errors);
}

fn validate_rolling_update(rolling: &Field<'_>, errors: &mut Errors) {
    rolling.at("partition").not_negative(errors);
    let unavailable = rolling.at("maxUnavailable");
    if unavailable.is_set() {
        positive_int_or_percent(&unavailable, errors);
        if int_or_percent(Some(unavailable.value())) == 0 {
            errors.push(unavailable.invalid("cannot be 0"));
        }
        at_most_all(&unavailable, errors);
    }
}

/// Returns the spec of future pods: with volumes for the claims, and without the host names that the
/// controller sets. Returns `None` for an unchanged spec.
fn with_claims(spec: &Value) -> Option<Value> {
    let templates = list_at(spec, "/volumeClaimTemplates");
    let pod = spec.pointer("/template/spec").and_then(Value::as_object)?;
    if templates.is_empty() && !pod.contains_key("subdomain") && !pod.contains_key("hostname") {
        return None;
    }
    let claimed: BTreeMap<&str, Value> = templates
        .iter()
        .map(|template| text_at(template, "/metadata/name"))
        .map(|name| (name, json!({"name": name, "persistentVolumeClaim": {"claimName": name}})))
        .collect();
    let own = list_at(spec, "/template/spec/volumes").iter();
    let own = own.filter(|volume| !claimed.contains_key(text(volume, "name"))).cloned();
    let volumes: Vec<Value> = claimed.values().cloned().chain(own).collect();
    let mut named = spec.clone();
    let pod = named.pointer_mut("/template/spec").and_then(Value::as_object_mut)?;
    pod.remove("subdomain");
    pod.remove("hostname");
    pod.insert("volumes".to_owned(), volumes.into());
    Some(named)
}
