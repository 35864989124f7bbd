use serde_json::{Value, json};

use super::*;

fn deployment(change: Value) -> Deployment {
    let mut object = json!({
        "metadata": {"name": "web", "generation": 2},
        "spec": {"replicas": 3, "selector": {"matchLabels": {"app": "web"}}, "template": template("v2")},
    });
    for (key, value) in change.as_object().unwrap() {
        object["spec"][key] = value.clone();
    }
    serde_json::from_value(object).unwrap()
}

fn template(image: &str) -> Value {
    json!({"metadata": {"labels": {"app": "web"}}, "spec": {"containers": [{"name": "c", "image": image}]}})
}

fn set(name: &str, image: &str, revision: u64, wanted: i32, available: i32) -> Arc<ReplicaSet> {
    let mut template = template(image);
    template["metadata"]["labels"][HASH_LABEL] = json!(name);
    let object = json!({
        "metadata": {"name": name, "generation": 1, "annotations": {REVISION: revision.to_string()}},
        "spec": {"replicas": wanted, "selector": {}, "template": template},
        "status": {"replicas": wanted, "readyReplicas": available, "availableReplicas": available, "observedGeneration": 1},
    });
    Arc::new(serde_json::from_value(object).unwrap())
}

fn now() -> Timestamp {
    "2026-01-01T00:00:00Z".parse().unwrap()
}

fn scale(name: &str, from: i32, to: i32) -> Task {
    Task::Scale { name: name.into(), from, to }
}

fn condition<'a>(plan: &'a Plan, kind: &str) -> (&'a str, &'a str) {
    let found = plan.status.conditions.iter().flatten().find(|condition| condition.type_ == kind).unwrap();
    (&found.status, found.reason.as_deref().unwrap())
}

#[test]
fn the_first_rollout_makes_one_set_of_full_size() {
    let plan = plan(&deployment(json!({})), &[], now());
    let [Task::Create { hash, replicas: 3, revision: 1 }] = plan.tasks.as_slice() else { panic!("{plan:?}") };
    assert_eq!(hash.len(), 10);
    assert_eq!(condition(&plan, "Available"), ("False", "MinimumReplicasUnavailable"));
    assert_eq!(condition(&plan, "Progressing"), ("True", "ReplicaSetUpdated"));
}

#[test]
fn a_finished_rollout_rests_and_says_so() {
    let plan = plan(&deployment(json!({})), &[set("a", "v2", 1, 3, 3)], now());
    assert_eq!(plan.tasks, []);
    assert_eq!(condition(&plan, "Progressing"), ("True", "NewReplicaSetAvailable"));
    assert_eq!(condition(&plan, "Available"), ("True", "MinimumReplicasAvailable"));
    assert_eq!(plan.status.unavailable_replicas, None);
    assert_eq!(plan.wake_at, None);
}

#[test]
fn another_template_starts_another_set_within_the_surge() {
    let plan = plan(&deployment(json!({})), &[set("a", "v1", 1, 3, 3)], now());
    assert!(matches!(plan.tasks.as_slice(), [Task::Create { replicas: 1, revision: 2, .. }]), "{plan:?}");
}

#[test]
fn old_pods_go_as_new_ones_serve() {
    let sets = [set("a", "v1", 1, 3, 3), set("b", "v2", 2, 1, 1)];
    assert_eq!(plan(&deployment(json!({})), &sets, now()).tasks, [scale("a", 3, 2)]);
    let sets = [set("a", "v1", 1, 2, 2), set("b", "v2", 2, 1, 1)];
    assert_eq!(plan(&deployment(json!({})), &sets, now()).tasks, [scale("b", 1, 2)]);
}

#[test]
fn recreate_waits_until_the_old_pods_are_gone() {
    let recreate = deployment(json!({"strategy": {"type": "Recreate"}}));
    let tasks = plan(&recreate, &[set("a", "v1", 1, 3, 3)], now()).tasks;
    assert!(
        matches!(tasks.as_slice(), [Task::Create { replicas: 0, .. }, Task::Scale { to: 0, .. }]),
        "{tasks:?}"
    );
    let sets = [set("a", "v1", 1, 0, 0), set("b", "v2", 2, 0, 0)];
    assert_eq!(plan(&recreate, &sets, now()).tasks, [scale("b", 0, 3)]);
}

#[test]
fn recreate_waits_for_terminating_pods_and_for_a_status_that_is_not_stale() {
    let recreate = deployment(json!({"strategy": {"type": "Recreate"}}));
    let changed = |change: fn(&mut ReplicaSet)| {
        let mut old = ReplicaSet::clone(&set("a", "v1", 1, 0, 0));
        change(&mut old);
        plan(&recreate, &[Arc::new(old), set("b", "v2", 2, 0, 0)], now()).tasks
    };
    assert_eq!(changed(|_| {}), [scale("b", 0, 3)]);
    assert_eq!(changed(|old| old.status.as_mut().unwrap().terminating_replicas = Some(1)), []);
    assert_eq!(changed(|old| old.metadata.generation = Some(2)), []);
}

#[test]
fn a_roll_back_numbers_the_old_set_anew() {
    let sets = [set("a", "v2", 1, 0, 0), set("b", "v1", 2, 3, 3)];
    let plan = plan(&deployment(json!({})), &sets, now());
    assert_eq!(plan.tasks[0], Task::SetRevision { name: "a".into(), revision: 3 });
    assert_eq!(plan.revision, 3);
}

#[test]
fn a_paused_deployment_scales_but_does_not_roll() {
    let paused = deployment(json!({"paused": true, "replicas": 5}));
    assert_eq!(plan(&paused, &[set("a", "v1", 1, 3, 3)], now()).tasks, [scale("a", 3, 5)]);
}

fn sized(set: &Arc<ReplicaSet>, desired: i32, maximum: i32) -> Arc<ReplicaSet> {
    let mut set = ReplicaSet::clone(set);
    let annotations = set.metadata.annotations.get_or_insert_default();
    annotations.insert(DESIRED.to_owned(), desired.to_string());
    annotations.insert(MAXIMUM.to_owned(), maximum.to_string());
    Arc::new(set)
}

#[test]
fn a_rollout_that_is_paused_makes_no_new_pods() {
    let paused = deployment(json!({"paused": true, "replicas": 10}));
    let sets = [sized(&set("a", "v1", 1, 8, 8), 10, 13), sized(&set("b", "v2", 2, 2, 2), 10, 13)];
    assert_eq!(plan(&paused, &sets, now()).tasks, [scale("a", 8, 11)], "the largest set takes the surge");
    let sets = [sized(&set("a", "v1", 1, 10, 10), 10, 13), sized(&set("b", "v2", 2, 3, 3), 10, 13)];
    assert_eq!(plan(&paused, &sets, now()).tasks, []);
}

#[test]
fn a_rollout_that_is_scaled_keeps_the_parts_of_its_sets() {
    for paused in [true, false] {
        let sets = [sized(&set("a", "v1", 1, 6, 6), 10, 13), sized(&set("b", "v2", 2, 7, 0), 10, 13)];
        let grown = deployment(json!({"paused": paused, "replicas": 14}));
        assert_eq!(plan(&grown, &sets, now()).tasks, [scale("a", 6, 8), scale("b", 7, 10)]);
        let shrunk = deployment(json!({"paused": paused, "replicas": 4}));
        assert_eq!(plan(&shrunk, &sets, now()).tasks, [scale("a", 6, 2), scale("b", 7, 3)]);
        let nothing = deployment(json!({"paused": paused, "replicas": 0}));
        assert_eq!(plan(&nothing, &sets, now()).tasks, [scale("a", 6, 0), scale("b", 7, 0)]);
    }
}

#[test]
fn a_set_that_keeps_its_size_gets_the_new_sizes_of_the_deployment() {
    let sets = [sized(&set("a", "v1", 1, 1, 1), 4, 5), sized(&set("b", "v2", 2, 4, 4), 4, 5)];
    let grown = deployment(json!({"replicas": 5}));
    assert_eq!(plan(&grown, &sets, now()).tasks, [scale("a", 1, 1), scale("b", 4, 6)]);
    let sets = [sized(&set("a", "v1", 1, 1, 1), 5, 7), sized(&set("b", "v2", 2, 6, 5), 5, 7)];
    assert_eq!(plan(&grown, &sets, now()).tasks, [scale("b", 6, 5)], "then the rollout goes on");
}

#[test]
fn the_history_keeps_as_many_sets_as_it_may() {
    let limited = deployment(json!({"revisionHistoryLimit": 1}));
    let sets = [set("a", "v0", 1, 0, 0), set("b", "v1", 2, 0, 0), set("c", "v2", 3, 3, 3)];
    assert_eq!(plan(&limited, &sets, now()).tasks, [Task::DeleteOld { name: "a".into() }]);
}

#[test]
fn a_rollout_without_progress_runs_into_its_deadline() {
    let mut stuck = deployment(json!({"progressDeadlineSeconds": 60}));
    let sets = [set("a", "v2", 1, 3, 0)];
    let first = plan(&stuck, &sets, now());
    assert_eq!(first.wake_at, Some(now() + SignedDuration::from_secs(60)));
    stuck.status = Some(first.status);
    let later = plan(&stuck, &sets, now() + SignedDuration::from_secs(61));
    assert_eq!(condition(&later, "Progressing"), ("False", "ProgressDeadlineExceeded"));
    stuck.status = Some(later.status);
    let much_later = plan(&stuck, &sets, now() + SignedDuration::from_secs(600));
    assert_eq!(condition(&much_later, "Progressing"), ("False", "ProgressDeadlineExceeded"), "it stays so");
}

#[test]
fn reporting_the_same_twice_changes_nothing() {
    let mut deployment = deployment(json!({}));
    let sets = [set("a", "v2", 1, 3, 3)];
    let first = plan(&deployment, &sets, now()).status;
    deployment.status = Some(first.clone());
    assert_eq!(plan(&deployment, &sets, now() + SignedDuration::from_secs(5)).status, first);
}

#[test]
fn a_failure_of_the_new_set_is_reported_rather_than_that_of_an_old_set() {
    let failing = |set: Arc<ReplicaSet>, message: &str| {
        let mut set = ReplicaSet::clone(&set);
        let condition = json!({
            "type": "ReplicaFailure", "status": "True", "reason": "FailedCreate", "message": message,
            "lastTransitionTime": "2026-01-01T00:00:00Z",
        });
        set.status.as_mut().unwrap().conditions = Some(vec![serde_json::from_value(condition).unwrap()]);
        Arc::new(set)
    };
    let mut deployment = deployment(json!({}));
    let old = failing(set("a", "v1", 1, 3, 3), "old");
    let new = failing(set("b", "v2", 2, 1, 0), "new");
    let message = |plan: &Plan| {
        let mut conditions = plan.status.conditions.iter().flatten();
        conditions.find(|found| found.type_ == "ReplicaFailure").and_then(|found| found.message.clone())
    };
    let both = plan(&deployment, &[Arc::clone(&old), new], now());
    assert_eq!(message(&both).as_deref(), Some("new"));
    let one = plan(&deployment, &[old, set("b", "v2", 2, 1, 0)], now());
    assert_eq!(message(&one).as_deref(), Some("old"));
    deployment.status = Some(both.status);
    let none = plan(&deployment, &[set("a", "v1", 1, 3, 3), set("b", "v2", 2, 1, 0)], now());
    assert_eq!(message(&none), None);
}
