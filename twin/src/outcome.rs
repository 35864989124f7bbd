//! The outcome of a step.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};
use serde_json::Value;

/// A reply, or the events of watches.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Outcome {
    /// The status code, or 0 if the step is not a request.
    #[serde(default)]
    pub code: u16,
    /// The headers in `HEADERS`.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub headers: BTreeMap<String, Vec<String>>,
    /// The body: JSON, or a string.
    #[serde(default, skip_serializing_if = "Value::is_null")]
    pub body: Value,
    /// Events by the step that opened the watch.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub events: BTreeMap<u32, Vec<Value>>,
}

/// The headers that are compared.
pub(crate) const HEADERS: [&str; 5] = ["content-type", "warning", "retry-after", "allow", "location"];

/// The type of the pseudo event at the end of a watch.
pub(crate) const END: &str = "END";
