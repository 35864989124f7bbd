//! A value in an object together with its path, for validation.
//!
//! Paths cost more than the checks, so [`validate`] checks a value without paths first. Only a value with an
//! error is checked again with paths.

use serde_json::{Map, Value};
use windlass_schema::FieldError;

use crate::wire::Quantity;

/// The errors of an object so far.
pub(super) type Errors = Vec<FieldError>;

/// Returns the errors, or warnings, that `check` finds in the value at `path`.
pub(super) fn validate<'a, T>(
    path: &str,
    value: &'a Value,
    check: impl Fn(&Place<'a>, &mut Vec<T>),
) -> Vec<T> {
    let mut found = Vec::new();
    check(&Place { value, path: None }, &mut found);
    if !found.is_empty() {
        found.clear();
        check(&Place { value, path: Some(path.to_owned()) }, &mut found);
    }
    found
}

/// A value in an object and its path. The value is null where the field is absent.
#[derive(Clone, Debug)]
pub(super) struct Place<'a> {
    value: &'a Value,
    path: Option<String>,
}

static ABSENT: Value = Value::Null;

impl<'a> Place<'a> {
    fn to(&self, value: Option<&'a Value>, path: impl FnOnce(&str) -> String) -> Self {
        Self { value: value.unwrap_or(&ABSENT), path: self.path.as_deref().map(path) }
    }

    /// Returns the field with this name.
    pub(super) fn at(&self, name: &str) -> Self {
        self.to(self.value.get(name), |path| join(path, name))
    }

    /// Returns the value at a JSON pointer without a leading slash, such as `securityContext/sysctls`.
    pub(super) fn below(&self, pointer: &str) -> Self {
        pointer.split('/').fold(self.clone(), |place, name| place.at(name))
    }

    /// Returns this value under another path: the path of the field `name`, for errors of kube-apiserver.
    pub(super) fn shown_at(&self, name: &str) -> Self {
        self.to(Some(self.value), |path| join(path, name))
    }

    /// Returns this value under the path of the field `name` of `parent`.
    pub(super) fn shown_under(&self, parent: &Self, name: &str) -> Self {
        let path = parent.path.as_deref().map(|path| join(path, name));
        Self { value: self.value, path }
    }

    /// Returns `other` with the path of this value.
    pub(super) fn with(&self, other: &'a Value) -> Self {
        Self { value: other, path: self.path.clone() }
    }

    /// Returns this value with the path of `other`.
    pub(super) fn at_path_of(&self, other: &Self) -> Self {
        Self { value: self.value, path: other.path.clone() }
    }

    /// Returns the elements of a list, none for other values.
    pub(super) fn items(&self) -> impl Iterator<Item = Self> + use<'a> {
        let path = self.path.clone();
        let items = self.value.as_array().map_or(&[][..], Vec::as_slice).iter().enumerate();
        items.map(move |(index, value)| Self {
            value,
            path: path.as_ref().map(|path| format!("{path}[{index}]")),
        })
    }

    /// Returns the entries of a map, none for other values. The path of an entry ends in its key in brackets.
    pub(super) fn entries(&self) -> impl Iterator<Item = (&'a str, Self)> + use<'a> {
        let path = self.path.clone();
        self.value.as_object().into_iter().flatten().map(move |(key, value)| {
            (key.as_str(), Self { value, path: path.as_ref().map(|path| format!("{path}[{key}]")) })
        })
    }

    /// Returns the entry of a map with this key.
    pub(super) fn key(&self, key: &str) -> Self {
        self.to(self.value.get(key), |path| format!("{path}[{key}]"))
    }

    /// Returns the element of a list.
    pub(super) fn index(&self, index: usize) -> Self {
        self.to(self.value.get(index), |path| format!("{path}[{index}]"))
    }

    /// Returns the value itself.
    pub(super) fn value(&self) -> &'a Value {
        self.value
    }

    /// Returns whether the field is there and not null.
    pub(super) fn is_set(&self) -> bool {
        !self.value.is_null()
    }

    /// Returns whether the field is absent, null, or an empty text, list or map.
    pub(super) fn is_empty(&self) -> bool {
        match self.value {
            Value::Null => true,
            Value::String(text) => text.is_empty(),
            Value::Array(items) => items.is_empty(),
            Value::Object(fields) => fields.is_empty(),
            Value::Bool(_) | Value::Number(_) => false,
        }
    }

    /// Returns the text, empty for other values.
    pub(super) fn text(&self) -> &'a str {
        self.value.as_str().unwrap_or_default()
    }

    /// Returns the number, zero for other values.
    pub(super) fn int(&self) -> i64 {
        self.value.as_i64().unwrap_or_default()
    }

    /// Returns whether the value is `true`.
    pub(super) fn flag(&self) -> bool {
        self.value.as_bool().unwrap_or_default()
    }

    /// Returns the number of elements of a list.
    pub(super) fn len(&self) -> usize {
        self.value.as_array().map_or(0, Vec::len)
    }

    /// Returns the map.
    pub(super) fn map(&self) -> Option<&'a Map<String, Value>> {
        self.value.as_object()
    }

    /// Returns the quantity, if the value is one.
    pub(super) fn quantity(&self) -> Option<Quantity> {
        match self.value {
            Value::String(text) => text.parse().ok(),
            Value::Number(number) => number.to_string().parse().ok(),
            _ => None,
        }
    }

    /// Returns errors with empty paths as errors of this value.
    pub(super) fn moved(&self, errors: Vec<FieldError>) -> impl Iterator<Item = FieldError> {
        errors.into_iter().map(|mut error| {
            error.field = self.path().to_owned();
            error
        })
    }

    /// Returns the path.
    pub(super) fn path(&self) -> &str {
        self.path.as_deref().unwrap_or_default()
    }

    /// Returns an error that shows the value.
    pub(super) fn invalid(&self, detail: impl Into<String>) -> FieldError {
        FieldError::invalid(self.path(), self.value.clone(), detail)
    }

    /// Returns an error that shows no value.
    pub(super) fn invalid_omitted(&self, detail: impl Into<String>) -> FieldError {
        FieldError { bad_value: None, ..self.invalid(detail) }
    }

    /// Returns a warning about the value.
    pub(super) fn warning(&self, text: impl std::fmt::Display) -> String {
        format!("{}: {text}", self.path())
    }

    /// Returns an error that shows another value.
    pub(super) fn invalid_as(&self, value: impl Into<Value>, detail: impl Into<String>) -> FieldError {
        FieldError::invalid(self.path(), value, detail)
    }

    /// Returns an error about a required value.
    pub(super) fn required(&self, detail: impl Into<String>) -> FieldError {
        FieldError::required(self.path(), detail)
    }

    /// Returns an error about a value that is not permitted here.
    pub(super) fn forbidden(&self, detail: impl Into<String>) -> FieldError {
        FieldError::forbidden(self.path(), detail)
    }

    /// Returns an error about a value that occurs twice.
    pub(super) fn duplicate(&self) -> FieldError {
        FieldError::duplicate(self.path(), self.value.clone())
    }

    /// Returns an error about a different value that occurs twice.
    pub(super) fn duplicate_as(&self, value: impl Into<Value>) -> FieldError {
        FieldError::duplicate(self.path(), value)
    }

    /// Returns an error about a reference to something absent.
    pub(super) fn not_found(&self) -> FieldError {
        FieldError::not_found(self.path(), self.text())
    }

    /// Returns an error about a reference to a missing object, with a different text.
    pub(super) fn not_found_as(&self, value: &str) -> FieldError {
        FieldError::not_found(self.path(), value)
    }

    /// Returns an error about a text that is not one of `known`.
    pub(super) fn unsupported(&self, known: &[&str]) -> FieldError {
        FieldError::not_supported(self.path(), self.text(), known)
    }

    /// Returns an error about a different text that is not in `known`.
    pub(super) fn unsupported_as(&self, value: impl Into<Value>, known: &[&str]) -> FieldError {
        FieldError::not_supported(self.path(), value, known)
    }

    /// Returns an error about a list that is too long.
    pub(super) fn too_many(&self, max: usize) -> FieldError {
        FieldError::too_many(self.path(), self.len(), max)
    }

    /// Returns an error about a text that is too long.
    pub(super) fn too_long(&self, max: usize) -> FieldError {
        FieldError::too_long(self.path(), max)
    }

    /// Returns an error of the server itself.
    pub(super) fn internal(&self, detail: impl Into<String>) -> FieldError {
        FieldError::internal(self.path(), detail)
    }

    /// Reports an empty text, and returns whether it is empty.
    pub(super) fn require(&self, errors: &mut Errors) -> bool {
        let is_empty = self.text().is_empty();
        if is_empty {
            errors.push(self.required(""));
        }
        is_empty
    }

    /// Reports each problem of a text.
    pub(super) fn check(&self, check: impl FnOnce(&str) -> Vec<String>, errors: &mut Errors) {
        errors.extend(check(self.text()).into_iter().map(|problem| self.invalid_as(self.text(), problem)));
    }

    /// Reports an empty text, or each problem of a non-empty text.
    pub(super) fn require_check(&self, check: impl FnOnce(&str) -> Vec<String>, errors: &mut Errors) {
        if !self.require(errors) {
            self.check(check, errors);
        }
    }

    /// Reports each problem of a text that is not empty.
    pub(super) fn check_if_any(&self, check: impl FnOnce(&str) -> Vec<String>, errors: &mut Errors) {
        if !self.text().is_empty() {
            self.check(check, errors);
        }
    }

    /// Reports a text that is not one of `known`. An absent field has no error.
    pub(super) fn one_of(&self, known: &[&str], errors: &mut Errors) {
        if self.is_set() && !known.contains(&self.text()) {
            errors.push(self.unsupported(known));
        }
    }

    /// Reports an empty text as required, and any other text that is not in `known`.
    pub(super) fn require_one_of(&self, known: &[&str], errors: &mut Errors) {
        if !self.require(errors) && !known.contains(&self.text()) {
            errors.push(self.unsupported(known));
        }
    }

    /// Reports a number below zero.
    pub(super) fn not_negative(&self, errors: &mut Errors) {
        if self.int() < 0 {
            errors.push(self.invalid("must be greater than or equal to 0"));
        }
    }

    /// Reports a number that is not above zero.
    pub(super) fn positive(&self, errors: &mut Errors) {
        if self.int() <= 0 {
            errors.push(self.invalid_as(self.int(), "must be greater than zero"));
        }
    }

    /// Reports a number outside a range. An absent field has no error.
    pub(super) fn within(&self, least: i64, most: i64, errors: &mut Errors) {
        if self.is_set() && !(least..=most).contains(&self.int()) {
            errors.push(self.invalid(format!("must be between {least} and {most}, inclusive")));
        }
    }
}

fn join(path: &str, name: &str) -> String {
    if path.is_empty() { name.to_owned() } else { format!("{path}.{name}") }
}
