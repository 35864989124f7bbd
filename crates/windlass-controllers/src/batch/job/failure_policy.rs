//! `podFailurePolicy`: the action of a failed pod for the Job.

use k8s_openapi::api::batch::v1::{
    PodFailurePolicy, PodFailurePolicyOnExitCodesRequirement, PodFailurePolicyRule,
};
use k8s_openapi::api::core::v1::{ContainerStatus, Pod, PodStatus};
use kube_core::ResourceExt;

/// The action of a failed pod.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum PodFailureAction {
    /// The pod counts towards the back-off limit: no rule matches, or the rule has the action `Count`.
    Count,
    /// The pod does not count.
    Ignore,
    /// The index of the pod fails.
    FailIndex,
    /// The Job fails, with this message.
    FailJob(String),
}

/// Returns the action of the first rule that matches the pod.
pub(super) fn match_policy(policy: Option<&PodFailurePolicy>, pod: &Pod) -> PodFailureAction {
    let status = pod.status.clone().unwrap_or_default();
    for (index, rule) in policy.iter().flat_map(|policy| policy.rules.iter().enumerate()) {
        let Some(what) = matching(rule, &status, pod) else { continue };
        return match rule.action.as_str() {
            "Ignore" => PodFailureAction::Ignore,
            "FailIndex" => PodFailureAction::FailIndex,
            "FailJob" => PodFailureAction::FailJob(format!("{what} matching FailJob rule at index {index}")),
            "Count" => PodFailureAction::Count,
            _ => continue,
        };
    }
    PodFailureAction::Count
}

/// Returns the part of the pod that matches the rule, in words.
fn matching(rule: &PodFailurePolicyRule, status: &PodStatus, pod: &Pod) -> Option<String> {
    let pod = format!("{}/{}", pod.namespace().unwrap_or_default(), pod.name_any());
    if let Some(codes) = &rule.on_exit_codes {
        let containers = status.container_statuses.iter().flatten();
        let mut all = containers.chain(status.init_container_statuses.iter().flatten());
        return all.find_map(|container| {
            let code = matching_code(codes, container)?;
            Some(format!("Container {} for pod {pod} failed with exit code {code}", container.name))
        });
    }
    let patterns = rule.on_pod_conditions.as_deref().unwrap_or_default();
    let matched = status.conditions.iter().flatten().find(|condition| {
        let wanted = |status: &str| status == condition.status;
        patterns.iter().any(|pattern| {
            pattern.type_ == condition.type_ && wanted(pattern.status.as_deref().unwrap_or("True"))
        })
    });
    matched.map(|condition| format!("Pod {pod} has condition {}", condition.type_))
}

fn matching_code(codes: &PodFailurePolicyOnExitCodesRequirement, container: &ContainerStatus) -> Option<i32> {
    let code = container.state.as_ref()?.terminated.as_ref()?.exit_code;
    let named = codes.container_name.as_ref().is_none_or(|name| *name == container.name);
    let listed = codes.values.contains(&code);
    let holds = match codes.operator.as_str() {
        "In" => listed,
        "NotIn" => !listed,
        _ => false,
    };
    (code != 0 && named && holds).then_some(code)
}

#[cfg(test)]
mod tests {
    use serde_json::{Value, json};

    use super::*;

    fn action(rules: Value) -> PodFailureAction {
        let policy: PodFailurePolicy = serde_json::from_value(json!({ "rules": rules })).unwrap();
        let pod: Pod = serde_json::from_value(json!({
            "metadata": {"name": "p", "namespace": "n"},
            "status": {
                "conditions": [{"type": "DisruptionTarget", "status": "True"}],
                "containerStatuses": [{"name": "c", "image": "", "imageID": "", "ready": false, "restartCount": 0,
                    "state": {"terminated": {"exitCode": 3}}}],
            },
        }))
        .unwrap();
        match_policy(Some(&policy), &pod)
    }

    #[test]
    fn the_first_rule_that_matches_decides() {
        let codes = |operator: &str, values: &[i32]| json!({"operator": operator, "values": values});
        let fail = json!({"action": "FailJob", "onExitCodes": codes("In", &[3])});
        let other = json!({"action": "Ignore", "onExitCodes": codes("In", &[4])});
        let disrupted =
            json!({"action": "Ignore", "onPodConditions": [{"type": "DisruptionTarget", "status": "True"}]});
        assert_eq!(action(json!([other])), PodFailureAction::Count);
        assert_eq!(action(json!([disrupted, fail])), PodFailureAction::Ignore);
        assert_eq!(
            action(json!([other, fail])),
            PodFailureAction::FailJob(
                "Container c for pod n/p failed with exit code 3 matching FailJob rule at index 1".to_owned()
            )
        );
        let index = json!({"action": "FailIndex", "onExitCodes": codes("NotIn", &[4])});
        assert_eq!(action(json!([index])), PodFailureAction::FailIndex);
    }
}
