//! Checking a custom resource against its schema, in the words of the API server.

mod embedded;
mod format;
mod junctor;
mod list;
mod number;
mod verdict;

use serde_json::Value;

use crate::FieldError;
use crate::graph::{Additional, ListType, MoreRules, NodeRef, Schema, Type};
use crate::quote::go_json;
use verdict::Verdict;

pub(crate) use format::is_known as is_known_format;

/// Field of an error that concerns no field in particular, as the server prints it.
pub(crate) const NO_FIELD: &str = "<nil>";

/// Checks a whole custom resource. Defaults should be filled in and unknown fields pruned before.
///
/// `metadata` is not looked at but in embedded resources: what holds for every object is the server's matter.
pub fn validate(schema: &Schema, object: &Value) -> Vec<FieldError> {
    let mut errors = check(schema.root(), object, None);
    errors.extend(embedded::check(schema.root(), object));
    errors.extend(list::check(schema.root(), object));
    errors
}

/// Checks an update. Parts that were wrong already and have not changed are let pass ("ratcheting").
pub fn validate_update(schema: &Schema, object: &Value, old: &Value) -> Vec<FieldError> {
    let mut errors = check(schema.root(), object, Some(old));
    errors.extend(embedded::check(schema.root(), object));
    if list::check(schema.root(), old).is_empty() {
        errors.extend(list::check(schema.root(), object));
    }
    errors
}

/// Checks an update of `status` alone: only that part is held against its schema. Texts name fields below it.
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

/// Value validations only, with paths below `""`.
pub(crate) fn check(schema: NodeRef<'_>, value: &Value, old: Option<&Value>) -> Vec<FieldError> {
    Walk { path: String::new() }.visit(schema, value, old).errors
}

/// One walk over an object; `path` is where it stands, written as the server writes it.
struct Walk {
    path: String,
}

impl Walk {
    /// Checks `value`, and lets it pass after all if it is what it was before.
    fn visit(&mut self, schema: NodeRef<'_>, value: &Value, old: Option<&Value>) -> Verdict {
        let mut verdict = self.examine(schema, value, old);
        if !verdict.errors.is_empty() && old == Some(value) {
            verdict.errors.clear();
        }
        verdict
    }

    fn examine(&mut self, schema: NodeRef<'_>, value: &Value, old: Option<&Value>) -> Verdict {
        let mut verdict = Verdict::default();
        let rules = schema.node.rules.more.as_deref();
        if value.is_null() {
            verdict.merge(self.types(schema, value));
            verdict.merge(self.enumeration(rules, value));
            return verdict;
        }
        if schema.node.kind != Type::Any || schema.is_int_or_string() || schema.format().is_some() {
            verdict.merge_counted(self.types(schema, value));
        }
        verdict.merge_counted(self.junctors(schema, value, old));
        match value {
            Value::String(text) => {
                verdict.merge_counted(self.text(rules, text));
                if let Some(format) = schema.format().filter(|name| format::is_known(name)) {
                    verdict.merge_counted(self.format(format, text));
                }
            }
            Value::Number(number) => verdict.merge_counted(number::check(&self.path, schema, number)),
            Value::Array(items) => verdict.merge_counted(self.items(schema, items, old)),
            _ => {}
        }
        verdict.merge_counted(self.enumeration(rules, value));
        if let Value::Object(members) = value {
            verdict.merge_counted(self.members(schema, members, old));
        }
        verdict.matches += 1;
        verdict
    }

    /// The field of an error at this place.
    fn field(&self) -> &str {
        match self.path.trim_start_matches('.') {
            "" => NO_FIELD,
            path => path,
        }
    }

    /// A sentence of the validation library: `spec.a in body <text>`.
    fn sentence(&self, text: &str) -> String {
        format!("{} in body {text}", self.path)
    }

    fn types(&self, schema: NodeRef<'_>, value: &Value) -> Verdict {
        let wanted = wanted_types(schema);
        let wrong = |wanted: &str, given: &str| {
            let detail = self.sentence(&format!("must be of type {wanted}: {given:?}"));
            Verdict::of(FieldError::type_invalid(self.field(), given, detail))
        };
        if value.is_null() {
            return match wanted {
                [] => Verdict::matched(),
                _ if schema.is_nullable() => Verdict::matched(),
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
            Some(_) if textual && !numeric => Verdict::matched(),
            _ if fits => Verdict::matched(),
            _ => wrong(&wanted.join(","), given),
        }
    }

    fn text(&self, rules: Option<&MoreRules>, text: &str) -> Verdict {
        let Some(rules) = rules else { return Verdict::default() };
        let length = || text.chars().count() as i64;
        if let Some(max) = rules.max_length.filter(|max| length() > *max) {
            return Verdict::of(FieldError::too_long(self.field(), max.max(0) as usize));
        }
        let invalid =
            |detail: String| Verdict::of(FieldError::invalid(self.field(), text, self.sentence(&detail)));
        if let Some(min) = rules.min_length.filter(|min| length() < *min) {
            return invalid(format!("should be at least {min} chars long"));
        }
        match rules.pattern.as_ref().filter(|pattern| !pattern.is_match(text)) {
            Some(pattern) => invalid(format!("should match '{}'", pattern.source())),
            None => Verdict::default(),
        }
    }

    fn format(&self, format: &str, text: &str) -> Verdict {
        if format::matches(format, text) {
            return Verdict::default();
        }
        let quoted = crate::go_quote(text);
        let detail = self.sentence(&format!("must be of type {format}: {quoted}"));
        Verdict::of(FieldError::type_invalid(self.field(), text, detail))
    }

    fn enumeration(&self, rules: Option<&MoreRules>, value: &Value) -> Verdict {
        let Some(rules) = rules.filter(|rules| !rules.enumeration.is_empty()) else {
            return Verdict::default();
        };
        if rules.enumeration.iter().any(|allowed| is_enumerated(value, allowed)) {
            return Verdict::default();
        }
        let texts: Vec<String> = rules
            .enumeration
            .iter()
            .map(|allowed| allowed.as_str().map_or_else(|| go_json(allowed), str::to_owned))
            .collect();
        let texts: Vec<&str> = texts.iter().map(String::as_str).collect();
        Verdict::of(FieldError::not_supported(self.field(), value.clone(), &texts))
    }

    fn items(&mut self, schema: NodeRef<'_>, items: &[Value], old: Option<&Value>) -> Verdict {
        let mut verdict = Verdict::default();
        if let Some(inner) = schema.items() {
            for (index, item) in items.iter().enumerate() {
                let old_item = old.and_then(|old| correlate(schema, item, old));
                let length = self.push(&format!("[{index}]"));
                verdict.merge(self.visit(inner, item, old_item));
                self.path.truncate(length);
            }
        }
        if let Some(rules) = schema.node.rules.more.as_deref() {
            let size = items.len() as i64;
            if let Some(min) = rules.min_items.filter(|min| size < *min) {
                let detail = self.sentence(&format!("should have at least {min} items"));
                verdict.add(FieldError::invalid(self.field(), size, detail));
            }
            if let Some(max) = rules.max_items.filter(|max| size > *max) {
                verdict.add(FieldError::too_many(self.field(), items.len(), max.max(0) as usize));
            }
            if rules.unique_items && (1..items.len()).any(|index| items[..index].contains(&items[index])) {
                let detail = self.sentence("shouldn't contain duplicates");
                verdict.add(FieldError::invalid(self.field(), "", detail));
            }
        }
        verdict.matches += 1;
        verdict
    }

    fn members(
        &mut self,
        schema: NodeRef<'_>,
        members: &serde_json::Map<String, Value>,
        old: Option<&Value>,
    ) -> Verdict {
        let mut verdict = self.member_counts(schema, members.len());
        for (name, value) in members {
            if schema.node.properties.contains_key(name.as_str()) {
                continue;
            }
            match &schema.node.additional {
                Some(Additional::Forbidden) => {
                    let detail = format!("{}.{name} in body is a forbidden property", self.path);
                    verdict.add(FieldError::invalid(self.field(), name.as_str(), detail));
                }
                Some(Additional::Schema(edge)) => {
                    let length = self.push(&format!(".{name}"));
                    let old = old.and_then(|old| old.get(name));
                    verdict.merge(self.visit(schema.follow(edge), value, old));
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
            self.path.push_str(name);
            verdict.merge(self.visit(property, value, old));
            self.path.truncate(length);
        }
        for name in schema.required().filter(|name| !members.contains_key(*name)) {
            let field = format!("{}.{name}", self.path);
            verdict.add(FieldError::required(field.trim_start_matches('.'), ""));
        }
        verdict
    }

    fn member_counts(&self, schema: NodeRef<'_>, size: usize) -> Verdict {
        let mut verdict = Verdict::default();
        let Some(rules) = schema.node.rules.more.as_deref() else { return verdict };
        if let Some(min) = rules.min_properties.filter(|min| (size as i64) < *min) {
            let detail = self.sentence(&format!("should have at least {min} properties"));
            verdict.add(FieldError::invalid(self.field(), size, detail));
        }
        if let Some(max) = rules.max_properties.filter(|max| size as i64 > *max) {
            verdict.add(FieldError::too_many(self.field(), size, max.max(0) as usize));
        }
        verdict
    }

    fn push(&mut self, text: &str) -> usize {
        let length = self.path.len();
        self.path.push_str(text);
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

/// Type and format as the server infers them from a value.
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

/// Whether the value is this one of an enumeration; numbers are converted to the type of the allowed one.
fn is_enumerated(value: &Value, allowed: &Value) -> bool {
    match (value, allowed) {
        (Value::Null, _) => false,
        (Value::Number(value), Value::Number(allowed)) => match (allowed.as_i64(), value.as_i64()) {
            (Some(allowed), Some(value)) => allowed == value,
            (Some(allowed), None) => value.as_f64().is_some_and(|value| value as i64 == allowed),
            (None, _) => value.as_f64() == allowed.as_f64(),
        },
        _ => value == allowed,
    }
}

/// The element of the old list that a new element continues; only lists of type `map` have such.
fn correlate<'o>(schema: NodeRef<'_>, item: &Value, old: &'o Value) -> Option<&'o Value> {
    if schema.list_type() != Some(ListType::Map) {
        return None;
    }
    old.as_array()?.iter().find(|old| schema.map_keys().all(|key| old.get(key) == item.get(key)))
}

#[cfg(test)]
mod tests;
