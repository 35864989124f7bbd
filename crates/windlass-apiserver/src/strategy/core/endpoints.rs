//! Endpoints.

use serde_json::Value;
use windlass_schema::FieldError;

use crate::strategy::addresses::{validate_address, validate_endpoint_address};
use crate::strategy::checks::{enumerated, invalid_names};
use crate::strategy::fields::{int_at, list_at, text};
use crate::strategy::{Facts, Strategy, StrategyContext};
use crate::wire::names;

const ENDPOINTS: Facts = Facts { create_on_update: true, ..Facts::DATA };

pub(super) struct Endpoints;

impl Strategy for Endpoints {
    fn facts(&self) -> &'static Facts {
        &ENDPOINTS
    }

    fn validate(&self, object: &Value) -> Vec<FieldError> {
        let mut errors = Vec::new();
        for (index, subset) in list_at(object, "/subsets").iter().enumerate() {
            let path = format!("subsets[{index}]");
            if list_at(subset, "/addresses").is_empty() && list_at(subset, "/notReadyAddresses").is_empty() {
                let detail = "must specify `addresses` or `notReadyAddresses`";
                errors.push(FieldError::required(path.as_str(), detail));
            }
            for list in ["addresses", "notReadyAddresses"] {
                for (index, address) in list_at(subset, &format!("/{list}")).iter().enumerate() {
                    let (field, address) = (format!("{path}.{list}[{index}].ip"), text(address, "ip"));
                    errors.extend(validate_address(&field, address));
                    errors.extend(validate_endpoint_address(&field, address));
                }
            }
            let ports = list_at(subset, "/ports");
            for (index, port) in ports.iter().enumerate() {
                let path = format!("{path}.ports[{index}]");
                let name = text(port, "name");
                if name.is_empty() && ports.len() > 1 {
                    errors.push(FieldError::required(format!("{path}.name"), ""));
                } else if !name.is_empty() {
                    errors.extend(invalid_names(&format!("{path}.name"), name, names::dns_1123_label(name)));
                }
                let number = int_at(port, "/port").unwrap_or_default();
                let problems = names::port_number(number);
                errors.extend(
                    problems
                        .into_iter()
                        .map(|text| FieldError::invalid(format!("{path}.port"), number, text)),
                );
                errors.extend(enumerated(
                    &format!("{path}.protocol"),
                    text(port, "protocol"),
                    &["SCTP", "TCP", "UDP"],
                ));
            }
        }
        errors
    }

    fn warnings(&self, _cx: &StrategyContext<'_>, _object: &Value, _old: Option<&Value>) -> Vec<String> {
        vec!["v1 Endpoints is deprecated in v1.33+; use discovery.k8s.io/v1 EndpointSlice".to_owned()]
    }
}
