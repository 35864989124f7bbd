//! The `additionalPrinterColumns` of custom resources.

use serde_json::{Value, json};

use super::age;
use super::json_path::JsonPath;
use super::row::{Row, text};

/// An entry of `additionalPrinterColumns`.
#[derive(Clone, Debug)]
pub struct PrinterColumn {
    name: String,
    kind: String,
    format: String,
    description: String,
    priority: i64,
    path: Option<JsonPath>,
}

impl PrinterColumn {
    /// Reads a column of a CustomResourceDefinition.
    pub fn parse(column: &Value) -> Self {
        Self {
            name: text(column, "name").to_owned(),
            kind: text(column, "type").to_owned(),
            format: text(column, "format").to_owned(),
            description: text(column, "description").to_owned(),
            priority: column.get("priority").and_then(Value::as_i64).unwrap_or_default(),
            path: JsonPath::parse(text(column, "jsonPath")).ok(),
        }
    }

    /// Creates the column of age for resources without `additionalPrinterColumns`.
    pub(crate) fn age() -> Self {
        Self {
            name: "Age".to_owned(),
            kind: "date".to_owned(),
            format: String::new(),
            description: String::new(),
            priority: 0,
            path: JsonPath::parse(".metadata.creationTimestamp").ok(),
        }
    }

    pub(crate) fn definition(&self) -> Value {
        json!({
            "name": self.name,
            "type": self.kind,
            "format": self.format,
            "description": self.description,
            "priority": self.priority,
        })
    }

    /// Returns the cell of an object: the first value at the path, if the value has the type of the column.
    pub(crate) fn cell(&self, row: &Row<'_>) -> Value {
        let found = self.path.as_ref().map(|path| path.find(row.object)).unwrap_or_default();
        let Some(value) = found.first() else { return Value::Null };
        match self.kind.as_str() {
            "integer" => match value {
                Value::Number(number) => number
                    .as_i64()
                    .or_else(|| number.as_f64().map(|float| float as i64))
                    .map_or(Value::Null, Value::from),
                _ => Value::Null,
            },
            "number" if value.is_number() => (*value).clone(),
            "boolean" if value.is_boolean() => (*value).clone(),
            "string" => match value {
                Value::String(text) => text.as_str().into(),
                Value::Null => Value::Null,
                other => other.to_string().into(),
            },
            "date" => match value {
                Value::String(_) => age::since(Some(value), row.now).into(),
                _ => Value::Null,
            },
            _ => Value::Null,
        }
    }
}
