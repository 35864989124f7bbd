//! Validation and warnings.

use serde_json::Value;
use windlass_schema::FieldError;

use super::DisruptionBudgets;
use crate::checks::conditions;
use crate::field::{self, Errors, Field};
use crate::kind::Validate;
use crate::selector::label_selector;
use crate::workload::rollout::{at_most_all, positive_int_or_percent};

impl Validate for DisruptionBudgets {
    fn validate(&self, object: &Value) -> Vec<FieldError> {
        let spec = &object["spec"];
        let mut errors = Vec::new();
        let bounds = [spec.get("minAvailable"), spec.get("maxUnavailable")];
        if let [Some(least), Some(most)] = bounds {
            let json = |value: Option<&Value>| windlass_schema::go_json(value.unwrap_or(&Value::Null));
            let shown = format!(
                "{{\"MinAvailable\":{},\"Selector\":{},\"MaxUnavailable\":{},\"UnhealthyPodEvictionPolicy\":{}}}",
                json(Some(least)),
                json(spec.get("selector")),
                json(Some(most)),
                json(spec.get("unhealthyPodEvictionPolicy"))
            );
            let detail = "minAvailable and maxUnavailable cannot be both set";
            errors.push(FieldError::invalid("spec", spec.clone(), detail).showing(shown));
        }
        errors.extend(field::validate("spec", spec, validate_fields));
        errors
    }

    fn validate_status(&self, object: &Value, _old: &Value) -> Vec<FieldError> {
        field::validate("status", &object["status"], |status, errors| {
            conditions(&status.at("conditions"), errors);
            for field in ["disruptionsAllowed", "currentHealthy", "desiredHealthy", "expectedPods"] {
                status.at(field).not_negative(errors);
            }
        })
    }
}

fn validate_fields(spec: &Field<'_>, errors: &mut Errors) {
    for bound in ["minAvailable", "maxUnavailable"].map(|bound| spec.at(bound)) {
        positive_int_or_percent(&bound, errors);
        at_most_all(&bound, errors);
    }
    label_selector(&spec.at("selector"), errors);
    spec.at("unhealthyPodEvictionPolicy").one_of(&["AlwaysAllow", "IfHealthyBudget"], errors);
}
