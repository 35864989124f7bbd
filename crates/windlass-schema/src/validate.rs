//! Validates custom resources against schemas, with the messages of kube-apiserver.

mod embedded;
mod junctor;
mod list;
mod number;
mod old_items;
mod result;

use std::collections::HashSet;
use std::fmt;

use serde_json::Value;
use windlass_text::OutOfSteps;

pub use embedded::for_each_embedded_resource;

use crate::error_list::ErrorBudget;
use crate::go::go_json;
use crate::graph::{Additional, NodeRef, RareRules, Schema, Type};
use crate::{FieldError, path};
use old_items::OldItems;
use result::ValidationResult;

/// Returns whether the server checks a format for values of a JSON type. An empty type stands for `string`.
///
/// ```
/// assert!(windlass_schema::knows_format("integer", "int32") && !windlass_schema::knows_format("string", "int32"));
/// ```
pub fn knows_format(kind: &str, name: &str) -> bool {
    match kind {
        "integer" => matches!(name, "int32" | "int64"),
        "number" => matches!(name, "float" | "double"),
        "string" | "" => windlass_text::knows_format(name),
        _ => false,
    }
}

/// The field of an error without a particular field, in kube-apiserver's form.
pub(crate) const NO_FIELD: &str = "<nil>";

/// Validates a custom resource. Apply [`default`](crate::default()) and [`prune`](crate::prune()) first.
///
/// The server validates the metadata of the object, and of the embedded resources that
/// [`for_each_embedded_resource`] finds.
pub fn validate(schema: &Schema, object: &Value) -> Vec<FieldError> {
    let mut errors = check(schema.root(), object, None);
    errors.extend(embedded::check(schema.root(), object));
    errors.extend(list::check(schema.root(), object));
    errors
}

/// Validates the parts of a custom resource that are checked even if the kind or version is wrong: embedded
/// resources and the keys of lists.
pub fn validate_structure(schema: &Schema, object: &Value) -> Vec<FieldError> {
    let mut errors = embedded::check(schema.root(), object);
    errors.extend(list::check(schema.root(), object));
    errors
}

/// Validates an update. Values that were invalid before and have not changed are accepted ("ratcheting").
pub fn validate_update(schema: &Schema, object: &Value, old: &Value) -> Vec<FieldError> {
    let mut errors = check(schema.root(), object, Some(old));
    errors.extend(embedded::check(schema.root(), object));
    if list::check(schema.root(), old).is_empty() {
        errors.extend(list::check(schema.root(), object));
    }
    errors
}

/// Validates an update of `status`. Only `status` is checked, and paths in messages are relative to `status`.
pub fn validate_status(schema: &Schema, object: &Value, old: &Value) -> Vec<FieldError> {
    let status = schema.root().property("status");
    let (new, before) = (object.get("status"), old.get("status"));
    let mut errors = match (status, new) {
        (Some(status), Some(new)) => check(status, new, before),
        _ => Vec::new(),
    };
    for error in &mut errors {
        error.field =
            if error.field == NO_FIELD { "status".to_owned() } else { format!("status.{}", error.field) };
    }
    errors.extend(embedded::check(schema.root(), object));
    if list::check(schema.root(), old).is_empty() {
        errors.extend(list::check(schema.root(), object));
    }
    errors
}

/// Checks the value validations only; paths start at `""`.
pub(crate) fn check(schema: NodeRef<'_>, value: &Value, old: Option<&Value>) -> Vec<FieldError> {
    check_in_steps(schema, value, old, &mut Steps::default())
}

/// Works like [`check`], within the steps that are left.
pub(crate) fn check_in_steps(
    schema: NodeRef<'_>,
    value: &Value,
    old: Option<&Value>,
    steps: &mut Steps,
) -> Vec<FieldError> {
    let mut validator = Validator { path: String::new(), budget: ErrorBudget::new(), steps, is_quiet: false };
    let mut result = validator.visit(schema, value, old);
    if validator.is_exhausted() {
        result.add(Some(too_large()));
    }
    result.errors
}

fn too_large() -> FieldError {
    FieldError::forbidden(NO_FIELD, "the object is too large to be checked with such a large schema")
}

/// The work that the validation of an object may still take.
#[derive(Debug)]
pub(crate) struct Steps {
    /// The values that may still be compared with a schema.
    pub(crate) values: usize,
    /// The steps that regular expressions may still take.
    pub(crate) patterns: usize,
}

impl Default for Steps {
    fn default() -> Self {
        Self { values: MAX_STEPS, patterns: MAX_PATTERN_STEPS }
    }
}

/// The limit of comparisons of a value with a schema, for one object. A list of a million elements with a
/// schema of a thousand branches would keep the server busy for minutes.
const MAX_STEPS: usize = 5_000_000;

/// The limit of the steps of regular expressions, for one object: about half a second. Go's expressions have no limit, and may keep a
/// server busy for hours.
const MAX_PATTERN_STEPS: usize = 50_000_000;

/// The length of a text that counts as another step, in bytes.
const STEP_LENGTH: usize = 64;

/// A walk over an object.
struct Validator<'s> {
    /// The current position in kube-apiserver's form, up to [`path::MAX_LENGTH`].
    path: String,
    budget: ErrorBudget,
    steps: &'s mut Steps,
    /// True while only the outcome of checks counts: an error takes longer than most checks.
    is_quiet: bool,
}

impl Validator<'_> {
    /// Checks `value`. Errors are dropped if the value is unchanged.
    fn visit(&mut self, schema: NodeRef<'_>, value: &Value, old: Option<&Value>) -> ValidationResult {
        let left = self.budget.left();
        let mut result = self.examine(schema, value, old);
        // If a part of the value differs from the old value, the value differs, too.
        if result.is_invalid && !result.differs && old.is_some() {
            result.differs = old != Some(value);
            if !result.differs {
                result.errors.clear();
                result.is_invalid = false;
                self.budget.rewind(left, &[]);
            }
        }
        result
    }

    /// Returns the error that `make` creates, or a short error if there are too many errors; `None` if errors do not count.
    fn error(&self, make: impl FnOnce() -> FieldError) -> Option<FieldError> {
        (!self.is_quiet).then(|| self.budget.error(make))
    }

    /// Returns a result with one failed check.
    fn failed(&self, make: impl FnOnce() -> FieldError) -> ValidationResult {
        ValidationResult::failed(self.error(make))
    }

    fn examine(&mut self, schema: NodeRef<'_>, value: &Value, old: Option<&Value>) -> ValidationResult {
        let mut result = ValidationResult::default();
        let length = value.as_str().map_or(0, str::len);
        self.steps.values = self.steps.values.saturating_sub(1 + length / STEP_LENGTH);
        if self.is_exhausted() {
            return ValidationResult::failed(Some(too_large()));
        }
        let rules = schema.node.rules.more.as_deref();
        if value.is_null() {
            result.merge(self.types(schema, value));
            result.merge(self.enumeration(rules, value));
            return result;
        }
        if schema.node.kind != Type::Any || schema.is_int_or_string() || schema.format().is_some() {
            result.merge_counted(self.types(schema, value));
        }
        result.merge_counted(self.junctors(schema, value, old));
        match value {
            Value::String(text) => {
                result.merge_counted(self.text(rules, text));
                if let Some(format) = schema.format().filter(|name| windlass_text::knows_format(name)) {
                    result.merge_counted(self.format(format, text));
                }
            }
            Value::Number(number) => result.merge_counted(number::check(self, schema, number)),
            Value::Array(items) => result.merge_counted(self.items(schema, items, old)),
            _ => {}
        }
        result.merge_counted(self.enumeration(rules, value));
        if let Value::Object(members) = value {
            result.merge_counted(self.members(schema, members, old));
        }
        result.matches += 1;
        result
    }

    /// Returns whether no more steps are left: then the object is invalid, and loops end.
    fn is_exhausted(&self) -> bool {
        self.steps.values == 0
    }

    /// Returns the field of an error at the current position.
    fn field(&self) -> &str {
        match self.path.trim_start_matches('.') {
            "" => NO_FIELD,
            path => path,
        }
    }

    /// Returns a message in the format of Go's validation library: `spec.a in body <text>`.
    fn sentence(&self, text: &str) -> String {
        format!("{} in body {text}", self.path)
    }

    fn types(&self, schema: NodeRef<'_>, value: &Value) -> ValidationResult {
        let wanted = wanted_types(schema);
        let wrong = |wanted: &str, given: &str| {
            self.failed(|| {
                let detail = self.sentence(&format!("must be of type {wanted}: {given:?}"));
                FieldError::type_invalid(self.field(), given, detail)
            })
        };
        if value.is_null() {
            return match wanted {
                [] => ValidationResult::matched(),
                _ if schema.is_nullable() => ValidationResult::matched(),
                _ => wrong(&wanted.join(","), "null"),
            };
        }
        let (given, given_format) = type_of(value);
        let fits = wanted.contains(&given)
            || given == "number" && wanted.contains(&"integer") && number::is_integral(value)
            || given == "integer" && wanted.contains(&"number");
        let textual = matches!(value, Value::String(_) | Value::Array(_));
        let numeric = wanted.contains(&"number") || wanted.contains(&"integer");
        match schema.format() {
            Some(format) if !textual && !fits && given_format != format => wrong(format, given_format),
            Some(_) if textual && !numeric => ValidationResult::matched(),
            _ if fits => ValidationResult::matched(),
            _ => wrong(&wanted.join(","), given),
        }
    }

    fn text(&mut self, rules: Option<&RareRules>, text: &str) -> ValidationResult {
        let Some(rules) = rules else { return ValidationResult::default() };
        let length = || text.chars().count() as i64;
        if let Some(max) = rules.max_length.filter(|max| length() > *max) {
            return self.failed(|| FieldError::too_long(self.field(), max.max(0) as usize));
        }
        let min_length = rules.min_length.filter(|min| length() < *min);
        let is_match = rules
            .pattern
            .as_ref()
            .filter(|_| min_length.is_none())
            .map_or(Ok(true), |pattern| pattern.is_match_within(text, &mut self.steps.patterns));
        let invalid = |detail: fmt::Arguments<'_>| {
            self.failed(|| FieldError::invalid(self.field(), text, self.sentence(&detail.to_string())))
        };
        if let Some(min) = min_length {
            return invalid(format_args!("should be at least {min} chars long"));
        }
        match (is_match, &rules.pattern) {
            (Ok(false), Some(pattern)) => invalid(format_args!("should match '{}'", pattern.source())),
            (Err(OutOfSteps), _) => {
                self.steps.values = 0;
                ValidationResult::failed(Some(too_large()))
            }
            _ => ValidationResult::default(),
        }
    }

    fn format(&self, format: &str, text: &str) -> ValidationResult {
        if windlass_text::matches_format(format, text) {
            return ValidationResult::default();
        }
        self.failed(|| {
            let quoted = crate::go_quote(text);
            let detail = self.sentence(&format!("must be of type {format}: {quoted}"));
            FieldError::type_invalid(self.field(), text, detail)
        })
    }

    fn enumeration(&self, rules: Option<&RareRules>, value: &Value) -> ValidationResult {
        let Some(rules) = rules.filter(|rules| !rules.enumeration.is_empty()) else {
            return ValidationResult::default();
        };
        if rules.enumeration.allows(value) {
            return ValidationResult::default();
        }
        self.failed(|| {
            let texts = rules.enumeration.values().iter();
            let texts: Vec<String> = texts
                .map(|allowed| allowed.as_str().map_or_else(|| go_json(allowed), str::to_owned))
                .collect();
            let texts: Vec<&str> = texts.iter().map(String::as_str).collect();
            FieldError::not_supported(self.field(), value.clone(), &texts)
        })
    }

    fn items(&mut self, schema: NodeRef<'_>, items: &[Value], old: Option<&Value>) -> ValidationResult {
        let mut result = ValidationResult::default();
        if let Some(inner) = schema.items() {
            let old_items = old.and_then(|old| OldItems::of(schema, old));
            for (index, item) in items.iter().enumerate() {
                let old_item = old_items.as_ref().and_then(|old| old.get(item));
                let length = self.push(&format!("[{index}]"));
                result.merge(self.visit(inner, item, old_item));
                self.path.truncate(length);
                if self.is_exhausted() {
                    break;
                }
            }
        }
        if let Some(rules) = schema.node.rules.more.as_deref() {
            let size = items.len() as i64;
            if let Some(min) = rules.min_items.filter(|min| size < *min) {
                result.add(self.error(|| {
                    let detail = self.sentence(&format!("should have at least {min} items"));
                    FieldError::invalid(self.field(), size, detail)
                }));
            }
            if let Some(max) = rules.max_items.filter(|max| size > *max) {
                result
                    .add(self.error(|| FieldError::too_many(self.field(), items.len(), max.max(0) as usize)));
            }
            let mut seen = HashSet::new();
            if rules.unique_items && !items.iter().all(|item| seen.insert(item.to_string())) {
                result.add(self.error(|| {
                    let detail = self.sentence("shouldn't contain duplicates");
                    FieldError::invalid(self.field(), "", detail)
                }));
            }
        }
        result.matches += 1;
        result
    }

    fn members(
        &mut self,
        schema: NodeRef<'_>,
        members: &serde_json::Map<String, Value>,
        old: Option<&Value>,
    ) -> ValidationResult {
        let mut result = self.member_counts(schema, members.len());
        for (name, value) in members {
            if schema.node.properties.contains_key(name.as_str()) {
                continue;
            }
            match &schema.node.additional {
                Some(Additional::Forbidden) => {
                    result.add(self.error(|| {
                        let detail = format!("{}.{name} in body is a forbidden property", self.path);
                        FieldError::invalid(self.field(), name.as_str(), detail)
                    }));
                }
                Some(Additional::Schema(edge)) => {
                    let length = self.push(".");
                    self.push(name);
                    let old = old.and_then(|old| old.get(name));
                    result.merge(self.visit(schema.follow(edge), value, old));
                    self.path.truncate(length);
                }
                _ => {}
            }
        }
        for (name, property) in schema.properties() {
            let Some(value) = members.get(name) else { continue };
            let at_root = self.path.is_empty();
            let of_type = at_root && matches!(name, "kind" | "apiVersion");
            let old = old.and_then(|old| old.get(name)).filter(|_| !of_type);
            let length = self.push(if at_root { "" } else { "." });
            self.push(name);
            result.merge(self.visit(property, value, old));
            self.path.truncate(length);
        }
        for name in schema.required().filter(|name| !members.contains_key(*name)) {
            result.add(self.error(|| {
                let field = format!("{}.{name}", self.path);
                FieldError::required(field.trim_matches('.'), "")
            }));
        }
        result
    }

    fn member_counts(&self, schema: NodeRef<'_>, size: usize) -> ValidationResult {
        let mut result = ValidationResult::default();
        let Some(rules) = schema.node.rules.more.as_deref() else { return result };
        if let Some(min) = rules.min_properties.filter(|min| (size as i64) < *min) {
            result.add(self.error(|| {
                let detail = self.sentence(&format!("should have at least {min} properties"));
                FieldError::invalid(self.field(), size, detail)
            }));
        }
        if let Some(max) = rules.max_properties.filter(|max| size as i64 > *max) {
            result.add(self.error(|| FieldError::too_many(self.field(), size, max.max(0) as usize)));
        }
        result
    }

    fn push(&mut self, text: &str) -> usize {
        let length = self.path.len();
        path::push(&mut self.path, text);
        length
    }
}

fn wanted_types(schema: NodeRef<'_>) -> &'static [&'static str] {
    if schema.is_int_or_string() {
        return &["integer", "string"];
    }
    match schema.kind() {
        Type::Any => &[],
        Type::Object => &["object"],
        Type::Array => &["array"],
        Type::String => &["string"],
        Type::Integer => &["integer"],
        Type::Number => &["number"],
        Type::Boolean => &["boolean"],
    }
}

/// Returns the type and format that kube-apiserver infers from a value.
fn type_of(value: &Value) -> (&'static str, &'static str) {
    match value {
        Value::Null => ("null", ""),
        Value::Bool(_) => ("boolean", ""),
        Value::Number(number) if number.is_i64() => ("integer", "int64"),
        Value::Number(_) => ("number", "float64"),
        Value::String(_) => ("string", ""),
        Value::Array(_) => ("array", ""),
        Value::Object(_) => ("object", ""),
    }
}

#[cfg(test)]
mod tests;
