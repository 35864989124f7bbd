use serde_json::{Value, json};

use super::*;

fn cron_job(spec: Value, status: Value) -> CronJob {
    let template = json!({"metadata": {"labels": {"l": "v"}}, "spec": {"template": {}}});
    let mut base = json!({"schedule": "0 * * * *", "jobTemplate": template});
    base.as_object_mut().unwrap().extend(spec.as_object().unwrap().clone());
    let metadata =
        json!({"name": "c", "namespace": "n", "uid": "u", "creationTimestamp": "2026-01-01T00:30:00Z"});
    serde_json::from_value(json!({"metadata": metadata, "spec": base, "status": status})).unwrap()
}

fn job(name: &str, condition: Option<&str>) -> Arc<Job> {
    let owner =
        json!({"apiVersion": "batch/v1", "kind": "CronJob", "name": "c", "uid": "u", "controller": true});
    let conditions: Vec<Value> =
        condition.into_iter().map(|kind| json!({"type": kind, "status": "True"})).collect();
    let status = json!({
        "conditions": conditions, "startTime": "2026-01-01T00:00:00Z",
        "completionTime": condition.map(|_| "2026-01-01T00:10:00Z"),
    });
    let metadata = json!({"name": name, "namespace": "n", "uid": name, "ownerReferences": [owner]});
    Arc::new(
        serde_json::from_value(json!({"metadata": metadata, "spec": {"template": {}}, "status": status}))
            .unwrap(),
    )
}

fn active(names: &[&str]) -> Value {
    let active: Vec<Value> = names.iter().map(|name| json!({"name": name, "uid": name})).collect();
    json!({"active": active})
}

fn next(cron_job: &CronJob, jobs: &[Arc<Job>], now: &str) -> Plan {
    plan(cron_job, jobs, now.parse().unwrap())
}

fn reasons(plan: &Plan) -> Vec<&str> {
    plan.events.iter().map(|event| event.reason).collect()
}

#[test]
fn a_job_is_created_when_its_time_has_come() {
    let plain = cron_job(json!({}), json!({}));
    let early = next(&plain, &[], "2026-01-01T00:59:00Z");
    assert_eq!(early.create, None);
    assert_eq!(early.wake_at, Some("2026-01-01T01:00:00.1Z".parse().unwrap()));
    let due = next(&plain, &[], "2026-01-01T01:00:00.1Z");
    let created = due.create.unwrap();
    assert_eq!(created.name_any(), "c-29453820");
    assert_eq!(created.annotations()[SCHEDULED_AT], "2026-01-01T01:00:00Z");
    assert_eq!(due.wake_at, Some("2026-01-01T02:00:00.1Z".parse().unwrap()));
}

#[test]
fn of_many_missed_times_the_last_one_counts() {
    let plain = cron_job(json!({"timeZone": "Asia/Tokyo"}), json!({}));
    let late = next(&plain, &[], "2026-01-11T01:20:00Z");
    assert_eq!(late.create.unwrap().annotations()[SCHEDULED_AT], "2026-01-11T10:00:00+09:00");
    assert_eq!(late.events[0].reason, "TooManyMissedTimes");
    let deadline = cron_job(json!({"startingDeadlineSeconds": 60}), json!({}));
    assert_eq!(next(&deadline, &[], "2026-01-11T01:20:00Z").create, None);
}

#[test]
fn the_concurrency_policy_decides_when_a_job_still_runs() {
    let running = [job("c-1", None)];
    let at = "2026-01-01T01:00:01Z";
    let with =
        |policy: &str| next(&cron_job(json!({"concurrencyPolicy": policy}), active(&["c-1"])), &running, at);
    let allow = with("Allow");
    assert_eq!((allow.create.is_some(), allow.delete.len()), (true, 0));
    let forbid = with("Forbid");
    assert_eq!((forbid.create.is_some(), reasons(&forbid)), (false, vec!["JobAlreadyActive"]));
    let replace = with("Replace");
    assert_eq!((replace.create.is_some(), replace.delete.len()), (true, 1));
    assert_eq!(replace.status.active, None);
}

#[test]
fn finished_jobs_leave_the_list_and_the_oldest_are_deleted() {
    let limits = json!({"successfulJobsHistoryLimit": 1, "failedJobsHistoryLimit": 0, "suspend": true});
    let jobs = [job("c-1", Some("Complete")), job("c-2", Some("Complete")), job("c-3", Some("Failed"))];
    let step = next(&cron_job(limits, active(&["c-2", "c-9"])), &jobs, "2026-01-01T00:31:00Z");
    let deleted: Vec<String> = step.delete.iter().map(|job| job.name_any()).collect();
    assert_eq!(deleted, ["c-1", "c-3"]);
    assert_eq!(reasons(&step), ["SawCompletedJob", "MissingJob"]);
    assert_eq!(step.status.active, None);
    assert_eq!(step.status.last_successful_time, Some(Time("2026-01-01T00:10:00Z".parse().unwrap())));
}

#[test]
fn what_cannot_be_read_is_told() {
    let bad = |spec: Value| next(&cron_job(spec, json!({})), &[], "2026-01-01T01:00:01Z");
    assert_eq!(reasons(&bad(json!({"schedule": "x"}))), ["UnparseableSchedule"]);
    assert_eq!(reasons(&bad(json!({"timeZone": "Mars/Base"}))), ["UnknownTimeZone"]);
    assert_eq!(reasons(&bad(json!({"schedule": "TZ=UTC 0 0 * * *"}))), ["UnsupportedSchedule"]);
    let never = bad(json!({"schedule": "59 23 31 2 *"}));
    assert_eq!(reasons(&never), ["InvalidSchedule"]);
    let message =
        "invalid schedule: 59 23 31 2 * : time difference between two schedules is less than 1 second";
    assert_eq!((never.events[0].message.as_str(), never.wake_at), (message, None));
}
