//! A reply, and the text of a reply in the expectations of tests.

use std::fmt;
use std::sync::LazyLock;

use bytes::Bytes;
use expect_test::Expect;
use http::HeaderMap;
use http_body_util::BodyExt;
use regex::Regex;
use serde_json::Value;

use super::deadline;
use super::transport::Body;

/// The reply of a server.
///
/// `Display` is a text that a test can compare: the code, the warnings, and the body, with replacements for
/// the parts that differ between two runs: uids, times, resource versions and the test's own id.
#[derive(Debug)]
pub(crate) struct Reply {
    pub(crate) code: u16,
    pub(crate) headers: HeaderMap,
    pub(crate) body: Bytes,
    pub(super) id: String,
}

impl Reply {
    pub(super) async fn read(response: http::Response<Body>, id: String) -> Self {
        let (head, body) = response.into_parts();
        let body = tokio::time::timeout(deadline(), body.collect()).await.expect("the reply ends");
        let body = body.expect("the reply is whole").to_bytes();
        Reply { code: head.status.as_u16(), headers: head.headers, body, id }
    }

    #[track_caller]
    pub(crate) fn is(self, code: u16) -> Self {
        assert_eq!(self.code, code, "unexpected status code: {self}");
        self
    }

    /// Compares the reply, as shown, with what the real server says.
    #[track_caller]
    pub(crate) fn shows(&self, expected: Expect) {
        expected.assert_eq(&self.to_string());
    }

    #[track_caller]
    pub(crate) fn json(&self) -> Value {
        serde_json::from_slice(&self.body).unwrap_or_else(|error| panic!("not JSON ({error}): {self}"))
    }

    /// The value at a JSON pointer; null where there is none.
    #[track_caller]
    pub(crate) fn at(&self, pointer: &str) -> Value {
        self.json().pointer(pointer).cloned().unwrap_or_default()
    }

    #[track_caller]
    pub(crate) fn text_at(&self, pointer: &str) -> String {
        self.at(pointer).as_str().unwrap_or_else(|| panic!("no text at {pointer}: {self}")).to_owned()
    }

    /// `metadata.resourceVersion` of an object or a list.
    #[track_caller]
    pub(crate) fn version(&self) -> u64 {
        self.text_at("/metadata/resourceVersion").parse().expect("a resource version is a number")
    }

    /// The names of a list's items.
    #[track_caller]
    pub(crate) fn names(&self) -> Vec<String> {
        let json = self.json();
        let items = json["items"].as_array().unwrap_or_else(|| panic!("not a list: {self}"));
        items.iter().map(|item| item["metadata"]["name"].as_str().unwrap().to_owned()).collect()
    }

    pub(crate) fn header(&self, name: &str) -> Option<&str> {
        self.headers.get(name).and_then(|value| value.to_str().ok())
    }

    /// The texts of the `Warning` headers.
    pub(crate) fn warnings(&self) -> Vec<String> {
        self.headers
            .get_all("warning")
            .iter()
            .map(|value| String::from_utf8_lossy(value.as_bytes()).into_owned())
            .collect()
    }
}

/// The beginning of the warnings that only the embedded server sends: it has fewer controllers and admission plugins.
pub(crate) const NOT_ENFORCED: &str = "299 - \"stored, but not enforced: ";

impl fmt::Display for Reply {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}", self.code)?;
        for warning in self.warnings().into_iter().filter(|warning| !warning.starts_with(NOT_ENFORCED)) {
            write!(f, "\nWarning: {}", plain(&warning, &self.id))?;
        }
        match serde_json::from_slice::<Value>(&self.body) {
            Ok(body) if body["kind"] == "Status" && body["status"] == "Failure" => {
                write!(f, " {}", plain(&failure(&body), &self.id))
            }
            Ok(body) => write!(f, "\n{}", shown(&body, &self.id)),
            Err(_) => write!(f, "\n{}", plain(&String::from_utf8_lossy(&self.body), &self.id)),
        }
    }
}

/// A failure as lines: reason and message, then details, then one line for each cause, in alphabetical order.
///
/// Returns a message without the causes, if the message lists several causes: the real server's order of
/// causes is random.
fn failure(status: &Value) -> String {
    let causes = status["details"]["causes"].as_array().cloned().unwrap_or_default();
    let list: Vec<String> = causes
        .iter()
        .map(|cause| format!("{}: {}", text(&cause["field"]), text(&cause["message"])))
        .collect();
    let message = text(&status["message"]);
    let message = match list.len() {
        0 | 1 => message.to_owned(),
        _ => message.replace(&format!("[{}]", list.join(", ")), "[as below]"),
    };
    let mut lines = vec![format!("{}: {message}", text(&status["reason"]))];
    if let Some(details) = status["details"].as_object() {
        let known = ["group", "kind", "name", "uid", "retryAfterSeconds"];
        let fields = known.iter().filter_map(|field| Some(format!("{field}={}", details.get(*field)?)));
        let fields: Vec<String> = fields.collect();
        if !fields.is_empty() {
            lines.push(fields.join(" "));
        }
    }
    let causes = causes.iter().zip(&list).map(|(cause, line)| format!("- {} {line}", text(&cause["reason"])));
    let mut causes: Vec<String> = causes.collect();
    causes.sort();
    lines.extend(causes);
    if status["code"].is_null() {
        lines.push("no code".into());
    }
    if status["metadata"] != serde_json::json!({}) {
        lines.push(format!("metadata={}", status["metadata"]));
    }
    lines.join("\n")
}

fn text(value: &Value) -> &str {
    value.as_str().unwrap_or("-")
}

/// An object in lines, without what differs between runs.
pub(super) fn shown(body: &Value, id: &str) -> String {
    let mut body = body.clone();
    blank(&mut body);
    plain(&serde_json::to_string_pretty(&body).expect("JSON"), id)
}

fn blank(value: &mut Value) {
    match value {
        Value::Object(fields) => {
            for (name, value) in fields {
                match (name.as_str(), &*value) {
                    ("managedFields", Value::Array(entries)) => {
                        let mut entries = entries.clone();
                        entries.sort_by_cached_key(order_of_managed);
                        *value = entries.iter().map(|entry| Value::String(managed(entry))).collect();
                    }
                    ("resourceVersion", Value::String(text)) if !text.is_empty() => *value = "RV".into(),
                    _ => blank(value),
                }
            }
        }
        Value::Array(items) => items.iter_mut().for_each(blank),
        _ => {}
    }
}

/// The order of the server, but for times: whether a second passed between two writes is chance.
fn order_of_managed(entry: &Value) -> (String, bool, String, String, String) {
    let text = |field: &str| entry[field].as_str().unwrap_or_default().to_owned();
    (text("operation"), !entry["time"].is_null(), text("manager"), text("apiVersion"), text("subresource"))
}

/// An entry of `managedFields` in one line: manager, operation, version, subresource and fields.
fn managed(entry: &Value) -> String {
    let subresource = entry.get("subresource").and_then(Value::as_str).map(|name| format!(" {name}"));
    let untimed = if entry["time"].is_null() { " without time" } else { "" };
    format!(
        "{} {} {}{}{untimed}: {}",
        text(&entry["manager"]),
        text(&entry["operation"]),
        text(&entry["apiVersion"]),
        subresource.unwrap_or_default(),
        entry["fieldsV1"].to_string().replace('"', "'")
    )
}

/// Text without the test's id, uids, times, versions, and objects that are quoted whole.
pub(crate) fn plain(text: &str, id: &str) -> String {
    static UID: LazyLock<Regex> =
        LazyLock::new(|| Regex::new("[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}").unwrap());
    static TIME: LazyLock<Regex> =
        LazyLock::new(|| Regex::new(r"20\d\d-\d\d-\d\dT\d\d:\d\d:\d\d(\.\d+)?Z").unwrap());
    static PATCHED: LazyLock<Regex> =
        LazyLock::new(|| Regex::new(r#"patch: Invalid value: "\{.*?\}": "#).unwrap());
    static VERSION: LazyLock<Regex> = LazyLock::new(|| Regex::new(r"(, current: )\d+").unwrap());
    let text = text.replace(id, "ID");
    let text = UID.replace_all(&text, "UID");
    let text = TIME.replace_all(&text, "TIME");
    let text = VERSION.replace_all(&text, "${1}RV");
    PATCHED.replace_all(&text, "patch: Invalid value: (the object): ").into_owned()
}
