//! Validation that many kinds share.

use serde_json::Value;
use windlass_schema::FieldError;

use super::fields::int_at;

use crate::wire::names;
pub(super) use crate::wire::names::{validate_annotations, validate_labels};

/// Returns an error for each problem of the name at a field.
pub(super) fn invalid_names(
    field: &str,
    value: &str,
    problems: Vec<String>,
) -> impl Iterator<Item = FieldError> {
    problems.into_iter().map(move |text| FieldError::invalid(field, value, text))
}

/// Returns an error for a value that is neither empty nor one of `known`.
pub(super) fn enumerated(field: &str, value: &str, known: &[&str]) -> Option<FieldError> {
    (!value.is_empty() && !known.contains(&value)).then(|| FieldError::not_supported(field, value, known))
}

/// Validates that numbers in a spec are not negative.
pub(super) fn validate_not_negative(spec: &Value, fields: &[&str], errors: &mut Vec<FieldError>) {
    for field in fields {
        let value = int_at(spec, &format!("/{field}")).unwrap_or_default();
        if value < 0 {
            let detail = "must be greater than or equal to 0";
            errors.push(FieldError::invalid(format!("spec.{field}"), value, detail));
        }
    }
}

/// Returns an error if the field at `pointer` differs from the old one.
pub(super) fn immutable(object: &Value, old: &Value, pointer: &str) -> Vec<FieldError> {
    let (new, before) = (object.pointer(pointer), old.pointer(pointer));
    if new == before {
        return Vec::new();
    }
    let field = pointer.trim_start_matches('/').replace('/', ".");
    vec![FieldError::invalid(field, new.cloned().unwrap_or(Value::Null), "field is immutable")]
}

/// Validates a path that begins with a domain, such as `acme.io/foo`.
pub(super) fn validate_domain_path(field: &str, path: &str) -> Vec<FieldError> {
    if path.is_empty() {
        return vec![FieldError::required(field, "")];
    }
    match path.split_once('/') {
        Some((domain, rest)) if !domain.is_empty() && !rest.is_empty() => {
            invalid_names(field, domain, names::dns_1123_subdomain(domain)).collect()
        }
        _ => {
            let detail = "must be a domain-prefixed path (such as \"acme.io/foo\")";
            vec![FieldError::invalid(field, path, detail)]
        }
    }
}
