//! Objects that an expression makes: patches of objects, and operations on JSON.

use std::sync::Arc;

use super::{List, Map, Value};
use crate::error::Error;
use crate::patch::JSON_PATCH;

/// An object that an expression made, such as `Object.spec{replicas: 3}` or `JSONPatch{op: 'remove', path: '/spec/a'}`.
pub struct Message<'a> {
    name: Arc<str>,
    fields: Vec<(Arc<str>, Value<'a>)>,
}

impl<'a> Message<'a> {
    /// Makes an object of the type `name`. Of fields with equal names, the last field counts.
    pub(crate) fn new(name: Arc<str>, fields: Vec<(Arc<str>, Value<'a>)>) -> Result<Self, Error> {
        let mut distinct: Vec<(Arc<str>, Value<'a>)> = Vec::with_capacity(fields.len());
        for (field, value) in fields {
            match distinct.iter_mut().find(|(known, _)| *known == field) {
                Some(known) => known.1 = value,
                None => distinct.push((field, value)),
            }
        }
        let message = Self { name, fields: distinct };
        message.check_operation()?;
        Ok(message)
    }

    /// Checks the types of the fields of an operation on JSON.
    fn check_operation(&self) -> Result<(), Error> {
        if self.kind() != JSON_PATCH {
            return Ok(());
        }
        for (field, value) in &self.fields {
            if &**field != "value" && value.as_str().is_none() {
                let found = value.type_name();
                let message = format!("unexpected type {found} for JSONPatchType '{field}' field");
                return Err(Error::new(message));
            }
        }
        Ok(())
    }

    /// Returns the name of the type, such as `Object.spec`.
    pub fn name(&self) -> &str {
        &self.name
    }

    /// Returns the first part of the name: `Object` or `JSONPatch`.
    pub(super) fn kind(&self) -> &'static str {
        if *self.name == *JSON_PATCH { JSON_PATCH } else { "Object" }
    }

    /// Returns the fields in the order of the expression.
    pub fn fields(&self) -> &[(Arc<str>, Value<'a>)] {
        &self.fields
    }

    /// Returns a field.
    pub fn field(&self, name: &str) -> Option<&Value<'a>> {
        self.fields.iter().find(|(field, _)| **field == *name).map(|(_, value)| value)
    }

    /// Returns a field in an evaluation. Only the fields of an operation on JSON can be read.
    pub(crate) fn get(&self, name: &str) -> Result<Option<Value<'a>>, Error> {
        if self.kind() != JSON_PATCH {
            return Err(Error::no_overload());
        }
        let absent = || (name != "value").then(|| Value::text(""));
        Ok(self.field(name).cloned().or_else(absent))
    }
}

/// Checks the names of types in several objects, which together may have 1,000,000 values; further values are not checked.
#[derive(Debug, Default)]
pub struct NameCheck {
    looks: usize,
}

impl NameCheck {
    /// Checks that the types of inner objects are named as the paths of the fields: `Object.spec` in the field `spec` of an
    /// `Object`. Lists and maps between objects have no part in the names.
    ///
    /// # Errors
    /// All names that differ, separated by line breaks.
    pub fn check(&mut self, message: &Message<'_>) -> Result<(), String> {
        let mut problems = Problems { texts: Vec::new(), looks: &mut self.looks };
        problems.of_message(message, &message.name);
        if problems.texts.is_empty() { Ok(()) } else { Err(problems.texts.join("\n")) }
    }
}

/// The number of values that the check of names looks at. Values share their parts, so that a small value can be huge.
const MAX_LOOKS: usize = 1_000_000;

/// The number of problems that are reported.
const MAX_PROBLEMS: usize = 100;

/// The names of types that do not match.
struct Problems<'n> {
    texts: Vec<String>,
    looks: &'n mut usize,
}

impl Problems<'_> {
    fn of_message(&mut self, message: &Message<'_>, path: &str) {
        if message.name() != path && self.texts.len() < MAX_PROBLEMS {
            self.texts.push(format!(
                "unexpected type name {}, expected {}, which matches field name path from root Object type",
                windlass_text::go_quote(message.name()),
                windlass_text::go_quote(path)
            ));
        }
        for (field, value) in message.fields() {
            self.of_value(value, &format!("{path}.{field}"));
        }
    }

    fn of_value(&mut self, value: &Value<'_>, path: &str) {
        if *self.looks >= MAX_LOOKS {
            return;
        }
        *self.looks += 1;
        match value {
            Value::Library(super::Library::Message(message)) => self.of_message(message, path),
            Value::List(List::Dynamic(_) | List::Json(..)) | Value::Map(Map::Dynamic(_) | Map::Json(..)) => {}
            Value::List(list) => {
                list.iter().filter_map(Result::ok).for_each(|element| self.of_value(&element, path));
            }
            Value::Map(map) => {
                let entries = map.entries().into_iter();
                entries.filter_map(|(_, value)| value.ok()).for_each(|value| self.of_value(&value, path));
            }
            _ => {}
        }
    }
}
