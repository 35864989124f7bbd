//! Removes the parts of an outcome that always differ between two servers.

use std::collections::BTreeMap;
use std::sync::LazyLock;

use regex::{Captures, Regex};
use serde_json::{Map, Value};
use windlass_siege::HttpsServer;

use crate::op::PLACEHOLDER;
use crate::outcome::Outcome;
use crate::webhook;

/// Replaces uids and resource versions with labels, numbered in order of appearance.
///
/// Labels, unlike blanks, also show if an object keeps the uid, and the resource version in a write without a
/// change.
pub(crate) struct Normaliser {
    id: String,
    /// The URL and the authority of the webhook server, in place of the placeholders of scripts.
    webhook: [String; 2],
    /// The label of each uid: the name of the object.
    uids: BTreeMap<String, String>,
    /// The number of objects with different uids that had a name.
    namesakes: BTreeMap<String, usize>,
    /// The versions of each object, by uid.
    versions: BTreeMap<String, Vec<String>>,
}

impl Normaliser {
    /// Returns a normaliser for a server on which `id` replaces the placeholder.
    pub(crate) fn new(id: &str, webhook: &HttpsServer) -> Self {
        Normaliser {
            id: id.to_owned(),
            webhook: [webhook.url.clone(), webhook.authority.clone()],
            uids: BTreeMap::new(),
            namesakes: BTreeMap::new(),
            versions: BTreeMap::new(),
        }
    }

    /// Normalises the next outcome.
    pub(crate) fn outcome(&mut self, mut outcome: Outcome) -> Outcome {
        self.value(&mut outcome.body);
        if let Some(warnings) = outcome.headers.get_mut("warning") {
            warnings.retain(|warning| !warning.contains(NOT_ENFORCED));
        }
        outcome.headers.retain(|_, values| !values.is_empty());
        for values in outcome.headers.values_mut() {
            values.iter_mut().for_each(|text| *text = self.text(text));
        }
        outcome.events.values_mut().flatten().for_each(|event| self.value(event));
        outcome
    }

    fn value(&mut self, value: &mut Value) {
        self.drop_strangers(value);
        self.learn(value);
        self.rewrite(value);
        if value["kind"] == "Status" {
            sort_causes(value);
        }
        if value["kind"] == "SelfSubjectRulesReview" {
            sort_rules(value);
        }
    }

    /// Learns the uids and versions of the objects in a value.
    fn learn(&mut self, value: &Value) {
        match value {
            Value::Object(fields) => {
                if let Some(Value::Object(metadata)) = fields.get("metadata") {
                    self.learn_object(metadata);
                }
                fields.values().for_each(|value| self.learn(value));
            }
            Value::Array(items) => items.iter().for_each(|value| self.learn(value)),
            _ => {}
        }
    }

    fn learn_object(&mut self, metadata: &Map<String, Value>) {
        let text = |name: &str| metadata.get(name).and_then(Value::as_str).unwrap_or_default();
        let name = text("name");
        let (uid, version) = (text("uid"), text("resourceVersion"));
        if UID.is_match(uid) && !name.is_empty() && !self.uids.contains_key(uid) {
            let name = self.text(name);
            let count = self.namesakes.entry(name.clone()).or_default();
            *count += 1;
            self.uids.insert(uid.to_owned(), format!("uid:{name}:{count}"));
        }
        if !uid.is_empty() && !version.is_empty() {
            let versions = self.versions.entry(uid.to_owned()).or_default();
            if !versions.iter().any(|known| known == version) {
                versions.push(version.to_owned());
            }
        }
    }

    fn rewrite(&self, value: &mut Value) {
        match value {
            Value::Object(fields) => self.rewrite_object(fields),
            Value::Array(items) => items.iter_mut().for_each(|item| self.rewrite(item)),
            Value::String(text) => *text = self.text(text),
            _ => {}
        }
    }

    fn rewrite_object(&self, fields: &mut Map<String, Value>) {
        blank_ages(fields);
        blank_descriptions(fields);
        if let Some(Value::Object(metadata)) = fields.get_mut("metadata") {
            self.rewrite_metadata(metadata);
        }
        if let Some(Value::Object(status)) = fields.get_mut("status")
            && status.get("token").is_some_and(Value::is_string)
        {
            status.insert("token".to_owned(), "TOKEN".into());
        }
        let old = std::mem::take(fields);
        for (name, mut value) in old {
            match (name.as_str(), &value) {
                ("nodePort" | "healthCheckNodePort", Value::Number(_)) => value = "PORT".into(),
                // The documents differ in descriptions.
                ("serverRelativeURL", Value::String(url)) => {
                    value = url.split('?').next().unwrap_or_default().into();
                }
                ("serverAddress", Value::String(address)) if !address.is_empty() => value = "ADDRESS".into(),
                _ => self.rewrite(&mut value),
            }
            fields.insert(self.text(&name), value);
        }
    }

    fn rewrite_metadata(&self, metadata: &mut Map<String, Value>) {
        if let Some(Value::Array(managers)) = metadata.get_mut("managedFields") {
            // The order of managers depends on the second of each write.
            managers.sort_by_key(|entry| {
                ["manager", "operation", "apiVersion", "subresource"].map(|field| entry[field].to_string())
            });
        }
        let uid = metadata.get("uid").and_then(Value::as_str).unwrap_or_default();
        let versions = self.versions.get(uid);
        if let Some(Value::String(version)) = metadata.get_mut("resourceVersion")
            && !version.is_empty()
        {
            let index = versions.and_then(|versions| versions.iter().position(|known| known == version));
            *version = index.map_or_else(|| "rv".to_owned(), |index| format!("rv{index}"));
        }
        if metadata.get("continue").is_some_and(|value| value != "") {
            metadata.insert("continue".to_owned(), "CONTINUE".into());
        }
    }

    /// Removes the items of a list that do not belong to this run.
    fn drop_strangers(&self, list: &mut Value) {
        let ours = |object: &Value| {
            let metadata = &object["metadata"];
            let has = |name: &str| metadata[name].as_str().is_some_and(|text| text.contains(&self.id));
            !metadata.is_object() || has("name") || has("namespace")
        };
        if list["kind"].as_str().is_some_and(|kind| kind.ends_with("List"))
            && let Some(Value::Array(items)) = list.get_mut("items")
        {
            items.retain(ours);
        }
        if let Some(Value::Array(groups)) = list.get_mut("groups") {
            let is_ours = |name: &str| !name.ends_with(".example.com") || name.contains(&self.id);
            groups.retain(|group| group["name"].as_str().is_none_or(is_ours));
        }
        if let Some(Value::Object(paths)) = list.get_mut("paths") {
            paths.retain(|path, _| !path.contains(".example.com") || path.contains(&self.id));
        }
        if list["groupVersion"].as_str().is_some_and(|version| version.contains(&self.id))
            && let Some(Value::Array(resources)) = list.get_mut("resources")
        {
            // The hash is made from the name of the group, too.
            resources.iter_mut().for_each(|resource| resource["storageVersionHash"] = "HASH".into());
        }
        if let Some(Value::Array(rows)) = list.get_mut("rows") {
            rows.retain(|row| ours(&row["object"]));
        }
    }

    fn text(&self, text: &str) -> String {
        let [url, authority] = &self.webhook;
        let text = text.replace(&self.id, PLACEHOLDER).replace(url, webhook::URL);
        let text = text.replace(authority, webhook::AUTHORITY);
        let text = GENERATED.replace_all(&text, "${1}+");
        let label =
            |found: &Captures<'_>| self.uids.get(&found[0]).cloned().unwrap_or_else(|| "uid:?".to_owned());
        let text = UID.replace_all(&text, label);
        let text = TIME.replace_all(&text, "TIME");
        let text = ADDRESS.replace_all(&text, "IP");
        let text = PORT.replace_all(&text, ":PORT/");
        let text = NODE_PORT.replace_all(&text, "${1}PORT}");
        let text = VERSION.replace_all(&text, "${1}RV");
        let text = QUOTED_VERSION.replace_all(&text, "${1}RV");
        let text = OLDEST.replace_all(&text, "${1} (RV)");
        let text = OBJECT.replace_all(&text, "Invalid value: (an object): ");
        let text = PATCH.replace_all(&text, "Invalid value: (an object): ");
        let text = EMPTY.replace_all(&text, "${1}null: ");
        blank_objects(&with_sorted_fields(&without_diff(&text)))
    }
}

/// The start of a warning that only the embedded server gives, for each kind that has no effect there.
const NOT_ENFORCED: &str = "\"stored, but not enforced: ";

static UID: LazyLock<Regex> =
    LazyLock::new(|| regex("[0-9a-f]{8}-[0-9a-f]{4}-4[0-9a-f]{3}-[0-9a-f]{4}-[0-9a-f]{12}"));
/// Times in scripts are earlier.
static TIME: LazyLock<Regex> =
    LazyLock::new(|| regex(r"20[2-9][5-9]-\d\d-\d\dT\d\d:\d\d:\d\d(\.\d+)?(Z|[+-]\d\d:\d\d)"));
static VERSION: LazyLock<Regex> = LazyLock::new(|| {
    regex(
        r"(, current: |ResourceVersion in [a-z ]+: |in record \(|in the precondition \(|resource version: )\d+",
    )
});
/// The resource version of an object that a message quotes.
static QUOTED_VERSION: LazyLock<Regex> = LazyLock::new(|| regex(r#"(\\?"resourceVersion\\?":\\?")\d+"#));
/// The oldest resource version in the history.
static OLDEST: LazyLock<Regex> = LazyLock::new(|| regex(r"(too old resource version: (?:RV|\d+)) \(\d+\)"));
/// A strategic patch in a message. The real server has removed the merged parts of the patch.
static PATCH: LazyLock<Regex> = LazyLock::new(|| regex(r#"Invalid value: "map\[(\\.|[^"\\])*\]": "#));
/// An empty value in a message: the embedded server has dropped the value.
static EMPTY: LazyLock<Regex> = LazyLock::new(|| regex(r#"( value: )(\[\]|\{\}|""): "#));
/// An address of a service.
static ADDRESS: LazyLock<Regex> = LazyLock::new(|| regex(r"\b10\.0\.\d+\.\d+\b"));
/// A node port in a table of services.
static PORT: LazyLock<Regex> = LazyLock::new(|| regex(r":3[0-2]\d{3}/"));
/// A node port in a message.
static NODE_PORT: LazyLock<Regex> = LazyLock::new(|| regex(r"(duplicate nodePort: \{[A-Z]+ )\d+\}"));
/// An object in a message. The order of fields differs.
static OBJECT: LazyLock<Regex> = LazyLock::new(|| regex(r#"Invalid value: "\{(\\.|[^"\\])*\}": "#));
/// Names from `generateName`.
static GENERATED: LazyLock<Regex> = LazyLock::new(|| regex("(gen[0-9]+-)[bcdfghjklmnpqrstvwxz2456789]{5}"));
static AGE: LazyLock<Regex> = LazyLock::new(|| regex(r"^(\d+[smh])+( ago)?$"));

fn regex(pattern: &str) -> Regex {
    Regex::new(pattern).unwrap_or_else(|error| unreachable!("{error}"))
}

/// Removes the line-by-line comparison of an object from a message. The comparison shows the fields of Go's
/// internal types.
fn without_diff(text: &str) -> String {
    let mut lines = text.split('\n');
    let mut kept = lines.next().unwrap_or_default().to_owned();
    kept.extend(lines.filter(|line| !line.starts_with(['@', ' ', '+', '-'])));
    kept
}

/// Sorts the unknown fields in a message. The order is random where Go ranges over a map.
fn with_sorted_fields(text: &str) -> String {
    const HEAD: &str = "strict decoding error: ";
    let Some((before, fields)) = text.split_once(HEAD) else { return text.to_owned() };
    let mut fields: Vec<&str> = fields.split(", ").collect();
    fields.sort_unstable();
    format!("{before}{HEAD}{}", fields.join(", "))
}

/// Blanks the objects in messages. The fields are the fields of Go's internal types.
fn blank_objects(text: &str) -> String {
    let mut kept = String::new();
    let mut rest = text;
    while let Some(at) = [" value: {", " value: [{"].into_iter().filter_map(|start| rest.find(start)).min() {
        let (before, object) = rest.split_at(at + " value: ".len());
        let mut values = serde_json::Deserializer::from_str(object).into_iter::<Value>();
        let is_object = matches!(values.next(), Some(Ok(_)));
        let end = if is_object { values.byte_offset() } else { 1 };
        kept.push_str(before);
        kept.push_str(if is_object { "(an object)" } else { &object[..1] });
        rest = &object[end..];
    }
    kept.push_str(rest);
    kept
}

/// Blanks the ages in the cells of a table.
fn blank_ages(fields: &mut Map<String, Value>) {
    let Some(Value::Array(cells)) = fields.get_mut("cells") else { return };
    for cell in cells {
        if cell.as_str().is_some_and(|text| AGE.is_match(text)) {
            *cell = "AGE".into();
        }
    }
}

/// Blanks the descriptions of a table's columns, because the embedded server has no descriptions.
fn blank_descriptions(fields: &mut Map<String, Value>) {
    if let Some(Value::Array(columns)) = fields.get_mut("columnDefinitions") {
        columns.iter_mut().for_each(|column| column["description"] = "".into());
    }
}

/// Sorts the rules of a user. The real server collects rules concurrently.
fn sort_rules(review: &mut Value) {
    for list in ["resourceRules", "nonResourceRules"] {
        if let Some(Value::Array(rules)) = review.pointer_mut(&format!("/status/{list}")) {
            rules.sort_by_key(ToString::to_string);
        }
    }
}

/// Sorts the causes of a failure, also in the message. The order is random where Go ranges over a map.
pub(crate) fn sort_causes(status: &mut Value) {
    let Some(causes) = status["details"]["causes"].as_array().cloned() else { return };
    if causes.len() < 2 {
        return;
    }
    let line = |cause: &Value| {
        let text = |name: &str| cause[name].as_str().unwrap_or_default().to_owned();
        format!("{}: {}", text("field"), text("message"))
    };
    let mut sorted = causes.clone();
    sorted.sort_by_key(line);
    // The message has each cause once.
    let list = |causes: &[Value]| {
        let mut lines: Vec<String> = Vec::new();
        for line in causes.iter().map(line) {
            if !lines.contains(&line) {
                lines.push(line);
            }
        }
        format!("[{}]", lines.join(", "))
    };
    if let Some(message) = status["message"].as_str() {
        status["message"] = message.replace(&list(&causes), &list(&sorted)).into();
    }
    status["details"]["causes"] = sorted.into();
}
