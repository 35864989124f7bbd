//! Collects the errors of a walk over typed values.

use std::fmt;

use serde_json::Value;

use super::atom::Scalar;
use super::error::{TypedError, TypedErrors};
use super::list_key::ListKey;
use crate::go::{go_type, go_value};
use crate::path;

/// The maximum nesting of a value.
pub(super) const MAX_DEPTH: usize = 450;

/// The budget for the errors of a value, in bytes.
const BUDGET: usize = 1 << 20;

/// The cost of an error besides the text.
const ERROR_COST: usize = 1024;

/// A path with elements on the stack.
#[derive(Clone, Copy)]
pub(super) struct Walk<'p> {
    parent: Option<&'p Walk<'p>>,
    step: Step<'p>,
    pub(super) depth: usize,
}

#[derive(Clone, Copy)]
enum Step<'p> {
    Root,
    Field(&'p str),
    Index(usize),
    Key(&'p ListKey<'p>),
}

impl<'p> Walk<'p> {
    pub(super) const ROOT: Walk<'static> = Walk { parent: None, step: Step::Root, depth: 0 };

    fn step(&'p self, step: Step<'p>) -> Self {
        Walk { parent: Some(self), step, depth: self.depth + 1 }
    }

    pub(super) fn field(&'p self, name: &'p str) -> Self {
        self.step(Step::Field(name))
    }

    pub(super) fn index(&'p self, index: usize) -> Self {
        self.step(Step::Index(index))
    }

    pub(super) fn key(&'p self, key: &'p ListKey<'p>) -> Self {
        self.step(Step::Key(key))
    }
}

impl fmt::Display for Walk<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if let Some(parent) = self.parent {
            parent.fmt(f)?;
        }
        match self.step {
            Step::Root => Ok(()),
            Step::Field(name) => write!(f, ".{name}"),
            Step::Index(index) => write!(f, "[{index}]"),
            Step::Key(key) => key.to_element().fmt(f),
        }
    }
}

/// The errors that a walk has found. Of very many, only the first are kept.
#[derive(Default)]
pub(super) struct Problems {
    errors: Vec<TypedError>,
    spent: usize,
}

impl Problems {
    pub(super) fn add(&mut self, walk: &Walk<'_>, message: impl FnOnce() -> String) {
        if self.spent >= BUDGET {
            return;
        }
        let mut text = String::new();
        path::push(&mut text, &walk.to_string());
        let error = TypedError { path: text, message: message() };
        self.spent += ERROR_COST + error.path.len() + error.message.len();
        self.errors.push(error);
    }

    /// Returns whether the walk is too deep; this is an error.
    pub(super) fn too_deep(&mut self, walk: &Walk<'_>) -> bool {
        let deep = walk.depth > MAX_DEPTH;
        if deep && self.errors.is_empty() {
            self.add(&Walk::ROOT, || "the value nests too deeply".to_owned());
        }
        deep
    }

    pub(super) fn len(&self) -> usize {
        self.errors.len()
    }

    /// Forgets the errors after the first `len`.
    pub(super) fn truncate(&mut self, len: usize) {
        self.errors.truncate(len);
    }

    pub(super) fn into_result<T>(self, value: T) -> Result<T, TypedErrors> {
        if self.errors.is_empty() { Ok(value) } else { Err(TypedErrors(self.errors)) }
    }
}

/// Describes why a value is not of a scalar type. `null` is of every type.
pub(super) fn scalar_problem(scalar: Scalar, value: &Value) -> Option<String> {
    let is_scalar = value.is_number() || value.is_string() || value.is_boolean();
    match scalar {
        _ if value.is_null() => None,
        Scalar::Numeric if !value.is_number() => {
            Some(format!("expected numeric (int or float), got {}", go_type(value)))
        }
        Scalar::String if !value.is_string() => {
            let mut text = "expected string, got &value.valueUnstructured{Value:".to_owned();
            write_go_syntax(value, &mut text);
            Some(text + "}")
        }
        Scalar::Boolean if !value.is_boolean() => Some(unexpected("boolean", value)),
        Scalar::Untyped if !is_scalar => Some(unexpected("any scalar", value)),
        _ => None,
    }
}

/// Describes a value of a wrong type.
pub(super) fn unexpected(expected: &str, value: &Value) -> String {
    format!("expected {expected}, got &{{{}}}", go_value(value))
}

/// Writes a value as Go's `%#v` does.
fn write_go_syntax(value: &Value, out: &mut String) {
    match value {
        Value::Null => out.push_str("interface {}(nil)"),
        Value::String(text) => out.push_str(&crate::go::go_quote(text)),
        Value::Array(items) => {
            out.push_str("[]interface {}{");
            for (index, item) in items.iter().enumerate() {
                out.push_str(if index == 0 { "" } else { ", " });
                write_go_syntax(item, out);
            }
            out.push('}');
        }
        Value::Object(members) => {
            out.push_str("map[string]interface {}{");
            for (index, (name, value)) in members.iter().enumerate() {
                out.push_str(if index == 0 { "" } else { ", " });
                out.push_str(&crate::go::go_quote(name));
                out.push(':');
                write_go_syntax(value, out);
            }
            out.push('}');
        }
        scalar => out.push_str(&go_value(scalar)),
    }
}
