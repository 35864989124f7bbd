//! Label selectors.

use serde_json::Value;
use windlass_schema::FieldError;
use windlass_wire::names;

use crate::checks::validate_labels;
use crate::field::{self, Errors, Field};

/// Validates a label selector at `path`.
pub(crate) fn validate_label_selector(selector: &Value, path: &str) -> Vec<FieldError> {
    field::validate(path, selector, label_selector)
}

/// Validates a label selector.
pub(crate) fn label_selector(selector: &Field<'_>, errors: &mut Errors) {
    let labels = selector.at("matchLabels");
    if let Some(map) = labels.map() {
        errors.extend(labels.moved(validate_labels(map, "")));
    }
    for expression in selector.at("matchExpressions").items() {
        let (operator, values) = (expression.at("operator"), expression.at("values"));
        match operator.text() {
            "In" | "NotIn" => {
                if values.is_empty() {
                    errors.push(values.required("must be specified when `operator` is 'In' or 'NotIn'"));
                }
            }
            "Exists" | "DoesNotExist" => {
                if !values.is_empty() {
                    let detail = "may not be specified when `operator` is 'Exists' or 'DoesNotExist'";
                    errors.push(values.forbidden(detail));
                }
            }
            other => errors.push(operator.invalid_as(other, "not a valid selector operator")),
        }
        expression.at("key").check(names::label_key, errors);
        for value in values.items() {
            value.check(names::label_value, errors);
        }
    }
}
