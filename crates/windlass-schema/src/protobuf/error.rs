//! Errors of the encoding.

use std::fmt;

/// The error of a body that cannot be decoded.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct DecodeError {
    text: String,
    /// The apiVersion and kind, if the catalog does not contain the kind.
    unknown_kind: Option<(String, String)>,
}

impl DecodeError {
    pub(super) fn new(text: impl Into<String>) -> Self {
        Self { text: text.into(), unknown_kind: None }
    }

    pub(super) fn of_unknown_kind(text: String, api_version: &str, kind: &str) -> Self {
        Self { text, unknown_kind: Some((api_version.to_owned(), kind.to_owned())) }
    }

    /// Returns whether the message is well-formed, but the kind is not built in.
    pub fn is_unknown_kind(&self) -> bool {
        self.unknown_kind.is_some()
    }

    /// Returns the apiVersion and kind of a message with a kind that is not built in.
    pub fn unknown_kind(&self) -> Option<(&str, &str)> {
        self.unknown_kind.as_ref().map(|(version, kind)| (version.as_str(), kind.as_str()))
    }
}

impl fmt::Display for DecodeError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.text)
    }
}

impl std::error::Error for DecodeError {}

/// The error of JSON that has no encoding in protobuf: the kind is not built in, or a value does not have the type of
/// the field.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct EncodeError(String);

impl EncodeError {
    pub(super) fn new(text: impl Into<String>) -> Self {
        Self(text.into())
    }
}

impl fmt::Display for EncodeError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

impl std::error::Error for EncodeError {}
