//! Flow schemas and priority levels.

mod flow_schema;
mod priority_level_configuration;

use serde_json::Value;

use crate::field::{Errors, Field};
use crate::json::default_number;
use crate::kind::{Kind, KindConfig, Writes};

/// The kinds by resource.
pub(crate) static KINDS: &[(&str, &Kind)] = &[
    ("flowschemas", &flow_schema::KIND),
    ("prioritylevelconfigurations", &priority_level_configuration::KIND),
];

const CONFIG: KindConfig = KindConfig { writes: Writes::STATUS_ONLY, ..KindConfig::SPEC };

/// Sets the defaults of numbers that are absent or 0.
fn zero_is_absent(object: &mut Value, place: &str, numbers: &[(&str, i64)]) {
    if let Some(fields) = object.pointer_mut(place).and_then(Value::as_object_mut) {
        for (field, number) in numbers {
            default_number(fields, field, *number);
        }
    }
}

/// Validates the conditions of a status.
fn conditions(conditions: &Field<'_>, errors: &mut Errors) {
    for condition in conditions.items() {
        let kind = condition.at("type");
        if kind.text().is_empty() {
            errors.push(kind.required(""));
        }
    }
}
