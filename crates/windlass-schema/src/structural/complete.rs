//! Completeness: every field that a junctor (`allOf`, `anyOf`, `oneOf`, `not`) constrains is specified outside of
//! junctors too.

use super::Props;
use crate::FieldError;
use crate::error_list::ErrorList;
use crate::path::Path;

pub(super) fn check(schema: Props<'_>, path: Path<'_>, errors: &mut ErrorList) {
    junctors(schema, schema, path, path, errors);
}

/// Checks the junctors of `values` (at `at`) against `structure` (at `path`).
fn junctors(values: Props<'_>, structure: Props<'_>, path: Path<'_>, at: Path<'_>, errors: &mut ErrorList) {
    if let Some(branch) = values.schema("not") {
        nested(branch, structure, path, at.child("not"), errors);
    }
    for name in ["allOf", "anyOf", "oneOf"] {
        let list = at.child(name);
        for (index, branch) in values.schemas(name).enumerate() {
            nested(branch, structure, path, list.index(index), errors);
        }
    }
}

fn nested(values: Props<'_>, structure: Props<'_>, path: Path<'_>, at: Path<'_>, errors: &mut ErrorList) {
    junctors(values, structure, path, at, errors);
    if let Some(items) = values.schema("items") {
        let (path, at) = (path.child("items"), at.child("items"));
        match structure.schema("items") {
            Some(structure) => nested(items, structure, path, at, errors),
            None => errors.push(missing(path, at)),
        }
    }
    let (properties, at_properties) = (path.child("properties"), at.child("properties"));
    for (name, property) in values.named("properties") {
        let (path, at) = (properties.key(name), at_properties.key(name));
        match structure.property(name) {
            Some(structure) => nested(property, structure, path, at, errors),
            None => errors.push(missing(path, at)),
        }
    }
}

fn missing(path: Path<'_>, at: Path<'_>) -> FieldError {
    FieldError::required(path, format!("because it is defined in {}", String::from(at)))
}
