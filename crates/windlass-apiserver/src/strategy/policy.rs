//! Disruption budgets.

use serde_json::{Value, json};
use windlass_schema::FieldError;

use super::apps::{at_most_all, label_selector, positive_int_or_percent};
use super::checks::conditions;
use super::place::{self, Errors, Place};
use super::{Facts, FactsOnly, Strategy, StrategyContext};
use crate::wire::ApiError;

pub(super) fn of(resource: &str) -> &'static dyn Strategy {
    match resource {
        "poddisruptionbudgets" => &DisruptionBudgets,
        _ => &FactsOnly(&Facts::SPEC),
    }
}

const BUDGETS: Facts = Facts { unconditional_update: false, ..Facts::SPEC };

struct DisruptionBudgets;

impl Strategy for DisruptionBudgets {
    fn facts(&self) -> &'static Facts {
        &BUDGETS
    }

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
        errors.extend(place::validate("spec", spec, validate_fields));
        errors
    }

    fn validate_status(&self, object: &Value, _old: &Value) -> Vec<FieldError> {
        place::validate("status", &object["status"], |status, errors| {
            conditions(&status.at("conditions"), errors);
            for field in ["disruptionsAllowed", "currentHealthy", "desiredHealthy", "expectedPods"] {
                status.at(field).not_negative(errors);
            }
        })
    }

    fn prepare_create(&self, _cx: &StrategyContext<'_>, object: &mut Value) -> Result<(), ApiError> {
        object["status"] =
            json!({"currentHealthy": 0, "desiredHealthy": 0, "disruptionsAllowed": 0, "expectedPods": 0});
        Ok(())
    }
}

fn validate_fields(spec: &Place<'_>, errors: &mut Errors) {
    for bound in ["minAvailable", "maxUnavailable"].map(|bound| spec.at(bound)) {
        positive_int_or_percent(&bound, errors);
        at_most_all(&bound, errors);
    }
    label_selector(&spec.at("selector"), errors);
    spec.at("unhealthyPodEvictionPolicy").one_of(&["AlwaysAllow", "IfHealthyBudget"], errors);
}
