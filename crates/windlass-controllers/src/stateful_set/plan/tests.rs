use serde_json::{Value, json};

use super::*;

fn set(change: Value) -> StatefulSet {
    let mut set = json!({
        "metadata": {"name": "web", "namespace": "default", "uid": "u", "generation": 3},
        "spec": {
            "replicas": 3, "selector": {"matchLabels": {"app": "web"}}, "serviceName": "web",
            "template": {"metadata": {"labels": {"app": "web"}}, "spec": {"containers": []}},
            "updateStrategy": {"type": "RollingUpdate", "rollingUpdate": {"partition": 0}},
        },
    });
    json_patch(&mut set, change);
    serde_json::from_value(set).unwrap()
}

fn json_patch(into: &mut Value, change: Value) {
    match (into, change) {
        (Value::Object(into), Value::Object(change)) => {
            for (key, value) in change {
                json_patch(into.entry(key).or_insert(Value::Null), value);
            }
        }
        (into, change) => *into = change,
    }
}

fn pod(ordinal: i32, revision: &str, change: Value) -> Arc<Pod> {
    let name = format!("web-{ordinal}");
    let mut pod = json!({
        "metadata": {"name": name, "uid": name, "labels": {
            "app": "web", "controller-revision-hash": revision, "statefulset.kubernetes.io/pod-name": name}},
        "status": {"phase": "Running", "conditions": [
            {"type": "Ready", "status": "True", "lastTransitionTime": "2026-01-01T00:00:00Z"}]},
    });
    json_patch(&mut pod, change);
    Arc::new(serde_json::from_value(pod).unwrap())
}

fn pending() -> Value {
    json!({"status": {"phase": "Pending", "conditions": []}})
}

fn leaving() -> Value {
    json!({"metadata": {"deletionTimestamp": "2026-01-01T00:00:00Z"}})
}

/// Plans for pods with the current revision `old` and the new revision `new`.
fn plan_for(set: &StatefulSet, pods: &[Arc<Pod>], claims: &[PersistentVolumeClaim]) -> Plan {
    let template = set.spec.clone().unwrap().template;
    let version = |name: &str| Version { name: name.to_owned(), template: template.clone() };
    let claims = claims.iter().map(|claim| (claim.name_any(), Arc::new(claim.clone()))).collect();
    plan(Input {
        set,
        pods,
        claims: &claims,
        current: &version("old"),
        update: &version("new"),
        collisions: 0,
        now: "2026-01-01T00:00:30Z".parse().unwrap(),
    })
}

fn shown(plan: &Plan) -> Vec<String> {
    let text = |task: &Task| match task {
        Task::CreateClaim { claim, pod } => format!("claim {} for {pod}", claim.name_any()),
        Task::SetClaimOwners { claim, owners, .. } => {
            let kinds: Vec<&str> = owners.iter().map(|owner| owner.kind.as_str()).collect();
            format!("owners of {}: {kinds:?}", claim.name_any())
        }
        Task::ReportConflict { claim } => format!("conflict {claim}"),
        Task::Create(pod) => format!("create {} {}", pod.name_any(), pod.labels()[POD_REVISION]),
        Task::Update(pod) => format!("update {}", pod.name_any()),
        Task::Delete(pod) => format!("delete {}", pod.name_any()),
        Task::Fail { pod, message } => format!("fail {pod}: {message}"),
    };
    plan.tasks.iter().map(text).collect()
}

fn tasks(set: &StatefulSet, pods: &[Arc<Pod>]) -> Vec<String> {
    shown(&plan_for(set, pods, &[]))
}

#[test]
fn pods_are_created_one_after_the_other() {
    let set = set(json!({}));
    assert_eq!(tasks(&set, &[]), ["create web-0 new"]);
    let nothing: [&str; 0] = [];
    assert_eq!(tasks(&set, &[pod(0, "new", pending())]), nothing, "a stuck pod blocks");
    assert_eq!(tasks(&set, &[pod(0, "new", json!({}))]), ["create web-1 new"]);
}

#[test]
fn in_parallel_all_are_created_at_once() {
    let set = set(json!({"spec": {"podManagementPolicy": "Parallel", "ordinals": {"start": 5}}}));
    assert_eq!(tasks(&set, &[pod(6, "new", pending())]), ["create web-5 new", "create web-7 new"]);
}

#[test]
fn scaling_down_goes_from_the_highest_ordinal_and_waits_for_the_others() {
    let set = set(json!({"spec": {"replicas": 1}}));
    let all =
        |second: Value, last: Value| [pod(0, "new", json!({})), pod(1, "new", second), pod(2, "new", last)];
    let nothing: [&str; 0] = [];
    assert_eq!(tasks(&set, &all(json!({}), json!({}))), ["delete web-2"]);
    assert_eq!(tasks(&set, &all(json!({}), leaving())), nothing);
    assert_eq!(tasks(&set, &all(json!({}), pending())), ["delete web-2"], "the unhealthy one may go");
    assert_eq!(tasks(&set, &all(pending(), pending())), nothing, "not the second unhealthy one");
}

#[test]
fn an_update_goes_backwards_down_to_the_partition() {
    let rolling = set(json!({}));
    let all =
        |revisions: [&str; 3]| [0, 1, 2].map(|n| pod(n, revisions[usize::try_from(n).unwrap()], json!({})));
    assert_eq!(tasks(&rolling, &all(["old", "old", "old"])), ["delete web-2"]);
    assert_eq!(tasks(&rolling, &all(["old", "old", "new"])), ["delete web-1"]);
    let parted = set(json!({"spec": {"updateStrategy": {"rollingUpdate": {"partition": 2}}}}));
    let nothing: [&str; 0] = [];
    assert_eq!(tasks(&parted, &all(["old", "old", "new"])), nothing);
    assert_eq!(tasks(&parted, &all(["old", "old", "new"])[1..]), ["create web-0 old"], "below the partition");
    let manual = set(json!({"spec": {"updateStrategy": {"type": "OnDelete", "rollingUpdate": null}}}));
    assert_eq!(tasks(&manual, &all(["old", "old", "old"])), nothing);
}

#[test]
fn the_new_revision_is_current_when_all_pods_have_it() {
    let set = set(json!({}));
    let mixed = [pod(0, "old", json!({})), pod(1, "new", json!({})), pod(2, "new", json!({}))];
    let status = plan_for(&set, &mixed, &[]).status;
    assert_eq!((status.current_replicas, status.updated_replicas), (None, Some(2)), "one is being deleted");
    let done = [0, 1, 2].map(|n| pod(n, "new", json!({})));
    let status = plan_for(&set, &done, &[]).status;
    assert_eq!(status.current_revision.as_deref(), Some("new"));
    assert_eq!((status.current_replicas, status.available_replicas), (Some(3), Some(3)));
}

#[test]
fn a_pod_that_ended_is_deleted_first() {
    let failed = json!({"status": {"phase": "Failed"}});
    assert_eq!(tasks(&set(json!({})), &[pod(0, "new", failed)]), ["delete web-0"]);
}

#[test]
fn a_ready_pod_counts_after_min_ready_seconds() {
    let set = set(json!({"spec": {"minReadySeconds": 60}}));
    let plan = plan_for(&set, &[pod(0, "new", json!({}))], &[]);
    assert_eq!((plan.status.ready_replicas, plan.status.available_replicas), (Some(1), Some(0)));
    assert_eq!(plan.wake_at, Some("2026-01-01T00:01:00Z".parse().unwrap()));
    assert!(plan.tasks.is_empty());
}

#[test]
fn claims_are_made_before_their_pod_and_block_it_while_they_are_terminating() {
    let claims = json!({"spec": {"volumeClaimTemplates": [{"metadata": {"name": "data"}, "spec": {}}]}});
    let set = set(claims);
    let plan = plan_for(&set, &[], &[]);
    assert_eq!(shown(&plan), ["claim data-web-0 for web-0", "create web-0 new"]);
    let Task::Create(created) = &plan.tasks[1] else { panic!("no pod") };
    let volume = &created.spec.as_ref().unwrap().volumes.as_ref().unwrap()[0];
    assert_eq!(volume.persistent_volume_claim.as_ref().unwrap().claim_name, "data-web-0");
    let gone: PersistentVolumeClaim = serde_json::from_value(
        json!({"metadata": {"name": "data-web-0", "deletionTimestamp": "2026-01-01T00:00:00Z"}}),
    )
    .unwrap();
    assert_eq!(shown(&plan_for(&set, &[], &[gone])), ["fail web-0: pvc data-web-0 is being deleted"]);
}

#[test]
fn a_set_that_is_being_deleted_touches_nothing() {
    let set = set(leaving());
    assert!(plan_for(&set, &[], &[]).tasks.is_empty());
}
