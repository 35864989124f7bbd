//! Resource quotas.

use serde_json::{Value, json};
use windlass_schema::FieldError;

use super::quantity;
use crate::strategy::fields::map_at;
use crate::strategy::{Facts, Strategy, StrategyContext};
use crate::wire::ApiError;

const FACTS: Facts = Facts { returns_deleted_object: true, ..Facts::DATA };

const STANDARD: [&str; 19] = [
    "cpu",
    "memory",
    "ephemeral-storage",
    "requests.cpu",
    "requests.memory",
    "requests.storage",
    "requests.ephemeral-storage",
    "limits.cpu",
    "limits.memory",
    "limits.ephemeral-storage",
    "pods",
    "resourcequotas",
    "services",
    "replicationcontrollers",
    "secrets",
    "persistentvolumeclaims",
    "configmaps",
    "services.nodeports",
    "services.loadbalancers",
];

pub(super) struct ResourceQuotas;

impl Strategy for ResourceQuotas {
    fn facts(&self) -> &'static Facts {
        &FACTS
    }

    fn validate(&self, object: &Value) -> Vec<FieldError> {
        let mut errors = Vec::new();
        for (resource, value) in map_at(object, "/spec/hard").into_iter().flatten() {
            let field = format!("spec.hard[{resource}]");
            let standard =
                STANDARD.contains(&resource.as_str()) || resource.starts_with("requests.hugepages-");
            if !standard && !resource.contains('/') {
                let details = [
                    "must be a standard resource type or fully qualified",
                    "must be a standard resource for quota",
                ];
                errors.extend(
                    details.map(|detail| FieldError::invalid(field.as_str(), resource.as_str(), detail)),
                );
            }
            if quantity(value).is_some_and(|quantity| quantity.signum() < 0) {
                let detail = "must be greater than or equal to 0";
                errors.push(FieldError::invalid(field, value.clone(), detail));
            }
        }
        errors
    }

    fn prepare_create(&self, _cx: &StrategyContext<'_>, object: &mut Value) -> Result<(), ApiError> {
        object["status"] = json!({});
        Ok(())
    }
}
