//! The labels by which a namespace asks for a pod security standard. The labels are checked, but not
//! enforced.

use serde_json::Value;
use windlass_schema::FieldError;

use crate::json::map_at;
use crate::kind::not_enforced;

const LEVELS: [&str; 3] = ["privileged", "baseline", "restricted"];
const MODES: [&str; 3] = ["enforce", "audit", "warn"];

/// Checks the levels and the versions in the labels of a namespace.
pub(super) fn validate(namespace: &Value) -> Vec<FieldError> {
    let mut errors = Vec::new();
    let mut require = |name: &str, is_valid: fn(&str) -> bool, detail: &str| {
        if let Some(value) = label(namespace, name).filter(|value| !is_valid(value)) {
            let path = format!("metadata.labels[{}]", key(name));
            errors.push(FieldError::invalid(path, value, detail));
        }
    };
    for mode in MODES {
        require(mode, |level| LEVELS.contains(&level), "must be one of privileged, baseline, restricted");
        require(&format!("{mode}-version"), is_version, "must be \"latest\" or \"v1.x\"");
    }
    errors
}

/// Returns the warning about a namespace that asks for more than nothing.
pub(super) fn warning(namespace: &Value) -> Option<String> {
    let asks = MODES.iter().any(|mode| label(namespace, mode).is_some_and(|level| level != LEVELS[0]));
    asks.then(|| not_enforced("pods are not held to the pod security standards of the labels"))
}

fn label<'a>(namespace: &'a Value, name: &str) -> Option<&'a str> {
    map_at(namespace, "/metadata/labels")?.get(&key(name))?.as_str()
}

fn key(name: &str) -> String {
    format!("pod-security.kubernetes.io/{name}")
}

fn is_version(version: &str) -> bool {
    let Some(minor) = version.strip_prefix("v1.") else { return version == "latest" };
    let is_number = !minor.is_empty() && minor.bytes().all(|byte| byte.is_ascii_digit());
    is_number && (minor == "0" || !minor.starts_with('0'))
}
