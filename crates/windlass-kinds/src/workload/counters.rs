//! Validation of the counters in the status of a workload.

use serde_json::Value;
use windlass_schema::FieldError;

use crate::field::{self, Errors, Field};

/// The counters in the status of a kind of workload.
pub(crate) struct Counters {
    /// The counters that are not negative.
    pub(crate) fields: &'static [&'static str],
    /// The counters that are at most `replicas`.
    pub(crate) below_total: &'static [&'static str],
    /// The error's name of `readyReplicas`, the upper limit of `availableReplicas`. Empty without this limit.
    pub(crate) ready: &'static str,
    /// True if `collisionCount` only grows.
    pub(crate) collisions: bool,
}

/// The counters of replica sets and replication controllers.
pub(crate) const REPLICAS: Counters = Counters {
    fields: &[
        "replicas",
        "fullyLabeledReplicas",
        "readyReplicas",
        "availableReplicas",
        "observedGeneration",
        "terminatingReplicas",
    ],
    below_total: &["fullyLabeledReplicas", "readyReplicas", "availableReplicas"],
    ready: "readyReplicas",
    collisions: false,
};

impl Counters {
    /// Validates a write of the status.
    pub(crate) fn validate(&self, object: &Value, old: &Value) -> Vec<FieldError> {
        field::validate("", object, |object, errors| {
            self.check(&object.at("status"), &object.with(old).at("status"), errors);
        })
    }

    fn check(&self, status: &Field<'_>, old: &Field<'_>, errors: &mut Errors) {
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
