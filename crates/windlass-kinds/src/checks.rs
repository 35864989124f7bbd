//! Validation that many kinds share.

use serde_json::Value;
use windlass_schema::FieldError;
use windlass_store::object_meta as meta;
use windlass_wire::names;
pub(super) use windlass_wire::names::{validate_annotations, validate_labels};

use crate::field::{Errors, Field, Warnings};
use crate::json::int_at;

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

/// Works like [`immutable`], for a field that kube-apiserver declares as immutable: the error shows null for every
/// value.
pub(super) fn declared_immutable(object: &Value, old: &Value, pointer: &str) -> Vec<FieldError> {
    let errors = immutable(object, old, pointer).into_iter();
    errors.map(|error| FieldError { bad_value: Some(Value::Null), ..error }).collect()
}

/// Validates a path that begins with a domain, such as `acme.io/foo`.
pub(super) fn domain_path(place: &Field<'_>, errors: &mut Errors) {
    const PATH: &str = "Invalid path (regex used for validation is '[A-Za-z0-9/\\-._~%!$&'()*+,;=:]+')";
    if place.require(errors) {
        return;
    }
    let Some((domain, path)) =
        place.text().split_once('/').filter(|(domain, path)| !domain.is_empty() && !path.is_empty())
    else {
        errors.push(place.invalid("must be a domain-prefixed path (such as \"acme.io/foo\")"));
        return;
    };
    let problems = names::dns_1123_subdomain(domain).into_iter();
    errors.extend(problems.map(|problem| place.invalid_as(domain, problem)));
    let is_safe = |byte: u8| byte.is_ascii_alphanumeric() || b"/-._~%!$&'()*+,;=:".contains(&byte);
    if !path.bytes().all(is_safe) {
        errors.push(place.invalid_as(path, PATH));
    }
}

/// Validates conditions of the common type.
pub(super) fn conditions(list: &Field<'_>, errors: &mut Errors) {
    let mut seen = std::collections::BTreeSet::new();
    for condition in list.items() {
        let (kind, status) = (condition.at("type"), condition.at("status"));
        if !seen.insert(kind.text()) {
            errors.push(condition.duplicate_as(kind.text()));
        }
        if kind.text().is_empty() {
            errors.push(kind.required("is required"));
        } else {
            kind.check(names::label_key, errors);
        }
        status.require_one_of(&["False", "True", "Unknown"], errors);
        let generation = condition.at("observedGeneration");
        if generation.int() < 0 {
            errors.push(generation.invalid("must be greater than or equal to zero"));
        }
        let time = condition.at("lastTransitionTime");
        if !time.is_set() {
            errors.push(time.required(""));
        }
        let (reason, message) = (condition.at("reason"), condition.at("message"));
        if reason.text().is_empty() {
            errors.push(reason.required(""));
        } else if !is_reason(reason.text()) {
            let detail = "a condition reason must start with alphabetic character, optionally followed by a string of alphanumeric characters or '_,:', and must end with an alphanumeric character or '_' (e.g. 'my_name',  or 'MY_NAME',  or 'MyName',  or 'ReasonA,ReasonB',  or 'ReasonA:ReasonB', regex used for validation is '[A-Za-z]([A-Za-z0-9_,:]*[A-Za-z0-9_])?')";
            errors.push(reason.invalid(detail));
        }
        if reason.text().len() > 1024 {
            errors.push(reason.too_long(1024));
        }
        if message.text().len() > 32 * 1024 {
            errors.push(message.too_long(32 * 1024));
        }
    }
}

fn is_reason(text: &str) -> bool {
    let bytes = text.as_bytes();
    bytes.first().is_some_and(u8::is_ascii_alphabetic)
        && bytes.last().is_some_and(|byte| byte.is_ascii_alphanumeric() || *byte == b'_')
        && bytes.iter().all(|byte| byte.is_ascii_alphanumeric() || b"_,:".contains(byte))
}

/// Checks a kind or name that becomes a segment of a path.
pub(super) fn path_segment(value: &str) -> Vec<String> {
    names::path_segment_name(value, false)
}

/// Returns the warning about a new object with a name that is not a label, although host names contain the
/// name.
pub(super) fn dns_label_warning(object: &Value, use_of_name: &str) -> Option<String> {
    let problems = names::dns_1123_label(meta::name(object));
    (!problems.is_empty()).then(|| {
        let problems = problems.join(" ");
        format!(
            "metadata.name: {use_of_name}, which can result in surprising behavior; a DNS label is recommended: [{problems}]"
        )
    })
}

/// Warns of a number of bytes that is not whole.
pub(crate) fn fraction_warning(amount: &Field<'_>, warnings: &mut Warnings) {
    if amount.quantity().is_some_and(|quantity| quantity.to_milli() % 1000 != 0) {
        let quoted = windlass_schema::go_quote(amount.text());
        warnings
            .push(amount.warning(format!("fractional byte value {quoted} is invalid, must be an integer")));
    }
}
