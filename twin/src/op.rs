//! A step of a script.

use serde::{Deserialize, Deserializer, Serialize};
use serde_json::Value;

/// The start of all names in a script. Each run replaces the placeholder with the run's id, so that runs on a
/// shared server do not collide.
pub const PLACEHOLDER: &str = "twin00";

/// A step: a line of JSON in a script.
///
/// Paths and bodies may refer to earlier replies: `{{4/metadata/resourceVersion}}` is the value at that JSON pointer in the
/// reply to step 4, or `none` if there is no such value.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Op {
    /// The number of the step. The number stays when other steps are removed.
    pub id: u32,
    /// An HTTP method, or [`WATCH`], [`DRAIN`], [`AWAIT`] or [`GONE`]; then a path with a query.
    pub run: String,
    /// The `Accept` header. Default: JSON.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub accept: Option<String>,
    /// The `Content-Type` header. Default: JSON if there is a body.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub media: Option<String>,
    /// The user that the request impersonates. Default: an administrator.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub user: Option<String>,
    /// A step. The body is applied to the reply of the step as a merge patch.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub base: Option<u32>,
    /// The body. The body may be `null`.
    #[serde(default, deserialize_with = "present", skip_serializing_if = "Option::is_none")]
    pub body: Option<Value>,
    /// The body, if the body is not JSON.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub text: Option<String>,
}

/// Reads a field that is there, `null` too.
fn present<'de, D: Deserializer<'de>>(input: D) -> Result<Option<Value>, D::Error> {
    Value::deserialize(input).map(Some)
}

/// Opens a watch; a later [`DRAIN`] reads the events.
pub const WATCH: &str = "WATCH";
/// Reads the events of all open watches.
pub const DRAIN: &str = "DRAIN";
/// Repeats a GET until the code is 200.
pub const AWAIT: &str = "AWAIT";
/// Repeats a GET until the code is 404.
pub const GONE: &str = "GONE";

/// The media type of JSON.
pub const JSON: &str = "application/json";
/// The media type of a JSON patch.
pub const JSON_PATCH: &str = "application/json-patch+json";
/// The media type of a JSON merge patch.
pub const MERGE_PATCH: &str = "application/merge-patch+json";
/// The media type of a strategic merge patch.
pub const STRATEGIC_PATCH: &str = "application/strategic-merge-patch+json";

/// The media type of an apply configuration.
pub const APPLY_PATCH: &str = "application/apply-patch+yaml";
/// The group of the users that requests impersonate.
pub const STAFF: &str = "twin00-staff";

impl Op {
    /// Returns the verb and the path.
    pub fn parts(&self) -> (&str, &str) {
        self.run.split_once(' ').unwrap_or((&self.run, ""))
    }

    /// Returns the path without the query.
    pub fn path(&self) -> &str {
        let path = self.parts().1;
        path.split_once('?').map_or(path, |(path, _)| path)
    }
}

/// Reads a script: a step a line; empty lines and lines that begin with `#` are comments.
pub fn read(text: &str) -> Result<Vec<Op>, String> {
    let lines =
        text.lines().enumerate().filter(|(_, line)| !line.trim().is_empty() && !line.starts_with('#'));
    lines
        .map(|(number, line)| {
            serde_json::from_str(line).map_err(|error| format!("line {}: {error}", number + 1))
        })
        .collect()
}

/// Writes a script.
pub fn write(ops: &[Op]) -> String {
    ops.iter().map(|op| serde_json::to_string(op).unwrap_or_default() + "\n").collect()
}
