//! What is wrong with one field, in the API server's own words.

use std::fmt;

use serde_json::Value;

use crate::quote::{go_json, go_number, go_quote};

/// The kind of mistake; its name on the wire is the `reason` of a `Status` cause.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum FieldErrorKind {
    /// A value that refers to something that is not there.
    NotFound,
    /// A value that must be given was not.
    Required,
    /// A value that must be unique is there twice.
    Duplicate,
    /// A malformed value.
    Invalid,
    /// A value of the wrong JSON type.
    TypeInvalid,
    /// A value outside an enumeration.
    NotSupported,
    /// A value that is well-formed, but not permitted here.
    Forbidden,
    /// A string or list that is too long, where the value is not shown.
    TooLong,
    /// A string that is too short, where the value is not shown.
    TooShort,
    /// A list with too many items.
    TooMany,
    /// A list with too few items.
    TooFew,
    /// A fault of the server, not of the object.
    Internal,
}

impl FieldErrorKind {
    /// The machine-readable name (`FieldValueRequired`, …).
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

/// One mistake in one field of an object.
///
/// `Display` gives the whole sentence (`spec.replicas: Invalid value: -1: must be greater than or equal to 0`),
/// [`body`](FieldError::body) the same without the field, as it stands in a `Status` cause.
///
/// ```
/// use windlass_schema::FieldError;
///
/// let error = FieldError::invalid("spec.replicas", -1, "must be greater than or equal to 0");
/// assert_eq!(error.to_string(), "spec.replicas: Invalid value: -1: must be greater than or equal to 0");
/// ```
#[derive(Clone, Debug, PartialEq)]
pub struct FieldError {
    /// The kind of mistake.
    pub kind: FieldErrorKind,
    /// Path of the field, as `spec.containers[0].name`.
    pub field: String,
    /// The offending value, where the message shows it.
    pub bad_value: Option<Value>,
    /// What would be right; may be empty.
    pub detail: String,
    /// The offending value as the message shows it, where that is not its JSON.
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

    /// A value refers to something that is not there.
    pub fn not_found(field: impl Into<String>, value: impl Into<Value>) -> Self {
        Self::new(FieldErrorKind::NotFound, field, Some(value.into()), "")
    }

    /// A value must be given.
    pub fn required(field: impl Into<String>, detail: impl Into<String>) -> Self {
        Self::new(FieldErrorKind::Required, field, None, detail)
    }

    /// A value that must be unique is there twice.
    pub fn duplicate(field: impl Into<String>, value: impl Into<Value>) -> Self {
        Self::new(FieldErrorKind::Duplicate, field, Some(value.into()), "")
    }

    /// A malformed value.
    pub fn invalid(field: impl Into<String>, value: impl Into<Value>, detail: impl Into<String>) -> Self {
        Self::new(FieldErrorKind::Invalid, field, Some(value.into()), detail)
    }

    /// A value of the wrong JSON type.
    pub fn type_invalid(
        field: impl Into<String>,
        value: impl Into<Value>,
        detail: impl Into<String>,
    ) -> Self {
        Self::new(FieldErrorKind::TypeInvalid, field, Some(value.into()), detail)
    }

    /// A value outside the enumeration `supported`.
    pub fn not_supported(field: impl Into<String>, value: impl Into<Value>, supported: &[&str]) -> Self {
        let detail = if supported.is_empty() {
            String::new()
        } else {
            let quoted: Vec<String> = supported.iter().map(|value| go_quote(value)).collect();
            format!("supported values: {}", quoted.join(", "))
        };
        Self::new(FieldErrorKind::NotSupported, field, Some(value.into()), detail)
    }

    /// A value that is not permitted here.
    pub fn forbidden(field: impl Into<String>, detail: impl Into<String>) -> Self {
        Self::new(FieldErrorKind::Forbidden, field, None, detail)
    }

    /// A value of more than `max` bytes.
    pub fn too_long(field: impl Into<String>, max: usize) -> Self {
        let bytes = if max == 1 { "byte" } else { "bytes" };
        Self::new(FieldErrorKind::TooLong, field, None, format!("may not be more than {max} {bytes}"))
    }

    /// A string of more than `max` characters.
    pub fn too_long_characters(field: impl Into<String>, max: usize) -> Self {
        let characters = if max == 1 { "character" } else { "characters" };
        Self::new(FieldErrorKind::TooLong, field, None, format!("may not be more than {max} {characters}"))
    }

    /// A list of `actual` items where `max` are the most.
    pub fn too_many(field: impl Into<String>, actual: usize, max: usize) -> Self {
        let items = if max == 1 { "item" } else { "items" };
        let detail = format!("must have at most {max} {items}");
        Self::new(FieldErrorKind::TooMany, field, Some(actual.into()), detail)
    }

    /// A list of `actual` items where `min` are the least.
    pub fn too_few(field: impl Into<String>, actual: usize, min: usize) -> Self {
        let items = if min == 1 { "item" } else { "items" };
        let detail = format!("must have at least {min} {items}");
        Self::new(FieldErrorKind::TooFew, field, Some(actual.into()), detail)
    }

    /// A fault of the server that came up while it looked at a field.
    pub fn internal(field: impl Into<String>, detail: impl Into<String>) -> Self {
        Self::new(FieldErrorKind::Internal, field, None, detail)
    }

    /// The same error, whose message shows the value in other words: the real server prints some values as its own
    /// types, with other names and in another order than JSON.
    #[must_use]
    pub fn showing(mut self, value: impl Into<String>) -> Self {
        self.shown = Some(value.into());
        self
    }

    /// The sentence without the field's path.
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
