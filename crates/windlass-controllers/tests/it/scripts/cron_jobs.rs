//! CronJobs. The time of the last run is set back, so that a run is due at once.

use serde_json::{Value, json};

use super::stage::Stage;

const TABS: &str = "batch/v1/cronjobs";
const TAB: &str = "batch/v1/cronjobs/tab";
const SHOWN: [&str; 3] = [TABS, "batch/v1/jobs", "v1/pods"];

fn tab(change: Value) -> Value {
    let pod = json!({
        "containers": [{"name": "c", "image": "i"}], "restartPolicy": "Never", "automountServiceAccountToken": false,
    });
    let template = json!({"metadata": {"labels": {"l": "v"}}, "spec": {"template": {"spec": pod}}});
    let mut spec = json!({"schedule": "0 0 1 1 *", "suspend": true, "jobTemplate": template});
    spec.as_object_mut().unwrap().extend(change.as_object().unwrap().clone());
    json!({"metadata": {"name": "tab"}, "spec": spec})
}

/// Makes a run of the schedule due.
async fn due(stage: &Stage, schedule: &str) {
    stage.patch(TAB, json!({"spec": {"schedule": schedule, "suspend": true}})).await;
    let long_ago = json!({"status": {"lastScheduleTime": "2024-06-01T00:00:00Z"}});
    stage.patch(&format!("{TAB}/status"), long_ago).await;
    stage.patch(TAB, json!({"spec": {"suspend": false}})).await;
}

#[tokio::test]
async fn a_run_that_is_due_becomes_a_job() {
    let mut stage = Stage::open("cron_job_runs", &SHOWN).await;
    let limits =
        json!({"successfulJobsHistoryLimit": 1, "failedJobsHistoryLimit": 0, "timeZone": "Asia/Tokyo"});
    stage.create(TABS, tab(limits)).await;
    stage.settle("created suspended").await;
    due(&stage, "0 0 1 1 *").await;
    stage.settle("a run is due").await;
    stage.end(&stage.active().await[0], 0).await;
    stage.settle("its job succeeded").await;
    due(&stage, "0 0 1 2 *").await;
    stage.settle("another run is due").await;
    stage.end(&stage.active().await[0], 0).await;
    stage.settle("the older job goes").await;
    stage.delete(TAB).await;
    stage.settle("deleted").await;
    stage.finish().await;
}

#[tokio::test]
async fn one_run_at_a_time() {
    let mut stage = Stage::open("cron_job_policies", &SHOWN).await;
    stage.create(TABS, tab(json!({"concurrencyPolicy": "Forbid"}))).await;
    due(&stage, "0 0 1 1 *").await;
    stage.settle("a run is due").await;
    due(&stage, "0 0 1 2 *").await;
    stage.settle("another run is due, and must wait").await;
    stage.patch(TAB, json!({"spec": {"concurrencyPolicy": "Replace"}})).await;
    stage.settle("it replaces the first").await;
    stage.finish().await;
}
