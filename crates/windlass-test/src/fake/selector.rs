//! Field selectors, over any field of an object.

use serde_json::Value;

use super::status::{StatusResult, bad_request};

/// A field selector. Unlike the real server, which knows a few fields of each kind, the fake reads any field.
#[derive(Debug, Default)]
pub(super) struct FieldSelector(Vec<Requirement>);

#[derive(Debug)]
struct Requirement {
    pointer: String,
    equal: bool,
    value: String,
}

impl FieldSelector {
    pub(super) fn parse(text: &str) -> StatusResult<Self> {
        let parts = text.split(',').map(str::trim).filter(|part| !part.is_empty());
        parts.map(Requirement::parse).collect::<StatusResult<_>>().map(Self)
    }

    pub(super) fn matches(&self, object: &Value) -> bool {
        self.0.iter().all(|requirement| requirement.matches(object))
    }
}

impl Requirement {
    fn parse(text: &str) -> StatusResult<Self> {
        let (path, equal, value) = if let Some((path, value)) = text.split_once("!=") {
            (path, false, value)
        } else if let Some((path, value)) = text.split_once("==").or_else(|| text.split_once('=')) {
            (path, true, value)
        } else {
            return Err(bad_request(format!("invalid field selector {text:?}")));
        };
        Ok(Self {
            pointer: format!("/{}", path.trim().replace('.', "/")),
            equal,
            value: value.trim().to_owned(),
        })
    }

    /// Returns whether an object matches. An absent field counts as empty.
    fn matches(&self, object: &Value) -> bool {
        let found = match object.pointer(&self.pointer) {
            None | Some(Value::Null) => self.value.is_empty(),
            Some(Value::String(text)) => *text == self.value,
            Some(other) => {
                let other = other.to_string();
                other == self.value
            }
        };
        found == self.equal
    }
}
