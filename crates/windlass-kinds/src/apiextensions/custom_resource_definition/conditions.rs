//! Conditions of a definition's status.

use serde_json::{Value, json};

use super::{list, text};

/// Returns whether a condition is present and true.
pub fn condition_is_true(definition: &Value, kind: &str) -> bool {
    let conditions = list(&definition["status"], "conditions");
    conditions.iter().any(|condition| condition["type"] == kind && condition["status"] == "True")
}

/// Sets a condition. The time of its last transition changes only if the status changes.
pub fn set_condition(
    definition: &mut Value,
    kind: &str,
    holds: bool,
    reason: &str,
    message: &str,
    now: &str,
) {
    let status = if holds { "True" } else { "False" };
    let conditions = &mut definition["status"]["conditions"];
    if !conditions.is_array() {
        *conditions = json!([]);
    }
    let Some(conditions) = conditions.as_array_mut() else { return };
    let known = conditions.iter_mut().find(|condition| condition["type"] == kind);
    let since = match &known {
        Some(condition) if condition["status"] == status => {
            text(condition, &["lastTransitionTime"]).to_owned()
        }
        _ => now.to_owned(),
    };
    let condition = json!({
        "type": kind,
        "status": status,
        "lastTransitionTime": since,
        "reason": reason,
        "message": message,
    });
    match known {
        Some(known) => *known = condition,
        None => conditions.push(condition),
    }
}
