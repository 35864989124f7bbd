//! The error of an apply that would change fields of other managers.

use std::collections::BTreeMap;
use std::fmt::Write as _;

use serde_json::Value;
use windlass_schema::fields::Conflicts;
use windlass_schema::go_quote;

use crate::wire::ApiError;

/// Returns 409 with all conflicts in the message, and each as a cause.
pub(super) fn conflict(conflicts: &Conflicts) -> ApiError {
    let causes: Vec<(String, String)> =
        conflicts.0.iter().map(|conflict| (shown(&conflict.manager), conflict.path.to_string())).collect();
    ApiError::apply_conflict(message(conflicts, &causes), causes)
}

fn message(conflicts: &Conflicts, causes: &[(String, String)]) -> String {
    if let [(manager, path)] = causes {
        return format!("Apply failed with 1 conflict: conflict with {manager}: {path}");
    }
    let mut by_manager: BTreeMap<&str, Vec<&(String, String)>> = BTreeMap::new();
    for (conflict, cause) in conflicts.0.iter().zip(causes) {
        by_manager.entry(&conflict.manager).or_default().push(cause);
    }
    let mut lines = Vec::new();
    for causes in by_manager.values() {
        lines.extend(causes.first().map(|(manager, _)| format!("conflicts with {manager}:")));
        lines.extend(causes.iter().map(|(_, path)| format!("- {path}")));
    }
    format!("Apply failed with {} conflicts: {}", causes.len(), lines.join("\n"))
}

/// Formats the manager of an identifier.
fn shown(id: &str) -> String {
    let Ok(manager) = serde_json::from_str::<Value>(id) else { return go_quote(id) };
    let text = |field: &str| manager.get(field).and_then(Value::as_str).unwrap_or_default();
    let mut shown = go_quote(text("manager"));
    if !text("subresource").is_empty() {
        let _ = write!(shown, " with subresource {}", go_quote(text("subresource")));
    }
    if text("operation") == "Update" {
        let _ = write!(shown, " using {}", text("apiVersion"));
    }
    shown
}
