//! Validation and warnings.

use serde_json::Value;
use windlass_schema::FieldError;
use windlass_wire::LabelSelector;

use crate::checks::validate_not_negative;
use crate::json::map_at;
use crate::workload::counters::REPLICAS;
use crate::workload::template::{validate_restarts, validate_template_of};
use crate::workload::validate::WorkloadValidation;

pub(super) static VALIDATION: WorkloadValidation =
    WorkloadValidation { spec: validate, counters: REPLICAS, has_fixed_selector: false, names_pods: true };

fn validate(spec: &Value) -> Vec<FieldError> {
    let mut errors = Vec::new();
    validate_not_negative(spec, &["minReadySeconds", "replicas"], &mut errors);
    match map_at(spec, "/selector").filter(|selector| !selector.is_empty()) {
        None => errors.push(FieldError::required("spec.selector", "")),
        Some(selector) if spec.get("template").is_some() => {
            let labels = map_at(spec, "/template/metadata/labels");
            if !LabelSelector::from_map(selector).matches(labels) {
                let value = labels.map_or(Value::Null, |labels| Value::Object(labels.clone()));
                let detail = "`selector` does not match template `labels`";
                errors.push(FieldError::invalid("spec.template.metadata.labels", value, detail));
            }
        }
        Some(_) => {}
    }
    if spec.get("template").is_none() {
        errors.push(FieldError::required("spec.template", ""));
    } else {
        errors.extend(validate_template_of(spec, "spec.template"));
        validate_restarts(&spec["template"], "ReplicationController", &mut errors);
    }
    errors
}
