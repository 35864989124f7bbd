//! The APIServices of the group versions that this server serves.

use std::collections::BTreeSet;
use std::sync::Arc;

use serde_json::{Value, json};

use crate::meta;
use crate::resource::ServedResources;
use crate::state::State;
use crate::store::{CommitError, Draft, Write};
use windlass_kinds::kind_names::API_SERVICE;
use windlass_kinds::resources::API_SERVICES;

/// The label of the APIServices that the server writes.
const AUTOMANAGED: &str = "kube-aggregator.kubernetes.io/automanaged";
/// The priorities of the groups and versions of custom resources.
const CUSTOM_PRIORITIES: (i64, i64) = (1_000, 100);

/// The priority of a group and a version in discovery, as in the real server.
const PRIORITIES: [(&str, &str, i64, i64); 22] = [
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
    ("storagemigration.k8s.io", "v1", 15_800, 15),
];

/// Returns the APIServices of the built-in group versions.
pub(crate) fn of_builtin(served: &ServedResources, time: &str) -> Vec<Value> {
    let is_served = |(group, version): (&str, &str)| served.version(group, version).is_some();
    let priorities = PRIORITIES.into_iter().filter(|(group, version, ..)| is_served((group, version)));
    priorities
        .map(|(group, version, by_group, by_version)| {
            local((group, version), "onstart", (by_group, by_version), time)
        })
        .collect()
}

/// Makes the APIService of a group version.
fn local(
    (group, version): (&str, &str),
    managed: &str,
    (by_group, by_version): (i64, i64),
    time: &str,
) -> Value {
    let mut object = json!({
        "kind": API_SERVICE,
        "apiVersion": "apiregistration.k8s.io/v1",
        "metadata": {"name": format!("{version}.{group}"), "labels": {AUTOMANAGED: managed}},
        "spec": {
            "version": version,
            "groupPriorityMinimum": by_group,
            "versionPriority": by_version,
        },
        "status": {"conditions": [{
            "type": "Available",
            "status": "True",
            "lastTransitionTime": time,
            "reason": "Local",
            "message": "Local APIServices are always available",
        }]},
    });
    if !group.is_empty() {
        object["spec"]["group"] = group.into();
    }
    object
}

/// Creates and removes the APIServices of custom resources, to agree with the served resources.
pub(crate) fn follow(state: &State) {
    loop {
        let served = state.served.load_full();
        // Clients write APIServices, and definitions change, at the same time.
        if follow_once(state, &served) && Arc::ptr_eq(&served, &state.served.load_full()) {
            return;
        }
    }
}

/// Returns false if another write of an APIService came first.
fn follow_once(state: &State, served: &ServedResources) -> bool {
    let Some(resource) = state.builtin.builtin(&API_SERVICES, "v1") else {
        return true;
    };
    let view = state.store.view();
    let mut wanted: BTreeSet<String> = BTreeSet::new();
    let now = state.env.now();
    let mut is_done = true;
    let mut commit = |key: &str, expected: Option<u64>, draft: Option<Draft>| {
        let write = Write { id: &resource.storage, key, expected, draft, now };
        let committed = state.store.commit_now(write, |_| Ok(()));
        is_done &= !matches!(committed, Err(CommitError::Conflict));
    };
    for group in served.groups().iter().filter(|group| state.builtin.group(&group.name).is_none()) {
        for version in &group.versions {
            let name = format!("{}.{}", version.name, group.name);
            if view.get(&resource.storage, &name).is_none() {
                let time = state.env.now_rfc3339();
                let mut object = local((&group.name, &version.name), "true", CUSTOM_PRIORITIES, &time);
                meta::set(&mut object, "uid", Some(state.env.uid().into()));
                meta::set(&mut object, "creationTimestamp", Some(time.into()));
                commit(&name, None, Some(resource.draft(&object, state.store.labels(), now)));
            }
            wanted.insert(name);
        }
    }
    for (name, stored) in view.range(&resource.storage, None) {
        if stored.labels().get(AUTOMANAGED) == Some("true") && !wanted.contains(&**name) {
            commit(name, Some(stored.rv), None);
        }
    }
    is_done
}
