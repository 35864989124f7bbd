//! Flow schemas and priority levels.

mod flow_schema;
mod priority_level_configuration;

use std::collections::BTreeSet;

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
    let mut seen = BTreeSet::new();
    for condition in conditions.items() {
        let kind = condition.at("type");
        if !seen.insert(kind.text()) {
            errors.push(kind.duplicate_as(kind.text()));
        }
        if kind.text().is_empty() {
            errors.push(kind.required(""));
        }
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::KINDS;

    #[test]
    fn a_type_of_conditions_occurs_once() {
        let condition = |kind: &str| json!({"type": kind, "status": "True"});
        let object = json!({
            "metadata": {"name": "a"},
            "status": {"conditions": [condition("A"), condition("B"), condition("A"), {}, condition("A"), {}]},
        });
        for (resource, kind) in KINDS {
            let errors = kind.validate.validate_status(&object, &json!({}));
            let shown: Vec<String> = errors.iter().map(ToString::to_string).collect();
            let expected = [
                r#"status.conditions[2].type: Duplicate value: "A""#,
                "status.conditions[3].type: Required value",
                r#"status.conditions[4].type: Duplicate value: "A""#,
                r#"status.conditions[5].type: Duplicate value: """#,
                "status.conditions[5].type: Required value",
            ];
            assert_eq!(shown, expected, "{resource}");
            let all = kind.validate.validate(&object).into_iter().map(|error| error.to_string());
            let of_status: Vec<String> = all.filter(|error| error.starts_with("status.")).collect();
            assert_eq!(of_status, expected, "{resource}");
        }
    }
}
