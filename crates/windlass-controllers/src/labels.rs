//! Label selectors in the form that objects contain.

use std::collections::BTreeMap;

use k8s_openapi::apimachinery::pkg::apis::meta::v1::{LabelSelector, LabelSelectorRequirement};

/// Returns whether a selector matches these labels. An empty selector matches everything; an unknown operator matches nothing.
pub(crate) fn selects(selector: &LabelSelector, labels: Option<&BTreeMap<String, String>>) -> bool {
    let value = |key: &str| labels.and_then(|labels| labels.get(key)).map(String::as_str);
    selector.match_labels.iter().flatten().all(|(key, wanted)| value(key) == Some(wanted))
        && selector.match_expressions.iter().flatten().all(|rule| holds(rule, value(&rule.key)))
}

fn holds(rule: &LabelSelectorRequirement, actual: Option<&str>) -> bool {
    let listed = || actual.is_some_and(|actual| rule.values.iter().flatten().any(|value| value == actual));
    match rule.operator.as_str() {
        "In" => listed(),
        "NotIn" => !listed(),
        "Exists" => actual.is_some(),
        "DoesNotExist" => actual.is_none(),
        _ => false,
    }
}

#[cfg(test)]
mod tests {
    use serde_json::{Value, json};

    use super::*;

    fn selected(selector: Value) -> bool {
        let labels = BTreeMap::from([("app".to_owned(), "web".to_owned())]);
        selects(&serde_json::from_value(selector).unwrap(), Some(&labels))
    }

    #[test]
    fn labels_and_expressions_must_all_match() {
        assert!(selected(json!({})));
        assert!(selected(json!({"matchLabels": {"app": "web"}})));
        assert!(!selected(json!({"matchLabels": {"app": "web", "tier": "front"}})));
        for (operator, key, values, expected) in [
            ("In", "app", json!(["web", "api"]), true),
            ("In", "tier", json!(["front"]), false),
            ("NotIn", "app", json!(["web"]), false),
            ("NotIn", "tier", json!(["front"]), true),
            ("Exists", "app", json!(null), true),
            ("DoesNotExist", "app", json!(null), false),
            ("Almost", "app", json!(["web"]), false),
        ] {
            let rule = json!({"key": key, "operator": operator, "values": values});
            assert_eq!(selected(json!({"matchExpressions": [rule]})), expected, "{operator} {key}");
        }
    }
}
