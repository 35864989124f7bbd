//! Embedded resources: their `apiVersion` and `kind`, and where they are.

use serde_json::{Map, Value};

use crate::FieldError;
use crate::error_list::ErrorList;
use crate::graph::{NodeRef, Schema};
use crate::path::Path;

pub(super) fn check(schema: NodeRef<'_>, object: &Value) -> Vec<FieldError> {
    let mut errors = ErrorList::new();
    let mut check = |resource: &Value, path: Path<'_>| {
        resource.as_object().into_iter().for_each(|members| type_meta(members, path, &mut errors));
    };
    visit(schema, object, Path::Root(""), &mut check, false);
    errors.into_vec()
}

/// Calls `found` with each embedded resource of an object and the path of the resource.
pub fn for_each_embedded_resource(schema: &Schema, object: &Value, mut found: impl FnMut(&Value, String)) {
    let mut found = |resource: &Value, path: Path<'_>| found(resource, path.into());
    visit(schema.root(), object, Path::Root(""), &mut found, false);
}

fn visit(
    schema: NodeRef<'_>,
    value: &Value,
    path: Path<'_>,
    found: &mut impl FnMut(&Value, Path<'_>),
    inside: bool,
) {
    match value {
        Value::Object(members) => {
            if inside && schema.is_embedded_resource() {
                found(value, path);
            }
            for (name, value) in members {
                if let Some(property) = schema.property(name) {
                    visit(property, value, path.child(name), found, true);
                } else if let Some(additional) = schema.additional() {
                    visit(additional, value, path.key(name), found, true);
                }
            }
        }
        Value::Array(items) => {
            let Some(inner) = schema.items() else { return };
            for (index, item) in items.iter().enumerate() {
                visit(inner, item, path.index(index), found, true);
            }
        }
        _ => {}
    }
}

fn type_meta(members: &Map<String, Value>, path: Path<'_>, errors: &mut ErrorList) {
    for name in ["apiVersion", "kind"] {
        let field = path.child(name);
        match members.get(name) {
            None => errors.push(FieldError::required(field, "")),
            Some(Value::String(text)) if text.is_empty() => {
                errors.push(FieldError::invalid(field, "", "must not be empty"));
            }
            Some(Value::String(text)) => {
                if let Some(detail) = malformed(name, text) {
                    errors.push(FieldError::invalid(field, text.as_str(), detail));
                }
            }
            Some(other) => errors.push(FieldError::invalid(field, other.clone(), "must be a string")),
        }
    }
}

fn malformed(name: &str, text: &str) -> Option<String> {
    if name == "apiVersion" {
        let slashes = text.matches('/').count();
        return (slashes > 1).then(|| format!("unexpected GroupVersion string: {text}"));
    }
    let label = text.to_ascii_lowercase();
    let inner = |byte: u8| byte.is_ascii_lowercase() || byte.is_ascii_digit() || byte == b'-';
    let fits = label.len() <= 63
        && label.bytes().all(inner)
        && label.starts_with(|first: char| first.is_ascii_lowercase())
        && !label.ends_with('-');
    (!fits).then(|| {
        "may have mixed case, but should otherwise match: a DNS-1035 label must consist of lower case \
         alphanumeric characters or '-', start with an alphabetic character, and end with an alphanumeric \
         character (e.g. 'my-name',  or 'abc-123', regex used for validation is \
         '[a-z]([-a-z0-9]*[a-z0-9])?')"
            .to_owned()
    })
}
