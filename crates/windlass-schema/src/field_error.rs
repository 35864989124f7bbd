//! Errors about single fields, in kube-apiserver's words.

use std::fmt;

use serde_json::Value;

use crate::go::{go_json, go_number, go_quote};

/// The kind of a field error. On the wire, the kind is the `reason` of a cause in a `Status`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum FieldErrorKind {
    /// A reference to an object that does not exist.
    NotFound,
    /// A required value is missing.
    Required,
    /// A value that must be unique occurs twice.
    Duplicate,
    /// A malformed value.
    Invalid,
    /// A value of the wrong JSON type.
    TypeInvalid,
    /// A value outside an enumeration.
    NotSupported,
    /// A well-formed value that is not permitted here.
    Forbidden,
    /// A string or list that is too long. The message omits the value.
    TooLong,
    /// A string that is too short. The message omits the value.
    TooShort,
    /// A list with too many items.
    TooMany,
    /// A list with too few items.
    TooFew,
    /// An error of the server, not of the object.
    Internal,
}

impl FieldErrorKind {
    /// Returns the machine-readable name (`FieldValueRequired`, …).
    pub fn reason(self) -> &'static str {
        match self {
            Self::NotFound => "FieldValueNotFound",
            Self::Required => "FieldValueRequired",
            Self::Duplicate => "FieldValueDuplicate",
            Self::Invalid => "FieldValueInvalid",
            Self::TypeInvalid => "FieldValueTypeInvalid",
            Self::NotSupported => "FieldValueNotSupported",
            Self::Forbidden => "FieldValueForbidden",
            Self::TooLong => "FieldValueTooLong",
            Self::TooShort => "FieldValueTooShort",
            Self::TooMany => "FieldValueTooMany",
            Self::TooFew => "FieldValueTooFew",
            Self::Internal => "InternalError",
        }
    }

    fn label(self) -> &'static str {
        match self {
            Self::NotFound => "Not found",
            Self::Required => "Required value",
            Self::Duplicate => "Duplicate value",
            Self::Invalid | Self::TypeInvalid => "Invalid value",
            Self::NotSupported => "Unsupported value",
            Self::Forbidden => "Forbidden",
            Self::TooLong => "Too long",
            Self::TooShort => "Too short",
            Self::TooMany => "Too many",
            Self::TooFew => "Too few",
            Self::Internal => "Internal error",
        }
    }

    fn shows_value(self) -> bool {
        !matches!(self, Self::Required | Self::Forbidden | Self::TooLong | Self::TooShort | Self::Internal)
    }
}

/// An error about one field of an object.
///
/// `Display` writes the whole message (`spec.replicas: Invalid value: -1: must be greater than or equal to 0`);
/// [`body`](FieldError::body) omits the field, as the causes of a `Status` do.
///
/// ```
/// use windlass_schema::FieldError;
///
/// let error = FieldError::invalid("spec.replicas", -1, "must be greater than or equal to 0");
/// assert_eq!(error.to_string(), "spec.replicas: Invalid value: -1: must be greater than or equal to 0");
/// ```
#[derive(Clone, Debug, PartialEq)]
pub struct FieldError {
    /// The kind of the error.
    pub kind: FieldErrorKind,
    /// The path of the field, such as `spec.containers[0].name`.
    pub field: String,
    /// The rejected value, if the message shows it.
    pub bad_value: Option<Value>,
    /// The form of a valid value; may be empty.
    pub detail: String,
    /// The rejected value in the message, if the text differs from the JSON.
    pub shown: Option<String>,
}

impl FieldError {
    fn new(
        kind: FieldErrorKind,
        field: impl Into<String>,
        bad_value: Option<Value>,
        detail: impl Into<String>,
    ) -> Self {
        Self { kind, field: field.into(), bad_value, detail: detail.into(), shown: None }
    }

    /// Creates an error about a reference to an object that does not exist.
    pub fn not_found(field: impl Into<String>, value: impl Into<Value>) -> Self {
        Self::new(FieldErrorKind::NotFound, field, Some(value.into()), "")
    }

    /// Creates an error about a required value that is missing.
    pub fn required(field: impl Into<String>, detail: impl Into<String>) -> Self {
        Self::new(FieldErrorKind::Required, field, None, detail)
    }

    /// Creates an error about a value that must be unique and occurs twice.
    pub fn duplicate(field: impl Into<String>, value: impl Into<Value>) -> Self {
        Self::new(FieldErrorKind::Duplicate, field, Some(value.into()), "")
    }

    /// Creates an error about a malformed value.
    pub fn invalid(field: impl Into<String>, value: impl Into<Value>, detail: impl Into<String>) -> Self {
        Self::new(FieldErrorKind::Invalid, field, Some(value.into()), detail)
    }

    /// Creates an error about a value of the wrong JSON type.
    pub fn type_invalid(
        field: impl Into<String>,
        value: impl Into<Value>,
        detail: impl Into<String>,
    ) -> Self {
        Self::new(FieldErrorKind::TypeInvalid, field, Some(value.into()), detail)
    }

    /// Creates an error about a value that is not in `supported`.
    pub fn not_supported(field: impl Into<String>, value: impl Into<Value>, supported: &[&str]) -> Self {
        let detail = if supported.is_empty() {
            String::new()
        } else {
            let quoted: Vec<String> = supported.iter().map(|value| go_quote(value)).collect();
            format!("supported values: {}", quoted.join(", "))
        };
        Self::new(FieldErrorKind::NotSupported, field, Some(value.into()), detail)
    }

    /// Creates an error about a value that is not permitted here.
    pub fn forbidden(field: impl Into<String>, detail: impl Into<String>) -> Self {
        Self::new(FieldErrorKind::Forbidden, field, None, detail)
    }

    /// Creates an error about a value of more than `max` bytes.
    pub fn too_long(field: impl Into<String>, max: usize) -> Self {
        let bytes = if max == 1 { "byte" } else { "bytes" };
        Self::new(FieldErrorKind::TooLong, field, None, format!("may not be more than {max} {bytes}"))
    }

    /// Creates an error about a string of more than `max` characters.
    pub fn too_long_characters(field: impl Into<String>, max: usize) -> Self {
        let characters = if max == 1 { "character" } else { "characters" };
        Self::new(FieldErrorKind::TooLong, field, None, format!("may not be more than {max} {characters}"))
    }

    /// Creates an error about a list of `actual` items that may have at most `max`.
    pub fn too_many(field: impl Into<String>, actual: usize, max: usize) -> Self {
        let items = if max == 1 { "item" } else { "items" };
        let detail = format!("must have at most {max} {items}");
        Self::new(FieldErrorKind::TooMany, field, Some(actual.into()), detail)
    }

    /// Creates an error about a list of `actual` items that must have at least `min`.
    pub fn too_few(field: impl Into<String>, actual: usize, min: usize) -> Self {
        let items = if min == 1 { "item" } else { "items" };
        let detail = format!("must have at least {min} {items}");
        Self::new(FieldErrorKind::TooFew, field, Some(actual.into()), detail)
    }

    /// Creates an internal error of the server during the validation of a field.
    pub fn internal(field: impl Into<String>, detail: impl Into<String>) -> Self {
        Self::new(FieldErrorKind::Internal, field, None, detail)
    }

    /// Sets the text that the message prints for the value: kube-apiserver prints some values as Go structs,
    /// with other field names and another order than JSON.
    #[must_use]
    pub fn showing(mut self, value: impl Into<String>) -> Self {
        self.shown = Some(value.into());
        self
    }

    /// Prints a text as JSON, with `<`, `>` and `&` as escape sequences: kube-apiserver prints a value as JSON, unless the type
    /// of the value in Go is `string` itself, a number or a boolean. The types of enumerations and the pointers are others.
    #[must_use]
    pub fn of_named_type(self) -> Self {
        match &self.bad_value {
            Some(text @ Value::String(_)) if self.shown.is_none() => {
                let shown = go_json(text);
                self.showing(shown)
            }
            _ => self,
        }
    }

    /// Returns the message without the path of the field.
    pub fn body(&self) -> String {
        let mut text = String::from(self.kind.label());
        if let Some(shown) = &self.shown {
            text.push_str(": ");
            text.push_str(shown);
        } else if let Some(value) = self.bad_value.as_ref().filter(|_| self.kind.shows_value()) {
            text.push_str(": ");
            match value {
                Value::String(string) => text.push_str(&go_quote(string)),
                Value::Number(number) => text.push_str(&go_number(number)),
                other => text.push_str(&go_json(other)),
            }
        }
        if !self.detail.is_empty() {
            text.push_str(": ");
            text.push_str(&self.detail);
        }
        text
    }
}

impl fmt::Display for FieldError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}: {}", self.field, self.body())
    }
}

impl std::error::Error for FieldError {}

#[cfg(test)]
mod tests;
