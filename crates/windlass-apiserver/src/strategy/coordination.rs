//! Leases.

use serde_json::{Map, Value};
use windlass_schema::FieldError;

use super::fields::{int_at, object_mut};
use super::{Facts, FactsOnly, Strategy};

pub(super) fn of(resource: &str) -> &'static dyn Strategy {
    match resource {
        "leases" => &Leases,
        _ => &FactsOnly(&Facts::SPEC),
    }
}

const LEASES: Facts = Facts { create_on_update: true, unconditional_update: false, ..Facts::DATA };

struct Leases;

impl Strategy for Leases {
    fn facts(&self) -> &'static Facts {
        &LEASES
    }

    fn default(&self, object: &mut Value) {
        // Coordinated leader election is off by default.
        let drop = |spec: &mut Map<String, Value>| {
            spec.remove("strategy");
            spec.remove("preferredHolder");
        };
        object_mut(object, "spec").map(drop);
    }

    fn validate(&self, object: &Value) -> Vec<FieldError> {
        let mut errors = Vec::new();
        if let Some(seconds) = int_at(object, "/spec/leaseDurationSeconds").filter(|seconds| *seconds <= 0) {
            let detail = "must be greater than 0";
            errors.push(FieldError::invalid("spec.leaseDurationSeconds", seconds, detail));
        }
        if let Some(count) = int_at(object, "/spec/leaseTransitions").filter(|count| *count < 0) {
            let detail = "must be greater than or equal to 0";
            errors.push(FieldError::invalid("spec.leaseTransitions", count, detail));
        }
        errors
    }
}
