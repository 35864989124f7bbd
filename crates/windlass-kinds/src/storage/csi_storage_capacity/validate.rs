//! Validation.

use serde_json::Value;
use windlass_schema::FieldError;
use windlass_wire::names;

use super::Capacities;
use crate::checks::immutable;
use crate::field;
use crate::kind::Validate;
use crate::selector::label_selector;

impl Validate for Capacities {
    fn validate(&self, object: &Value) -> Vec<FieldError> {
        field::validate("", object, |capacity, errors| {
            label_selector(&capacity.at("nodeTopology"), errors);
            let class = capacity.at("storageClassName");
            errors.extend(
                names::dns_1123_subdomain(class.text())
                    .into_iter()
                    .map(|problem| class.invalid_as(class.text(), problem)),
            );
            let amount = capacity.at("capacity");
            if let Some(quantity) = amount.quantity().filter(|quantity| quantity.signum() < 0) {
                errors.push(amount.invalid_as(quantity.to_string(), "must be greater than or equal to 0"));
            }
        })
    }

    fn validate_change(&self, object: &Value, old: &Value) -> Vec<FieldError> {
        ["/nodeTopology", "/storageClassName"]
            .into_iter()
            .flat_map(|pointer| immutable(object, old, pointer))
            .collect()
    }
}
