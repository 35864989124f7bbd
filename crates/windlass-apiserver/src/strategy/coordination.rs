//! Leases.

use serde_json::Value;
use windlass_schema::FieldError;

use super::fields::{int_at, object_mut};
use super::{Facts, FactsOnly, Strategy, StrategyContext};
use crate::wire::ApiError;

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

    fn prepare_create(&self, _cx: &StrategyContext<'_>, object: &mut Value) -> Result<(), ApiError> {
        drop_disabled(object);
        Ok(())
    }

    fn prepare_update(
        &self,
        _cx: &StrategyContext<'_>,
        object: &mut Value,
        _old: &Value,
    ) -> Result<(), ApiError> {
        drop_disabled(object);
        Ok(())
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

/// Drops the fields of coordinated leader election, which is off by default.
fn drop_disabled(object: &mut Value) {
    if let Some(spec) = object_mut(object, "spec") {
        spec.remove("strategy");
        spec.remove("preferredHolder");
    }
}
