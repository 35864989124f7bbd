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

/// Parses a label selector in the form of a query: `app=web,tier in (front,back),!old`.
///
/// # Errors
/// The part of the text that is no requirement.
pub(crate) fn parse(text: &str) -> Result<LabelSelector, String> {
    let rules: Result<Vec<_>, String> = requirements(text).map(requirement).collect();
    Ok(LabelSelector { match_labels: None, match_expressions: Some(rules?) })
}

/// Splits at the commas that are not in parentheses.
fn requirements(text: &str) -> impl Iterator<Item = &str> {
    let mut depth = 0_usize;
    text.split(move |c: char| {
        match c {
            '(' => depth += 1,
            ')' => depth = depth.saturating_sub(1),
            _ => {}
        }
        c == ',' && depth == 0
    })
    .map(str::trim)
}

fn requirement(text: &str) -> Result<LabelSelectorRequirement, String> {
    let wrong = || format!("unable to parse requirement: {text:?}");
    let (key, operator, values) = if let Some(key) = text.strip_prefix('!') {
        (key, "DoesNotExist", None)
    } else if let Some((key, list)) = text.split_once('(') {
        let list = list.strip_suffix(')').ok_or_else(wrong)?;
        let values = list.split(',').map(|value| value.trim().to_owned()).collect();
        match key.trim().split_once(' ') {
            Some((key, word)) if word.trim() == "in" => (key, "In", Some(values)),
            Some((key, word)) if word.trim() == "notin" => (key, "NotIn", Some(values)),
            _ => return Err(wrong()),
        }
    } else if let Some((key, value)) = text.split_once("!=") {
        (key, "NotIn", Some(vec![value.trim().to_owned()]))
    } else if let Some((key, value)) = text.split_once('=') {
        let value = value.strip_prefix('=').unwrap_or(value);
        (key, "In", Some(vec![value.trim().to_owned()]))
    } else {
        (text, "Exists", None)
    };
    let key = key.trim();
    if key.is_empty() || key.contains(|c: char| c.is_whitespace() || "=!<>()".contains(c)) {
        return Err(wrong());
    }
    Ok(LabelSelectorRequirement { key: key.to_owned(), operator: operator.to_owned(), values })
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
    fn the_text_of_a_selector_selects_as_the_selector() {
        let labels = BTreeMap::from([("app".to_owned(), "web".to_owned())]);
        for (text, expected) in [
            ("app=web", true),
            ("app==web", true),
            ("app = web", true),
            ("app!=web", false),
            ("tier!=web", true),
            ("app in (api, web)", true),
            ("app notin (api,web)", false),
            ("app", true),
            ("!app", false),
            ("!tier,app in (web),app=web", true),
            ("app=web,tier=front", false),
        ] {
            assert_eq!(selects(&parse(text).unwrap(), Some(&labels)), expected, "{text}");
        }
        for text in ["", "app=web,", "app in web", "app > 1", "a b", "app in (web"] {
            assert!(parse(text).is_err(), "{text}");
        }
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
