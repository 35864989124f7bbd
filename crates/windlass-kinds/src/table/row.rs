//! Reads the values of cells from an object.

use jiff::Timestamp;
use serde_json::{Map, Value};

use super::age;
use windlass_wire::selector::{LabelOperator, LabelSelector};

/// An object that becomes a row.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Row<'a> {
    pub(crate) object: &'a Value,
    pub(crate) now: Timestamp,
}

impl<'a> Row<'a> {
    pub(crate) fn value(&self, pointer: &str) -> Option<&'a Value> {
        self.object.pointer(pointer)
    }

    pub(crate) fn str(&self, pointer: &str) -> &'a str {
        self.value(pointer).and_then(Value::as_str).unwrap_or_default()
    }

    pub(crate) fn list(&self, pointer: &str) -> &'a [Value] {
        self.value(pointer).and_then(Value::as_array).map_or(&[], Vec::as_slice)
    }

    pub(crate) fn map(&self, pointer: &str) -> Option<&'a Map<String, Value>> {
        self.value(pointer).and_then(Value::as_object)
    }

    pub(crate) fn int(&self, pointer: &str) -> i64 {
        self.value(pointer).and_then(Value::as_i64).unwrap_or_default()
    }

    pub(crate) fn bool(&self, pointer: &str) -> bool {
        self.value(pointer).and_then(Value::as_bool).unwrap_or_default()
    }

    pub(crate) fn is_deleted(&self) -> bool {
        self.value("/metadata/deletionTimestamp").is_some_and(|time| !time.is_null())
    }

    /// Returns the cell of the name.
    pub(crate) fn name(&self) -> Value {
        self.text("/metadata/name")
    }

    /// Returns the cell of the age.
    pub(crate) fn age(&self) -> Value {
        self.since("/metadata/creationTimestamp")
    }

    pub(crate) fn since(&self, pointer: &str) -> Value {
        age::since(self.value(pointer), self.now).into()
    }

    pub(crate) fn text(&self, pointer: &str) -> Value {
        self.str(pointer).into()
    }

    pub(crate) fn text_or(&self, pointer: &str, otherwise: &str) -> Value {
        let text = self.str(pointer);
        if text.is_empty() { otherwise.into() } else { text.into() }
    }

    /// Returns the cell of a quantity or int-or-string.
    pub(crate) fn scalar_or(&self, pointer: &str, otherwise: &str) -> Value {
        self.value(pointer).map_or_else(|| otherwise.to_owned(), scalar).into()
    }

    pub(crate) fn number(&self, pointer: &str) -> Value {
        self.int(pointer).into()
    }

    /// Returns the cells of the names and images of the containers in a pod template.
    pub(crate) fn containers(&self, pointer: &str) -> [Value; 2] {
        ["name", "image"]
            .map(|field| join(self.list(pointer).iter().map(|container| text(container, field))).into())
    }

    /// Returns the cell of a `LabelSelector`; `empty` for a selector of everything.
    pub(crate) fn selector(&self, pointer: &str, empty: &str) -> Value {
        let text = self.value(pointer).map(format_selector).unwrap_or_default();
        if text.is_empty() { empty.into() } else { text.into() }
    }

    /// Returns the cell of a map of labels.
    pub(crate) fn labels(&self, pointer: &str) -> Value {
        format_labels(self.map(pointer)).into()
    }
}

/// Returns a field as text; "" for a missing field.
pub(crate) fn text<'a>(value: &'a Value, field: &str) -> &'a str {
    value.get(field).and_then(Value::as_str).unwrap_or_default()
}

/// Returns a string or number as text.
pub(crate) fn scalar(value: &Value) -> String {
    match value {
        Value::String(text) => text.clone(),
        Value::Null => String::new(),
        other => other.to_string(),
    }
}

pub(crate) fn join<'a>(texts: impl Iterator<Item = &'a str>) -> String {
    texts.collect::<Vec<_>>().join(",")
}

/// Returns `a=b,c=d`, or `<none>`.
pub(crate) fn format_labels(labels: Option<&Map<String, Value>>) -> String {
    match labels.filter(|labels| !labels.is_empty()) {
        None => "<none>".to_owned(),
        Some(labels) => {
            let pairs: Vec<String> =
                labels.iter().map(|(key, value)| format!("{key}={}", scalar(value))).collect();
            pairs.join(",")
        }
    }
}

/// Returns `a=b,c in (d,e),!f`.
fn format_selector(selector: &Value) -> String {
    let parsed = LabelSelector::from_object(selector);
    let exact = selector.get("matchLabels").and_then(Value::as_object).map_or(0, Map::len);
    let mut terms: Vec<(&str, String)> = Vec::new();
    for (index, requirement) in parsed.requirements().iter().enumerate() {
        let key = requirement.key.as_str();
        let mut values = requirement.values.clone();
        values.sort();
        let values = values.join(",");
        let term = match requirement.operator {
            LabelOperator::In if index < exact => format!("{key}={values}"),
            LabelOperator::In => format!("{key} in ({values})"),
            LabelOperator::NotIn => format!("{key} notin ({values})"),
            LabelOperator::Exists => key.to_owned(),
            LabelOperator::DoesNotExist => format!("!{key}"),
            LabelOperator::GreaterThan => format!("{key}>{values}"),
            LabelOperator::LessThan => format!("{key}<{values}"),
        };
        terms.push((key, term));
    }
    terms.sort_by(|a, b| a.0.cmp(b.0));
    terms.into_iter().map(|(_, term)| term).collect::<Vec<_>>().join(",")
}

/// Returns the status of the condition with this type.
pub(crate) fn condition<'a>(conditions: &'a [Value], kind: &str) -> Option<&'a Value> {
    conditions.iter().find(|condition| text(condition, "type") == kind)
}

/// Returns whether the condition with this type is `True`.
pub(crate) fn is_true(conditions: &[Value], kind: &str) -> bool {
    condition(conditions, kind).is_some_and(|condition| text(condition, "status") == "True")
}

/// Joins the first `max` texts, and adds the number of further texts.
pub(crate) fn with_more(texts: Vec<String>, max: usize, separator: &str) -> String {
    let more = texts.len().saturating_sub(max);
    let shown = texts.into_iter().take(max).collect::<Vec<_>>().join(separator);
    if more > 0 { format!("{shown} + {more} more...") } else { shown }
}
