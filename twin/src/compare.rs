//! Compares the outcomes of a step.

use std::collections::BTreeSet;
use std::fmt;
use std::sync::LazyLock;

use regex::Regex;
use serde_json::Value;

use crate::op::Op;
use crate::outcome::Outcome;
use crate::reply_body::PROTOBUF;

/// A place where two outcomes of a step differ.
#[derive(Clone, Debug, PartialEq)]
pub struct Difference {
    /// The step.
    pub op: u32,
    /// The difference without names and numbers. Differences with the same cause usually have the same signature.
    pub signature: String,
    /// A JSON pointer into the outcome.
    pub place: String,
    /// The value of the embedded server; `None` for a missing value.
    pub embedded: Option<Value>,
    /// The value of the real server.
    pub real: Option<Value>,
}

impl fmt::Display for Difference {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let shown = |value: &Option<Value>| value.as_ref().map_or_else(|| "-".to_owned(), short);
        write!(
            f,
            "step {} at {}\n  embedded: {}\n  real:     {}",
            self.op,
            self.place,
            shown(&self.embedded),
            shown(&self.real)
        )
    }
}

fn short(value: &Value) -> String {
    let text = value.to_string();
    match text.char_indices().nth(900) {
        Some((end, _)) => format!("{}…", &text[..end]),
        None => text,
    }
}

/// Returns the differences between two outcomes of a step, one for each signature.
pub(crate) fn compare(op: &Op, embedded: &Outcome, real: &Outcome) -> Vec<Difference> {
    let mut differences = Vec::new();
    // Some transcripts have only the code of a reply in protobuf.
    let is_in_protobuf = real.body == PROTOBUF && real.code == embedded.code;
    if embedded == real || is_in_protobuf {
        return differences;
    }
    let (verb, plural) = resource(op);
    if embedded.code != real.code || message(embedded) != message(real) {
        // The rest of the bodies cannot be compared.
        let mut signatures = causes_apart(plural, embedded, real);
        if signatures.is_empty() {
            signatures.push(format!("{verb}: {} | {}", brief(embedded, plural), brief(real, plural)));
        }
        let (embedded, real) = (Some(summary(embedded).into()), Some(summary(real).into()));
        let place = String::new();
        return signatures
            .into_iter()
            .map(|signature| Difference {
                op: op.id,
                signature,
                place: place.clone(),
                embedded: embedded.clone(),
                real: real.clone(),
            })
            .collect();
    }
    for signature in warnings_apart(embedded, real) {
        let (embedded, real) = (Some(summary(embedded).into()), Some(summary(real).into()));
        differences.push(Difference { op: op.id, signature, place: String::new(), embedded, real });
    }
    let (left, right) = (without_warnings(embedded), without_warnings(real));
    let mut found = Vec::new();
    walk(&left, &right, "", &mut found);
    let mut known = BTreeSet::new();
    for (place, embedded, real) in found {
        let shape = |value: &Option<Value>| match value {
            None => "none".to_owned(),
            Some(Value::String(text)) if VERSION.is_match(text) => "version".to_owned(),
            Some(Value::String(text)) => skeleton(text),
            Some(Value::Object(_)) => "{}".to_owned(),
            Some(Value::Array(items)) => format!("[{}]", items.len()),
            Some(other) => other.to_string(),
        };
        // The same for all kinds.
        let is_own = OWN.is_match(&place) || COUNTED.iter().any(|field| place.ends_with(field));
        let kind = if is_own { plural } else { "*" };
        let signature = format!("{kind}: {}: {} | {}", pattern(&place), shape(&embedded), shape(&real));
        if known.insert(signature.clone()) {
            differences.push(Difference { op: op.id, signature, place, embedded, real });
        }
    }
    differences
}

/// The fields that count writes and changes.
const COUNTED: [&str; 2] = ["/metadata/resourceVersion", "/metadata/generation"];

/// Returns whether a step changed the state of only one server. Later steps cannot be compared then.
pub(crate) fn parts_states(op: &Op, embedded: &Outcome, real: &Outcome) -> bool {
    let is_write = ["POST", "PUT", "PATCH", "DELETE"].contains(&op.parts().0);
    let counts_apart = COUNTED.iter().any(|field| embedded.body.pointer(field) != real.body.pointer(field));
    is_write && ((embedded.code < 300) != (real.code < 300) || counts_apart && real.body != PROTOBUF)
}

fn message(outcome: &Outcome) -> Option<&str> {
    if is_failure(&outcome.body) { outcome.body["message"].as_str() } else { None }
}

fn is_failure(body: &Value) -> bool {
    body["kind"] == "Status" && body["status"] == "Failure"
}

/// Returns a signature for each cause that only one server names.
fn causes_apart(plural: &str, embedded: &Outcome, real: &Outcome) -> Vec<String> {
    let is_verdict = |outcome: &Outcome| (200..300).contains(&outcome.code) || outcome.code == 422;
    if !is_verdict(embedded) || !is_verdict(real) {
        return Vec::new();
    }
    let (left, right) = (causes(embedded), causes(real));
    let line = |which: &str, cause: &String| format!("{plural}: only {which}: {cause}");
    let ours = left.difference(&right).map(|cause| line("embedded", cause));
    let theirs = right.difference(&left).map(|cause| line("real", cause));
    ours.chain(theirs).collect()
}

/// Returns a signature for each warning that only one server gives.
fn warnings_apart(embedded: &Outcome, real: &Outcome) -> Vec<String> {
    let warnings = |outcome: &Outcome| {
        let texts = outcome.headers.get("warning").into_iter().flatten();
        let texts = texts.map(|text| text.trim_start_matches("299 - \"").trim_end_matches('"'));
        texts.map(skeleton).collect::<BTreeSet<String>>()
    };
    let (left, right) = (warnings(embedded), warnings(real));
    let ours = left.difference(&right).map(|text| format!("warning only embedded: {text}"));
    let theirs = right.difference(&left).map(|text| format!("warning only real: {text}"));
    ours.chain(theirs).collect()
}

fn without_warnings(outcome: &Outcome) -> Value {
    let mut outcome = outcome.clone();
    outcome.headers.remove("warning");
    serde_json::to_value(outcome).unwrap_or_default()
}

fn causes(outcome: &Outcome) -> BTreeSet<String> {
    let causes = outcome.body["details"]["causes"].as_array();
    let causes = causes.map(Vec::as_slice).unwrap_or_default().iter();
    let text = |value: &Value| value.as_str().unwrap_or_default().to_owned();
    causes
        .map(|cause| {
            let field = text(&cause["field"]).replace("spec.template.spec.", "spec.");
            format!("{}: {}", INDEX.replace_all(&field, "[*]"), skeleton(&text(&cause["message"])))
        })
        .collect()
}

/// Returns the code, the words and the warnings of a reply.
fn summary(outcome: &Outcome) -> String {
    let code = outcome.code.to_string();
    let warnings = outcome.headers.get("warning").into_iter().flatten();
    let warnings = warnings.map(|warning| format!("; Warning: {warning}"));
    let message = message(outcome).map(|message| format!(" {message}"));
    std::iter::once(code).chain(message).chain(warnings).collect()
}

/// Returns the verb of a step, with the subresource, and the plural of the resource.
fn resource(op: &Op) -> (String, &str) {
    let (verb, _) = op.parts();
    let mut parts: Vec<&str> = op.path().trim_matches('/').split('/').collect();
    let skipped = if parts.first() == Some(&"api") { 2 } else { 3 };
    parts.drain(..skipped.min(parts.len()));
    if parts.first() == Some(&"namespaces") && parts.len() > 2 && !["status", "finalize"].contains(&parts[2])
    {
        parts.drain(..2);
    }
    let verb = match (verb, parts.len()) {
        ("GET", 1) => "LIST",
        ("DELETE", 1) => "DELETECOLLECTION",
        (other, _) => other,
    };
    let plural = parts.first().copied().unwrap_or_default();
    (parts.get(2).map_or_else(|| verb.to_owned(), |subresource| format!("{verb} {subresource}")), plural)
}

fn brief(outcome: &Outcome, plural: &str) -> String {
    if outcome.code == 0 {
        return "no reply".to_owned();
    }
    let text = match outcome.body["message"].as_str() {
        Some(message) if is_failure(&outcome.body) => skeleton(message),
        _ => {
            outcome.headers.get("warning").map(|warnings| skeleton(&warnings.join("; "))).unwrap_or_default()
        }
    };
    let text = if plural.is_empty() { text } else { text.replace(plural, "RESOURCE") };
    format!("{} {}", outcome.code, INVALID.replace_all(&text, "KIND$2"))
}

static QUOTED: LazyLock<Regex> = LazyLock::new(|| regex(r#""(\\.|[^"\\])*""#));
static NUMBER: LazyLock<Regex> = LazyLock::new(|| regex(r"-?\b\d+(\.\d+)?\b"));
static BRACED: LazyLock<Regex> = LazyLock::new(|| regex(r"\{.*\}"));
static NAMED: LazyLock<Regex> = LazyLock::new(|| regex(r"twin00[-a-z0-9.+]*"));

static INDEX: LazyLock<Regex> = LazyLock::new(|| regex(r"\[[^\]]*\]"));
static VERSION: LazyLock<Regex> = LazyLock::new(|| regex(r"^rv\d+$"));
static INVALID: LazyLock<Regex> = LazyLock::new(|| {
    regex(r#"\b[A-Z][A-Za-z]+(\.[a-zA-Z0-9.]+)?( "" is invalid| cannot be handled| in version)"#)
});
static OWN: LazyLock<Regex> = LazyLock::new(|| regex("/(spec|status|data)(/|$)"));

fn regex(pattern: &str) -> Regex {
    Regex::new(pattern).unwrap_or_else(|error| unreachable!("{error}"))
}

/// Returns a text on one line, without quoted values, names and numbers.
fn skeleton(text: &str) -> String {
    let text = text.replace('\n', " ");
    let text = BRACED.replace_all(&text, "{}");
    let text = QUOTED.replace_all(&text, "\"\"");
    let text = NAMED.replace_all(&text, "NAME");
    let text = NUMBER.replace_all(&text, "0");
    text.chars().take(240).collect()
}

/// Returns a JSON pointer without indexes and names.
fn pattern(pointer: &str) -> String {
    let parts = pointer.split('/').map(|part| {
        let is_index = !part.is_empty() && part.bytes().all(|byte| byte.is_ascii_digit());
        if is_index { "*" } else { part }
    });
    NAMED.replace_all(&parts.collect::<Vec<_>>().join("/"), "NAME").into_owned()
}

fn walk(left: &Value, right: &Value, place: &str, found: &mut Vec<(String, Option<Value>, Option<Value>)>) {
    match (left, right) {
        (Value::Object(left), Value::Object(right)) => {
            let names: BTreeSet<&String> = left.keys().chain(right.keys()).collect();
            for name in names {
                let place = format!("{place}/{}", name.replace('~', "~0").replace('/', "~1"));
                match (left.get(name), right.get(name)) {
                    (Some(left), Some(right)) => walk(left, right, &place, found),
                    (left, right) => found.push((place, left.cloned(), right.cloned())),
                }
            }
        }
        // Lists of different lengths are not aligned.
        (Value::Array(left), Value::Array(right)) if left.len() == right.len() => {
            for (index, (left, right)) in left.iter().zip(right).enumerate() {
                walk(left, right, &format!("{place}/{index}"), found);
            }
        }
        _ if left == right => {}
        _ => found.push((place.to_owned(), Some(left.clone()), Some(right.clone()))),
    }
}
