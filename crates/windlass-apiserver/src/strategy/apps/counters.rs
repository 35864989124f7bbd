//! Validation of the counters in the status of a workload.

use serde_json::Value;
use windlass_schema::FieldError;

use crate::strategy::place::{self, Errors, Place};

/// The counters in the status of a kind of workload.
pub(in crate::strategy) struct Counters {
    /// The counters that are not negative.
    pub(in crate::strategy) fields: &'static [&'static str],
    /// The counters that are at most `replicas`.
    pub(in crate::strategy) below_total: &'static [&'static str],
    /// The error's name of `readyReplicas`, the upper limit of `availableReplicas`. Empty without this limit.
    pub(in crate::strategy) ready: &'static str,
    /// True if `collisionCount` only grows.
    pub(in crate::strategy) collisions: bool,
}

impl Counters {
    /// Validates a write of the status.
    pub(in crate::strategy) fn validate(&self, object: &Value, old: &Value) -> Vec<FieldError> {
        place::validate("", object, |object, errors| {
            self.check(&object.at("status"), &object.with(old).at("status"), errors);
        })
    }

    fn check(&self, status: &Place<'_>, old: &Place<'_>, errors: &mut Errors) {
        for name in self.fields {
            status.at(name).not_negative(errors);
        }
        let total = status.at("replicas").int();
        for counter in self.below_total.iter().map(|name| status.at(name)) {
            if counter.int() > total {
                errors.push(counter.invalid_as(counter.int(), "cannot be greater than status.replicas"));
            }
        }
        let available = status.at("availableReplicas");
        if !self.ready.is_empty() && available.int() > status.at("readyReplicas").int() {
            errors.push(
                available.invalid_as(available.int(), format!("cannot be greater than {}", self.ready)),
            );
        }
        let (collisions, before) = (status.at("collisionCount"), old.at("collisionCount"));
        if self.collisions && before.is_set() && (!collisions.is_set() || collisions.int() < before.int()) {
            errors.push(collisions.invalid_as(collisions.int(), "cannot be decremented"));
        }
    }
}
