//! Endpoint slices.

use serde_json::Value;
use windlass_schema::FieldError;

use super::checks::{enumerated, immutable};
use super::fields::{list_at, text};
use super::{Facts, FactsOnly, Generation, Strategy};

pub(super) fn of(resource: &str) -> &'static dyn Strategy {
    match resource {
        "endpointslices" => &EndpointSlices,
        _ => &FactsOnly(&Facts::SPEC),
    }
}

const SLICES: Facts = Facts { generation: Generation::All, ..Facts::SPEC };

struct EndpointSlices;

impl Strategy for EndpointSlices {
    fn facts(&self) -> &'static Facts {
        &SLICES
    }

    fn validate(&self, object: &Value) -> Vec<FieldError> {
        let kind = text(object, "addressType");
        let mut errors = Vec::new();
        if kind.is_empty() {
            errors.push(FieldError::required("addressType", ""));
        }
        errors.extend(enumerated("addressType", kind, &["FQDN", "IPv4", "IPv6"]));
        for (index, endpoint) in list_at(object, "/endpoints").iter().enumerate() {
            if list_at(endpoint, "/addresses").is_empty() {
                let field = format!("endpoints[{index}].addresses");
                errors.push(FieldError::required(field, "must contain at least 1 address"));
            }
        }
        errors
    }

    fn validate_change(&self, object: &Value, old: &Value) -> Vec<FieldError> {
        immutable(object, old, "/addressType")
    }
}
