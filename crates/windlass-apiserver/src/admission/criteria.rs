//! The requests that a webhook, a policy or a binding wants to see, as a configuration says.

use serde_json::Value;

use crate::wire::LabelSelector;

/// The requests that a webhook, a policy or a binding wants to see.
pub(super) struct Criteria {
    pub(super) rules: Vec<Rule>,
    /// The requests that `rules` cover, and that are not wanted all the same.
    pub(super) excluded: Vec<Rule>,
    /// True if all requests are wanted, except the excluded requests. There are no `rules`.
    pub(super) covers_all: bool,
    /// True if requests that reach the objects of a rule through another version or group count, too.
    pub(super) matches_equivalent: bool,
    /// `None` selects everything.
    pub(super) namespace_selector: Option<LabelSelector>,
    /// `None` selects everything.
    pub(super) object_selector: Option<LabelSelector>,
}

/// The requests that a webhook wants to see.
pub(super) struct Rule {
    pub(super) operations: Vec<String>,
    pub(super) groups: Vec<String>,
    pub(super) versions: Vec<String>,
    pub(super) resources: Vec<String>,
    /// The names of objects. Without names, all objects count.
    pub(super) names: Vec<String>,
    pub(super) scope: Scope,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Scope {
    All,
    Cluster,
    Namespaced,
}

impl Criteria {
    /// Reads the criteria of a webhook.
    pub(super) fn of_webhook(webhook: &Value) -> Self {
        Self { rules: rules(&webhook["rules"]), covers_all: false, ..Self::of_resources(webhook) }
    }

    /// Reads the `matchConstraints` of a policy, or the `matchResources` of a binding.
    pub(super) fn of_resources(resources: &Value) -> Self {
        let rules_of_resources = rules(&resources["resourceRules"]);
        Self {
            covers_all: rules_of_resources.is_empty(),
            rules: rules_of_resources,
            excluded: rules(&resources["excludeResourceRules"]),
            matches_equivalent: resources["matchPolicy"] != "Exact",
            namespace_selector: selector(&resources["namespaceSelector"]),
            object_selector: selector(&resources["objectSelector"]),
        }
    }
}

fn rules(rules: &Value) -> Vec<Rule> {
    rules.as_array().into_iter().flatten().map(rule).collect()
}

fn rule(rule: &Value) -> Rule {
    Rule {
        operations: texts(&rule["operations"]),
        groups: texts(&rule["apiGroups"]),
        versions: texts(&rule["apiVersions"]),
        resources: texts(&rule["resources"]),
        names: texts(&rule["resourceNames"]),
        scope: match rule["scope"].as_str() {
            Some("Cluster") => Scope::Cluster,
            Some("Namespaced") => Scope::Namespaced,
            _ => Scope::All,
        },
    }
}

fn selector(selector: &Value) -> Option<LabelSelector> {
    Some(LabelSelector::from_object(selector)).filter(|selector| !selector.is_empty())
}

/// Returns the texts of a list.
pub(super) fn texts(list: &Value) -> Vec<String> {
    list.as_array().into_iter().flatten().filter_map(Value::as_str).map(str::to_owned).collect()
}
