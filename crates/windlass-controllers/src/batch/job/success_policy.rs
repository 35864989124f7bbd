//! `successPolicy`: when an indexed Job has succeeded before all indexes have.

use k8s_openapi::api::batch::v1::SuccessPolicy;

use super::indexes::Indexes;

/// Returns the message for the first rule that the succeeded indexes satisfy.
pub(super) fn met(policy: Option<&SuccessPolicy>, completions: i32, succeeded: &Indexes) -> Option<String> {
    let rules = policy.map(|policy| policy.rules.as_slice()).unwrap_or_default();
    let holds = rules.iter().position(|rule| match &rule.succeeded_indexes {
        Some(text) => {
            let required = Indexes::parse(text, completions);
            let found = required.overlap(succeeded);
            !required.is_empty()
                && (found == required.count() || rule.succeeded_count.is_some_and(|count| found >= count))
        }
        None => rule.succeeded_count.is_some_and(|count| succeeded.count() >= count),
    });
    holds.filter(|_| !succeeded.is_empty()).map(|index| format!("Matched rules at index {index}"))
}

#[cfg(test)]
mod tests {
    use serde_json::{Value, json};

    use super::*;

    fn index(rules: Value, succeeded: &str) -> Option<String> {
        let policy: SuccessPolicy = serde_json::from_value(json!({ "rules": rules })).unwrap();
        met(Some(&policy), 10, &Indexes::parse(succeeded, 10))
    }

    #[test]
    fn a_rule_asks_for_indexes_or_for_a_number_of_them() {
        let all = json!([{"succeededIndexes": "0-1"}]);
        assert_eq!(index(all.clone(), "0"), None);
        assert_eq!(index(all, "0-3").as_deref(), Some("Matched rules at index 0"));
        let some = json!([{"succeededIndexes": "8-9"}, {"succeededIndexes": "0-3", "succeededCount": 2}]);
        assert_eq!(index(some, "1,3").as_deref(), Some("Matched rules at index 1"));
        assert_eq!(index(json!([{"succeededCount": 2}]), "1,7").as_deref(), Some("Matched rules at index 0"));
    }
}
