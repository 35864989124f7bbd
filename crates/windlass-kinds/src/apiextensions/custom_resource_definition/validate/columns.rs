//! `additionalPrinterColumns`.

use serde_json::Value;
use windlass_schema::FieldError;

use super::text;
use super::versions::simple_path;

const TYPES: &[&str] = &["boolean", "date", "integer", "number", "string"];
const FORMATS: &[&str] = &["byte", "date", "date-time", "double", "float", "int32", "int64", "password"];

/// Returns all errors of the columns of a version.
pub(super) fn columns(columns: &Value, path: &str) -> Vec<FieldError> {
    let columns = columns.as_array().into_iter().flatten().enumerate();
    columns.flat_map(|(index, column)| one(column, &format!("{path}[{index}]"))).collect()
}

fn one(column: &Value, path: &str) -> Vec<FieldError> {
    let mut errors = Vec::new();
    if text(column, &["name"]).is_empty() {
        errors.push(FieldError::required(format!("{path}.name"), ""));
    }
    let must_be = |choices: &[&str]| format!("must be one of {}", choices.join(","));
    match text(column, &["type"]) {
        "" => errors.push(FieldError::required(format!("{path}.type"), must_be(TYPES))),
        kind if TYPES.contains(&kind) => {}
        kind => errors.push(FieldError::invalid(format!("{path}.type"), kind, must_be(TYPES))),
    }
    match text(column, &["format"]) {
        "" => {}
        format if FORMATS.contains(&format) => {}
        format => errors.push(FieldError::invalid(format!("{path}.format"), format, must_be(FORMATS))),
    }
    match text(column, &["jsonPath"]) {
        "" => errors.push(FieldError::required(format!("{path}.JSONPath"), "")),
        given => errors.extend(simple_path(&format!("{path}.JSONPath"), given)),
    }
    errors
}
