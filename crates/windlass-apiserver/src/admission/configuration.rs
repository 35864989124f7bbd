//! Webhook configurations, read once and used for every write.

use std::time::Duration;

use serde_json::Value;

use super::Operation;
use super::calls::Call;
use crate::store::{ResourceId, View};
use crate::webhook::Endpoint;
use crate::wire::LabelSelector;

const DEFAULT_TIMEOUT: u64 = 10;

/// A webhook of a configuration.
pub(super) struct Hook {
    pub(super) name: String,
    pub(super) endpoint: Endpoint,
    pub(super) rules: Vec<Rule>,
    /// True if requests that reach the objects of a rule through another version or group count, too.
    pub(super) matches_equivalent: bool,
    /// `None` selects everything.
    pub(super) namespace_selector: Option<LabelSelector>,
    /// `None` selects everything.
    pub(super) object_selector: Option<LabelSelector>,
    /// True if a request goes on if the webhook cannot be called.
    pub(super) ignores_failure: bool,
    pub(super) timeout: Duration,
    pub(super) allows_dry_run: bool,
    /// True if the webhook is called again after a later webhook changed the object.
    pub(super) is_reinvoked: bool,
    /// The version of reviews that the webhook accepts and this server knows.
    pub(super) review_version: Option<&'static str>,
}

impl Hook {
    /// Returns a call of the webhook, to be counted.
    pub(super) fn call(&self, step: &'static str, operation: Operation) -> Call<'_> {
        Call { webhook: &self.name, step, operation, ignores_failure: self.ignores_failure }
    }
}

/// The requests that a webhook wants to see.
pub(super) struct Rule {
    pub(super) operations: Vec<String>,
    pub(super) groups: Vec<String>,
    pub(super) versions: Vec<String>,
    pub(super) resources: Vec<String>,
    pub(super) scope: Scope,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Scope {
    All,
    Cluster,
    Namespaced,
}

/// Returns the webhooks of all configurations, sorted by the name of the configuration, and then in
/// configuration order.
pub(super) fn hooks(view: &View, configurations: &ResourceId) -> Vec<Hook> {
    let mut hooks = Vec::new();
    for (_, stored) in view.range(configurations, None) {
        let configuration = stored.value();
        hooks.extend(configuration["webhooks"].as_array().into_iter().flatten().map(hook));
    }
    hooks
}

fn hook(webhook: &Value) -> Hook {
    let text = |field: &str| webhook[field].as_str().unwrap_or_default();
    let versions = texts(&webhook["admissionReviewVersions"]);
    let known = |version: &String| ["v1", "v1beta1"].into_iter().find(|known| known == version);
    Hook {
        name: text("name").to_owned(),
        endpoint: Endpoint::of(&webhook["clientConfig"]),
        rules: webhook["rules"].as_array().into_iter().flatten().map(rule).collect(),
        matches_equivalent: text("matchPolicy") != "Exact",
        namespace_selector: selector(&webhook["namespaceSelector"]),
        object_selector: selector(&webhook["objectSelector"]),
        ignores_failure: text("failurePolicy") == "Ignore",
        timeout: Duration::from_secs(webhook["timeoutSeconds"].as_u64().unwrap_or(DEFAULT_TIMEOUT)),
        allows_dry_run: matches!(text("sideEffects"), "None" | "NoneOnDryRun"),
        is_reinvoked: text("reinvocationPolicy") == "IfNeeded",
        review_version: versions.iter().find_map(known),
    }
}

fn rule(rule: &Value) -> Rule {
    Rule {
        operations: texts(&rule["operations"]),
        groups: texts(&rule["apiGroups"]),
        versions: texts(&rule["apiVersions"]),
        resources: texts(&rule["resources"]),
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

fn texts(list: &Value) -> Vec<String> {
    list.as_array().into_iter().flatten().filter_map(Value::as_str).map(str::to_owned).collect()
}
