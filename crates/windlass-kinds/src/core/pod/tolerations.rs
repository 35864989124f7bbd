//! Tolerations that cover other tolerations.

use serde_json::{Map, Value};

/// The most tolerations that are compared with each other. Longer lists are joined as they are.
const MOST: usize = 1_000;

/// Adds tolerations to those of a pod, and removes each toleration that another covers. The first of equal tolerations stays.
pub(super) fn merge(spec: &mut Map<String, Value>, more: &[Value]) {
    let own = spec.get("tolerations").and_then(Value::as_array).map_or(&[][..], Vec::as_slice);
    let all: Vec<&Value> = own.iter().chain(more).collect();
    if all.is_empty() {
        return;
    }
    let read: Vec<Toleration<'_>> = all.iter().map(|toleration| Toleration::read(toleration)).collect();
    let mut kept: Vec<usize> = Vec::new();
    for (index, toleration) in read.iter().enumerate() {
        let is_covered = read.len() <= MOST
            && (kept.iter().any(|earlier| read[*earlier].covers(toleration))
                || read[index + 1..].iter().any(|later| later != toleration && later.covers(toleration)));
        if !is_covered {
            kept.push(index);
        }
    }
    let merged: Vec<Value> = kept.into_iter().map(|index| all[index].clone()).collect();
    spec.insert("tolerations".to_owned(), merged.into());
}

#[derive(PartialEq)]
struct Toleration<'a> {
    key: &'a str,
    operator: &'a str,
    value: &'a str,
    effect: &'a str,
    seconds: Option<i64>,
}

impl<'a> Toleration<'a> {
    fn read(toleration: &'a Value) -> Self {
        let text = |field: &str| toleration.get(field).and_then(Value::as_str).unwrap_or_default();
        Self {
            key: text("key"),
            operator: text("operator"),
            value: text("value"),
            effect: text("effect"),
            seconds: toleration.get("tolerationSeconds").and_then(Value::as_i64),
        }
    }

    /// Returns whether this toleration tolerates each taint that the other toleration tolerates.
    fn covers(&self, other: &Self) -> bool {
        if self == other {
            return true;
        }
        let has_key = self.key == other.key || self.key.is_empty() && self.operator == "Exists";
        let has_effect = self.effect == other.effect || self.effect.is_empty();
        let lasts = self.effect != "NoExecute"
            || self.seconds.is_none_or(|limit| other.seconds.is_some_and(|seconds| seconds <= limit));
        let has_value = match self.operator {
            "Exists" => true,
            "Equal" | "" => other.operator == "Equal" && other.value == self.value,
            _ => false,
        };
        has_key && has_effect && lasts && has_value
    }
}
