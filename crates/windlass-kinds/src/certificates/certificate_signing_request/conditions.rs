//! The conditions of a certificate signing request: approved, denied, failed.

use std::collections::BTreeSet;

use serde_json::Value;
use windlass_schema::{ErrorList, FieldError};

use crate::json::{list_at, text};

pub(super) const APPROVED: &str = "Approved";
pub(super) const DENIED: &str = "Denied";
const FAILED: &str = "Failed";

const PATH: &str = "status.conditions";

/// Returns the conditions of a type.
pub(super) fn of_type<'a>(object: &'a Value, wanted: &str) -> Vec<&'a Value> {
    let conditions = list_at(object, "/status/conditions").iter();
    conditions.filter(|condition| text(condition, "type") == wanted).collect()
}

/// Takes the decisions of `old`, unless there are more or fewer of them.
pub(super) fn keep_decisions(object: &mut Value, old: &Value) {
    for decision in [APPROVED, DENIED] {
        let kept: Vec<Value> = of_type(old, decision).into_iter().cloned().collect();
        if kept.len() != of_type(object, decision).len() {
            continue;
        }
        let mut kept = kept.into_iter();
        let conditions = object.pointer_mut("/status/conditions").and_then(Value::as_array_mut);
        let present = conditions.into_iter().flatten();
        for condition in present.filter(|condition| text(condition, "type") == decision) {
            if let Some(kept) = kept.next() {
                *condition = kept;
            }
        }
    }
}

/// Fills in the times that the client left out.
pub(super) fn fill_times(object: &mut Value, old: &Value, now: &str) {
    let conditions = object.pointer_mut("/status/conditions").and_then(Value::as_array_mut);
    for condition in conditions.into_iter().flatten() {
        let same = |other: &&Value| {
            ["type", "status"].iter().all(|field| text(other, field) == text(condition, field))
                && !text(other, "lastTransitionTime").is_empty()
        };
        let known = list_at(old, "/status/conditions").iter().find(same);
        let changed = known.map_or(now, |known| text(known, "lastTransitionTime")).to_owned();
        for (field, time) in [("lastUpdateTime", now), ("lastTransitionTime", &changed)] {
            if text(condition, field).is_empty() {
                condition[field] = time.into();
            }
        }
    }
}

/// Validates the conditions. Errors that `old` already has are ignored.
pub(super) fn validate(object: &Value, old: Option<&Value>) -> Vec<FieldError> {
    let mut errors = ErrorList::new();
    let mut seen: BTreeSet<&str> = BTreeSet::new();
    let both = |object: &Value| !of_type(object, APPROVED).is_empty() && !of_type(object, DENIED).is_empty();
    let may_be_both = old.is_some_and(both);
    let may_repeat = old.is_some_and(repeats);
    for (index, condition) in list_at(object, "/status/conditions").iter().enumerate() {
        let (kind, status) = (text(condition, "type"), text(condition, "status"));
        let path = format!("{PATH}[{index}]");
        if kind.is_empty() {
            errors.push(FieldError::required(format!("{path}.type"), ""));
        }
        let allowed: &[&str] = if [APPROVED, DENIED, FAILED].contains(&kind) {
            &["True"]
        } else {
            &["False", "True", "Unknown"]
        };
        if status.is_empty() {
            errors.push(FieldError::required(format!("{path}.status"), ""));
        } else if !allowed.contains(&status) {
            errors.push(FieldError::not_supported(format!("{path}.status"), status, allowed));
        }
        if !may_repeat && seen.contains(kind) {
            errors.push(FieldError::duplicate(format!("{path}.type"), kind));
        }
        seen.insert(kind);
    }
    // As in kube-apiserver, the errors of its declarative rules are the last ones.
    if !may_be_both && both(object) {
        let [approved, denied] =
            [APPROVED, DENIED].map(|kind| format!("conditions[{{\"type\": \"{kind}\"}}]"));
        let why = format!("must specify at most one of: `{approved}`, `{denied}`");
        errors.push(FieldError::invalid(PATH, format!("{{{approved}, {denied}}}"), why));
    }
    errors.into_vec()
}

fn repeats(object: &Value) -> bool {
    let mut kinds: Vec<&str> =
        list_at(object, "/status/conditions").iter().map(|condition| text(condition, "type")).collect();
    kinds.sort_unstable();
    kinds.windows(2).any(|pair| pair[0] == pair[1])
}

/// Validates a change of the conditions: decisions stay, and only an approval makes them.
pub(super) fn validate_change(object: &Value, old: &Value, is_approval: bool) -> Vec<FieldError> {
    let mut errors = Vec::new();
    let mut forbid = |why: String| errors.push(FieldError::forbidden(PATH, why));
    for kind in [APPROVED, DENIED, FAILED] {
        if of_type(object, kind).len() < of_type(old, kind).len() {
            forbid(format!("updates may not remove a condition of type {}", windlass_schema::go_quote(kind)));
        }
    }
    if !is_approval {
        for kind in [APPROVED, DENIED] {
            if of_type(object, kind).len() > of_type(old, kind).len() {
                forbid(format!(
                    "updates may not add a condition of type {}",
                    windlass_schema::go_quote(kind)
                ));
            }
        }
    }
    errors
}
