//! Objects without parts that differ between runs: uids, times, resource versions, random parts of names.

use std::collections::{BTreeMap, BTreeSet};

use k8s_openapi::jiff::Timestamp;
use serde_json::Value;

use super::certificate;

/// The letters of random suffixes and hashes in names.
const LETTERS: &str = "bcdfghjklmnpqrstvwxz2456789";
/// The length of a random suffix.
const SUFFIX: usize = 5;
/// The labels with a hash that depends on the implementation.
const HASHES: [&str; 2] = ["controller-revision-hash", "pod-template-hash"];

/// The known names of a namespace.
#[derive(Default)]
pub(super) struct Names {
    namespace: String,
    prefixes: BTreeSet<String>,
    hashes: BTreeSet<String>,
    /// The names of the Jobs of CronJobs, and the replacements.
    jobs: BTreeMap<String, String>,
}

impl Names {
    pub(super) fn new(namespace: &str) -> Self {
        Self { namespace: namespace.to_owned(), ..Self::default() }
    }

    /// Learns the random parts of an object's name and labels.
    pub(super) fn learn(&mut self, object: &Value) {
        let metadata = &object["metadata"];
        let name = metadata["name"].as_str().unwrap_or_default();
        if let Some(prefix) = metadata["generateName"].as_str()
            && let Some(suffix) = name.strip_prefix(prefix)
            && is_suffix(suffix)
        {
            self.prefixes.insert(prefix.to_owned());
        }
        if metadata["ownerReferences"][0]["kind"] == "CronJob"
            && let Some((prefix, _)) = name.rsplit_once('-')
        {
            self.jobs.insert(name.to_owned(), format!("{prefix}-MINUTES"));
        }
        let of_daemon_set = metadata["ownerReferences"][0]["kind"] == "DaemonSet";
        for label in HASHES.iter().filter(|label| of_daemon_set || **label == "pod-template-hash") {
            if let Some(hash) = metadata["labels"][label].as_str() {
                self.hashes.insert(hash.to_owned());
            }
        }
    }

    /// Learns the random parts of the names in an event, because the event's objects may be gone before the
    /// next list.
    pub(super) fn learn_event(&mut self, event: &Value) {
        let text = |pointer: &str| event.pointer(pointer).and_then(Value::as_str).unwrap_or_default();
        let (kind, name) = (text("/involvedObject/kind"), text("/involvedObject/name"));
        let message = text("/message");
        let words = || message.split(|c: char| c.is_whitespace() || matches!(c, ',' | '/'));
        let below = words().filter_map(|word| word.strip_prefix(name)?.strip_prefix('-'));
        match kind {
            "DaemonSet" | "Job" | "ReplicaSet" | "ReplicationController" => {
                self.prefixes.insert(format!("{name}-"));
                let indexes = below.filter_map(|rest| rest.split_once('-')).map(|(index, _)| index);
                let indexes = indexes.filter(|index| kind == "Job" && is_number(index));
                self.prefixes.extend(indexes.map(|index| format!("{name}-{index}-")));
            }
            "Deployment" => {
                let hashes = below.filter(|hash| hash.chars().all(|c| LETTERS.contains(c)));
                self.hashes.extend(hashes.map(ToOwned::to_owned));
            }
            "CronJob" => {
                let jobs = below.filter(|minutes| is_number(minutes));
                let jobs = jobs.map(|minutes| (format!("{name}-{minutes}"), format!("{name}-MINUTES")));
                self.jobs.extend(jobs);
            }
            _ => {}
        }
    }

    /// Replaces all names that differ from run to run.
    pub(super) fn replace(&self, text: &str) -> String {
        let mut text = text.replace(&self.namespace, "NS");
        for hash in &self.hashes {
            text = text.replace(hash, "HASH");
        }
        for prefix in &self.prefixes {
            let prefix = self.hashes.iter().fold(prefix.clone(), |prefix, hash| prefix.replace(hash, "HASH"));
            text = without_suffixes(&text, &prefix);
        }
        for (name, shown) in &self.jobs {
            text = text.replace(name, shown);
        }
        without_uids(&text)
    }

    /// Returns an object as a line of JSON, or `None` for an irrelevant object.
    pub(super) fn line(&self, object: &Value) -> String {
        let mut object = object.clone();
        strip(&mut object);
        self.replace(&sorted(&object).to_string())
    }
}

/// Replaces the uids in a text.
fn without_uids(text: &str) -> String {
    let is_part = |c: char| c.is_ascii_hexdigit() || c == '-';
    let is_uid =
        |word: &str| word.len() == 36 && [8, 13, 18, 23].iter().all(|at| word.as_bytes()[*at] == b'-');
    let words = text.split_inclusive(|c: char| !is_part(c));
    let mut out = String::with_capacity(text.len());
    for word in words {
        let end = word.trim_end_matches(|c: char| !is_part(c));
        let shown = if is_uid(end) { "UID" } else { end };
        out.extend([shown, &word[end.len()..]]);
    }
    out
}

fn is_number(text: &str) -> bool {
    !text.is_empty() && text.chars().all(|c| c.is_ascii_digit())
}

fn is_suffix(text: &str) -> bool {
    text.len() == SUFFIX && text.chars().all(|c| LETTERS.contains(c))
}

fn without_suffixes(text: &str, prefix: &str) -> String {
    let mut parts = text.split(prefix);
    let mut out = parts.next().unwrap_or_default().to_owned();
    for part in parts {
        out.push_str(prefix);
        match part.get(..SUFFIX).filter(|suffix| is_suffix(suffix)) {
            Some(suffix) => {
                out.push('*');
                out.push_str(&part[suffix.len()..]);
            }
            None => out.push_str(part),
        }
    }
    out
}

/// Removes fields that the server adds, and replaces uids and times.
fn strip(value: &mut Value) {
    match value {
        Value::Object(fields) => {
            for key in [
                "managedFields",
                "resourceVersion",
                "creationTimestamp",
                "serviceAccount",
                "serviceAccountName",
                "endpoints.kubernetes.io/last-change-trigger-time",
            ] {
                fields.remove(key);
            }
            // The slices of a mirror have endpoints and ports in such an order, too.
            if fields.contains_key("addressType") {
                for key in ["endpoints", "ports"] {
                    fields.get_mut(key).into_iter().for_each(sort);
                }
            }
            for (key, value) in fields.iter_mut() {
                if key.to_lowercase().ends_with("uid") && value.is_string() {
                    *value = "UID".into();
                }
                if let ("certificate", Some(text)) = (key.as_str(), value.as_str()) {
                    *value = certificate::describe(text).into();
                }
                if key == "request" && value.is_string() {
                    *value = "REQUEST".into();
                }
                strip(value);
            }
            // Endpoints have subsets and ports in an order of hashes.
            for subset in fields.get_mut("subsets").and_then(Value::as_array_mut).into_iter().flatten() {
                sort(&mut subset["ports"]);
            }
            fields.get_mut("subsets").into_iter().for_each(sort);
            let is_empty = |value: &Value| value.as_object().is_some_and(serde_json::Map::is_empty);
            fields.retain(|key, value| key != "annotations" || !is_empty(value));
        }
        Value::Array(items) => items.iter_mut().for_each(strip),
        Value::String(text) if is_time(text) => *text = "TIME".to_owned(),
        _ => {}
    }
}

fn sort(list: &mut Value) {
    if let Some(items) = list.as_array_mut() {
        items.sort_by_key(|item| sorted(item).to_string());
    }
}

fn is_time(text: &str) -> bool {
    text.parse::<Timestamp>().is_ok()
}

/// Returns the value with sorted keys.
fn sorted(value: &Value) -> Value {
    match value {
        Value::Object(fields) => {
            let sorted: BTreeMap<&String, Value> =
                fields.iter().map(|(key, value)| (key, sorted(value))).collect();
            sorted.into_iter().map(|(key, value)| (key.clone(), value)).collect()
        }
        Value::Array(items) => items.iter().map(sorted).collect(),
        other => other.clone(),
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    /// Returns the message of an event, with the names replaced that the event tells.
    fn normalised(kind: &str, name: &str, message: &str) -> String {
        let mut names = Names::new("script-1");
        names.learn_event(&json!({"involvedObject": {"kind": kind, "name": name}, "message": message}));
        names.replace(message)
    }

    #[test]
    fn the_names_of_objects_that_no_list_showed_are_replaced() {
        assert_eq!(normalised("Job", "work", "Deleted pod: work-kbxs9"), "Deleted pod: work-*");
        assert_eq!(normalised("Job", "work", "Created pod: work-1-kbxs9"), "Created pod: work-1-*");
        let failed = "Container c for pod script-1/work-kbxs9 failed with exit code 42";
        assert_eq!(
            normalised("Job", "work", failed),
            "Container c for pod NS/work-* failed with exit code 42"
        );
        let scaled = "Scaled up replica set web-7d9f8bc6d4 from 0 to 1";
        assert_eq!(normalised("Deployment", "web", scaled), "Scaled up replica set web-HASH from 0 to 1");
        let completed = "Saw completed job: tab-28640160, condition: Complete";
        assert_eq!(
            normalised("CronJob", "tab", completed),
            "Saw completed job: tab-MINUTES, condition: Complete"
        );
    }
}
