//! Values of Go without a form in JSON, which an expression may put into an apply configuration.

use serde_json::{Value, json};

use super::atom::{Form, Scalar};

/// The member of an object that stands for a value of Go. No name of a field has the first character.
const KEY: &str = "\0go";

/// A value of Go without a form in JSON, such as a timestamp. No schema allows the value.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct GoValue {
    /// The value as Go's `%v` prints the value.
    pub printed: String,
    /// The value as Go's `%#v` prints the value.
    pub syntax: String,
    /// The name of the type.
    pub kind: String,
}

impl GoValue {
    /// Returns JSON that stands for the value, for [`validate_typed`](super::validate_typed).
    pub fn into_json(self) -> Value {
        json!({KEY: [self.printed, self.syntax, self.kind]})
    }

    pub(super) fn read(value: &Value) -> Option<Self> {
        let parts = value.as_object().filter(|members| members.len() == 1)?.get(KEY)?.as_array()?;
        let text = |index: usize| parts.get(index)?.as_str().map(str::to_owned);
        Some(Self { printed: text(0)?, syntax: text(1)?, kind: text(2)? })
    }

    /// Explains why a value of this form is expected.
    pub(super) fn problem(&self, form: &Form<'_>) -> String {
        let Self { printed, syntax, kind } = self;
        let expected = match form {
            Form::Scalar(Scalar::Numeric) => return format!("expected numeric (int or float), got {kind}"),
            Form::Scalar(Scalar::String) => {
                return format!("expected string, got &value.valueUnstructured{{Value:{syntax}}}");
            }
            Form::Scalar(Scalar::Boolean) => "boolean",
            Form::Scalar(Scalar::Untyped) => "any scalar",
            Form::List(_) => "list",
            Form::Map(_) => "map",
            Form::None => return "schema error: invalid atom: inlined".to_owned(),
        };
        format!("expected {expected}, got &{{{printed}}}")
    }
}
