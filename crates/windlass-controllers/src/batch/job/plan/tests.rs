use serde_json::{Value, json};

use super::*;

mod world;

fn job(spec: Value, status: Value) -> Job {
    let mut base = json!({
        "parallelism": 2, "completions": 3, "backoffLimit": 1,
        "selector": {"matchLabels": {"job": "j"}},
        "template": {"metadata": {"labels": {"job": "j"}}, "spec": {"containers": [], "restartPolicy": "Never"}},
    });
    base.as_object_mut().unwrap().extend(spec.as_object().unwrap().clone());
    let metadata = json!({"name": "j", "namespace": "n", "uid": "u"});
    serde_json::from_value(json!({"metadata": metadata, "spec": base, "status": status})).unwrap()
}

fn found(name: &str, phase: &str, index: Option<i32>) -> Arc<Pod> {
    let annotations =
        index.map(|index| json!({"batch.kubernetes.io/job-completion-index": index.to_string()}));
    let metadata = json!({
        "name": name, "uid": name, "annotations": annotations, "finalizers": ["batch.kubernetes.io/job-tracking"],
        "creationTimestamp": "2026-01-01T00:00:00Z",
    });
    Arc::new(serde_json::from_value(json!({"metadata": metadata, "status": {"phase": phase}})).unwrap())
}

fn now() -> Timestamp {
    "2026-01-01T00:01:00Z".parse().unwrap()
}

fn next(job: &Job, pods: &[Arc<Pod>]) -> Plan {
    plan(job, pods, BackOff::default(), now())
}

fn conditions_of(status: &JobStatus) -> Vec<&str> {
    status.conditions.iter().flatten().map(|condition| condition.type_.as_str()).collect()
}

fn names(pods: &[Arc<Pod>]) -> Vec<&str> {
    pods.iter().map(|pod| pod.metadata.name.as_deref().unwrap()).collect()
}

#[test]
fn as_many_pods_run_as_are_still_needed() {
    let plain = job(json!({}), json!({}));
    let first = next(&plain, &[]);
    assert_eq!((first.create.len(), first.after.active), (2, Some(2)));
    let started = job(json!({}), json!({"succeeded": 2}));
    assert_eq!(next(&started, &[]).create.len(), 1, "one completion is left");
    let running = [found("a", "Running", None), found("b", "Running", None)];
    assert_eq!(names(&next(&started, &running).discard), ["a"]);
}

#[test]
fn a_finished_pod_is_announced_released_and_then_counted() {
    let plain = job(json!({}), json!({}));
    let step = next(&plain, &[found("a", "Succeeded", None), found("b", "Running", None)]);
    let uncounted = step.before.uncounted_terminated_pods.clone().unwrap();
    assert_eq!(uncounted.succeeded, Some(vec!["a".to_owned()]));
    assert_eq!((step.before.succeeded, step.after.succeeded), (None, Some(1)));
    assert_eq!(names(&step.release), ["a"]);
    assert_eq!(step.create.len(), 1);
}

#[test]
fn a_job_completes_when_its_last_pod_is_counted() {
    let started = job(json!({}), json!({"succeeded": 2, "uncountedTerminatedPods": {}}));
    let step = next(&started, &[found("a", "Succeeded", None)]);
    assert_eq!(conditions_of(&step.before), ["SuccessCriteriaMet"]);
    assert_eq!(conditions_of(&step.after), ["SuccessCriteriaMet", "Complete"]);
    assert_eq!(step.after.completion_time, Some(Time(now())));
    assert_eq!(step.end[0].reason, "Completed");
}

#[test]
fn beyond_the_back_off_limit_the_running_pods_are_killed_and_the_job_waits_for_them() {
    let started = job(json!({}), json!({"failed": 1}));
    let pods = [found("a", "Failed", None), found("b", "Running", None)];
    let step = next(&started, &pods);
    assert_eq!(names(&step.kill), ["b"]);
    assert_eq!(conditions_of(&step.after), ["FailureTarget"]);
    assert_eq!((step.after.failed, step.after.terminating), (Some(3), Some(1)));
    let last = job(json!({}), serde_json::to_value(&step.after).unwrap());
    let end = next(&last, &[]);
    assert_eq!(conditions_of(&end.after), ["FailureTarget", "Failed"]);
    assert_eq!(end.end[0].reason, "BackoffLimitExceeded");
}

#[test]
fn a_failure_delays_the_next_pod() {
    let plain = job(json!({"backoffLimit": 6}), json!({}));
    let failed = found("a", "Failed", None);
    let mut recent = (*failed).clone();
    recent.metadata.creation_timestamp = Some(Time(now()));
    let step = next(&plain, &[Arc::new(recent)]);
    assert_eq!(step.create.len(), 0);
    assert_eq!(step.wake_at, Some("2026-01-01T00:01:10Z".parse().unwrap()));
    assert_eq!(next(&plain, &[failed]).create.len(), 2, "that was long ago");
}

#[test]
fn a_suspended_job_runs_nothing_and_says_so() {
    let suspended = job(json!({"suspend": true}), json!({}));
    let step = next(&suspended, &[found("a", "Running", None)]);
    assert_eq!(names(&step.discard), ["a"]);
    assert_eq!((conditions_of(&step.after), step.after.start_time.clone()), (vec!["Suspended"], None));
    assert_eq!(step.events[0].reason, "Suspended");
}

#[test]
fn a_deadline_fails_the_job() {
    let late = job(json!({"activeDeadlineSeconds": 30}), json!({"startTime": "2026-01-01T00:00:00Z"}));
    assert_eq!(conditions_of(&next(&late, &[]).after), ["FailureTarget", "Failed"]);
    let soon = job(json!({"activeDeadlineSeconds": 90}), json!({"startTime": "2026-01-01T00:00:00Z"}));
    assert_eq!(next(&soon, &[]).wake_at, Some("2026-01-01T00:01:30Z".parse().unwrap()));
}

#[test]
fn each_index_has_a_pod_and_a_limit() {
    let indexed = json!({"completionMode": "Indexed", "backoffLimitPerIndex": 0, "backoffLimit": i32::MAX});
    let first = next(&job(indexed.clone(), json!({})), &[]);
    let prefixes: Vec<_> =
        first.create.iter().map(|pod| pod.metadata.generate_name.clone().unwrap()).collect();
    assert_eq!(prefixes, ["j-0-", "j-1-"]);
    let pods = [found("a", "Succeeded", Some(0)), found("b", "Failed", Some(1))];
    let step = next(&job(indexed.clone(), json!({})), &pods);
    assert_eq!(step.create[0].metadata.generate_name.as_deref(), Some("j-2-"));
    assert_eq!(step.after.completed_indexes.as_deref(), Some("0"));
    assert_eq!(step.after.failed_indexes.as_deref(), Some("1"));
    let status = serde_json::to_value(&step.after).unwrap();
    let end = next(&job(indexed, status), &[found("c", "Succeeded", Some(2))]);
    assert_eq!(end.end[0].reason, "FailedIndexes");
}

#[test]
fn a_success_policy_ends_the_job_early() {
    let policy = json!({
        "completionMode": "Indexed", "completions": 3,
        "successPolicy": {"rules": [{"succeededIndexes": "0"}]},
    });
    let step =
        next(&job(policy, json!({})), &[found("a", "Succeeded", Some(0)), found("b", "Running", Some(1))]);
    assert_eq!(names(&step.kill), ["b"]);
    assert_eq!(conditions_of(&step.after), ["SuccessCriteriaMet"]);
    assert_eq!(step.after.failed, None, "pods that are stopped by success do not count as failed");
}
