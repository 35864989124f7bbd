//! The cases and numbers are those of kube-controller-manager's own tests.

use serde_json::{Value, json};

use super::*;

fn now() -> Timestamp {
    "2026-01-01T01:00:00Z".parse().unwrap()
}

/// A pod that runs, with requests of CPU in thousandths.
fn pod(index: usize, cpu: u32, change: Value) -> Arc<Pod> {
    let mut pod = json!({
        "metadata": {"name": format!("p{index}")},
        "spec": {"containers": [{"name": "c", "resources": {"requests": {"cpu": format!("{cpu}m")}}}]},
        "status": {
            "phase": "Running",
            "startTime": "2026-01-01T00:00:00Z",
            "conditions": [{"type": "Ready", "status": "True", "lastTransitionTime": "2026-01-01T00:00:05Z"}],
        },
    });
    for (part, fields) in change.as_object().unwrap() {
        for (key, value) in fields.as_object().unwrap() {
            pod[part][key] = value.clone();
        }
    }
    Arc::new(serde_json::from_value(pod).unwrap())
}

fn unready() -> Value {
    let condition = json!({"type": "Ready", "status": "False", "lastTransitionTime": "2026-01-01T00:00:05Z"});
    json!({"status": {"conditions": [condition]}})
}

fn failed() -> Value {
    json!({"status": {"phase": "Failed"}})
}

fn leaving() -> Value {
    json!({"metadata": {"deletionTimestamp": "2026-01-01T00:59:00Z"}})
}

fn ready() -> Value {
    json!({})
}

/// Pods that each request a CPU.
fn pods(changes: Vec<Value>) -> Vec<Arc<Pod>> {
    changes.into_iter().enumerate().map(|(index, change)| pod(index, 1000, change)).collect()
}

fn values(levels: &[i64]) -> Values {
    levels.iter().enumerate().map(|(index, level)| (format!("p{index}"), *level)).collect()
}

fn calculator(pods: &[Arc<Pod>], current: i32) -> Calculator<'_> {
    Calculator { pods, current, tolerances: Tolerances { down: 0.1, up: 0.1 }, now: now() }
}

/// Returns the replicas, the utilization and the average usage.
fn cpu(pods: &[Arc<Pod>], current: i32, levels: &[i64], target: i32) -> (i32, i32, i64) {
    let found = calculator(pods, current).by_utilization(values(levels), "cpu", None, target).unwrap();
    (found.replicas, found.utilization.unwrap(), found.usage)
}

#[test]
fn utilization_against_the_requests_gives_the_replicas() {
    let all = |count: usize| pods(vec![ready(); count]);
    assert_eq!(cpu(&all(3), 3, &[300, 500, 700], 30), (5, 50, 500), "up");
    assert_eq!(cpu(&all(5), 5, &[100, 300, 500, 250, 250], 50), (3, 28, 280), "down");
    let requests = [pod(0, 900, ready()), pod(1, 1000, ready()), pod(2, 1100, ready())];
    assert_eq!(cpu(&requests, 3, &[1010, 1030, 1020], 100), (3, 102, 1020), "within the tolerance");
}

#[test]
fn pods_that_are_not_ready_count_as_idle_when_the_target_grows() {
    let some = pods(vec![unready(), ready(), ready()]);
    assert_eq!(cpu(&some, 3, &[300, 500, 700], 30), (4, 60, 600));
    let most = pods(vec![ready(), unready(), unready()]);
    assert_eq!(cpu(&most, 3, &[400, 500, 700], 30), (3, 40, 400), "no change");
}

#[test]
fn pods_that_end_do_not_count() {
    for gone in [failed(), leaving()] {
        let all = pods(vec![ready(), ready(), gone.clone(), gone]);
        assert_eq!(cpu(&all, 2, &[500, 700], 30), (4, 60, 600));
    }
}

#[test]
fn pods_without_a_metric_make_a_change_smaller() {
    let two = pods(vec![ready(), ready()]);
    assert_eq!(cpu(&two, 2, &[1000], 100), (2, 100, 1000));
    assert_eq!(cpu(&two, 2, &[1900], 100), (2, 190, 1900), "one that is missing is idle");
    assert_eq!(cpu(&two, 2, &[600], 100), (2, 60, 600), "one that is missing is busy");
    let four = pods(vec![ready(); 4]);
    assert_eq!(cpu(&four, 4, &[400, 95], 100), (3, 24, 247));
}

#[test]
fn metrics_that_cannot_be_used_say_why() {
    let without = [pod(0, 1000, json!({"spec": {"containers": [{"name": "c"}]}}))];
    let error = |pods: &[Arc<Pod>], levels: &[i64], container| {
        calculator(pods, 1).by_utilization(values(levels), "cpu", container, 50).unwrap_err()
    };
    assert_eq!(error(&without, &[100], None), "missing request for cpu in container c of Pod p0");
    assert_eq!(error(&without, &[100], Some("x")), "container x not found in Pod p0");
    assert_eq!(error(&[], &[], None), "no pods returned by selector while calculating replica count");
    let starting = pods(vec![unready()]);
    let text = "did not receive metrics for targeted pods (pods might be unready)";
    assert_eq!(error(&starting, &[100], None), text);
}

#[test]
fn averages_and_totals_give_the_replicas() {
    let three = pods(vec![ready(); 3]);
    let average = calculator(&three, 3).by_average(values(&[20_000, 10_000, 30_000]), "", 15_000).unwrap();
    assert_eq!((average.replicas, average.usage), (4, 20_000));
    let total = calculator(&three, 3).by_total(20_000, 15_000).unwrap();
    assert_eq!((total.replicas, total.usage), (4, 20_000));
    assert_eq!(calculator(&three, 3).by_total(15_100, 15_000).unwrap().replicas, 3, "within the tolerance");
    let share = calculator(&three, 3).by_share(8600, 2150, 3);
    assert_eq!((share.replicas, share.usage), (4, 2867));
    let six = pods(vec![ready(); 6]);
    let share = calculator(&six, 6).by_share(8600, 2867, 6);
    assert_eq!((share.replicas, share.usage), (3, 1434));
}

#[test]
fn huge_numbers_are_the_largest_number() {
    let one = pods(vec![ready()]);
    assert_eq!(calculator(&one, 1).by_total(i64::MAX, 1).unwrap().replicas, i32::MAX);
    assert_eq!(calculator(&one, 1).by_share(i64::MAX, 1, 0).replicas, i32::MAX);
    let average = calculator(&one, 1).by_average(values(&[i64::MAX]), "", 1).unwrap();
    assert_eq!(average.replicas, i32::MAX);
}
