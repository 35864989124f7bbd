//! The APIServices of the group versions that this server serves itself.

use serde_json::{Value, json};

use crate::resource::ServedResources;

/// The priority of a group, and that of its version, in discovery: those of the real server.
const PRIORITIES: [(&str, &str, i64, i64); 21] = [
    ("", "v1", 18_000, 1),
    ("admissionregistration.k8s.io", "v1", 16_700, 15),
    ("apiextensions.k8s.io", "v1", 16_700, 15),
    ("apps", "v1", 17_800, 15),
    ("authentication.k8s.io", "v1", 17_700, 15),
    ("authorization.k8s.io", "v1", 17_600, 15),
    ("autoscaling", "v1", 17_500, 15),
    ("autoscaling", "v2", 17_500, 30),
    ("batch", "v1", 17_400, 15),
    ("certificates.k8s.io", "v1", 17_300, 15),
    ("coordination.k8s.io", "v1", 16_500, 15),
    ("discovery.k8s.io", "v1", 16_200, 15),
    ("events.k8s.io", "v1", 17_750, 15),
    ("flowcontrol.apiserver.k8s.io", "v1", 16_100, 21),
    ("networking.k8s.io", "v1", 17_200, 15),
    ("node.k8s.io", "v1", 16_300, 15),
    ("policy", "v1", 17_100, 15),
    ("rbac.authorization.k8s.io", "v1", 17_000, 15),
    ("resource.k8s.io", "v1", 16_200, 21),
    ("scheduling.k8s.io", "v1", 16_600, 15),
    ("storage.k8s.io", "v1", 16_800, 15),
];

/// Returns the APIServices of the built-in group versions.
pub(crate) fn of_builtin(served: &ServedResources, time: &str) -> Vec<Value> {
    let is_served = |(group, version): (&str, &str)| served.version(group, version).is_some();
    let priorities = PRIORITIES.into_iter().filter(|(group, version, ..)| is_served((group, version)));
    priorities
        .map(|(group, version, group_priority, version_priority)| {
            json!({
                "kind": "APIService",
                "apiVersion": "apiregistration.k8s.io/v1",
                "metadata": {
                    "name": format!("{version}.{group}"),
                    "labels": {"kube-aggregator.kubernetes.io/automanaged": "onstart"},
                },
                "spec": {
                    "group": group,
                    "version": version,
                    "groupPriorityMinimum": group_priority,
                    "versionPriority": version_priority,
                },
                "status": {"conditions": [{
                    "type": "Available",
                    "status": "True",
                    "lastTransitionTime": time,
                    "reason": "Local",
                    "message": "Local APIServices are always available",
                }]},
            })
        })
        .collect()
}
