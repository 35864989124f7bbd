//! Jobs.

use serde_json::{Value, json};

use super::stage::Stage;

const JOBS: &str = "batch/v1/jobs";
const WORK: &str = "batch/v1/jobs/work";
const SHOWN: [&str; 2] = [JOBS, "v1/pods"];

fn job(change: Value) -> Value {
    let template = json!({"spec": {
        "containers": [{"name": "c", "image": "i"}], "restartPolicy": "Never", "automountServiceAccountToken": false,
    }});
    let mut spec = json!({"parallelism": 2, "completions": 3, "backoffLimit": 1, "template": template});
    spec.as_object_mut().unwrap().extend(change.as_object().unwrap().clone());
    json!({"metadata": {"name": "work"}, "spec": spec})
}

#[tokio::test]
async fn a_job_fails_beyond_its_back_off_limit() {
    let mut stage = Stage::open("job_failed", &SHOWN).await;
    stage.create(JOBS, job(json!({}))).await;
    stage.settle("created").await;
    let pods = stage.active().await;
    stage.end(&pods[0], 0).await;
    stage.settle("one succeeded").await;
    stage.end(&pods[1], 1).await;
    stage.settle("one failed").await;
    let pods = stage.active().await;
    stage.end(&pods[0], 1).await;
    stage.settle("another failed").await;
    stage.delete(WORK).await;
    stage.settle("deleted").await;
    stage.finish().await;
}

#[tokio::test]
async fn a_job_completes_and_is_collected_after_its_time_to_live() {
    let mut stage = Stage::open("job_complete", &SHOWN).await;
    stage.create(JOBS, job(json!({"completions": 2}))).await;
    stage.settle("created").await;
    for pod in stage.active().await {
        stage.run(&pod, true).await;
    }
    stage.settle("both run").await;
    for pod in stage.active().await {
        stage.end(&pod, 0).await;
    }
    stage.settle("both succeeded").await;
    stage.patch(WORK, json!({"spec": {"ttlSecondsAfterFinished": 0}})).await;
    stage.settle("collected").await;
    stage.finish().await;
}

#[tokio::test]
async fn a_suspended_job_gives_its_pods_back() {
    let mut stage = Stage::open("job_suspended", &SHOWN).await;
    stage.create(JOBS, job(json!({"suspend": true, "completions": null}))).await;
    stage.settle("created suspended").await;
    stage.patch(WORK, json!({"spec": {"suspend": false}})).await;
    stage.settle("resumed").await;
    let pods = stage.active().await;
    for pod in &pods {
        stage.bind(pod, "n").await;
        stage.run(pod, true).await;
    }
    stage.settle("both run").await;
    stage.patch(WORK, json!({"spec": {"parallelism": 1}})).await;
    stage.settle("one is too many").await;
    stage.patch(WORK, json!({"spec": {"suspend": true}})).await;
    stage.settle("suspended").await;
    for pod in &pods {
        if stage.list("v1/pods").await.iter().any(|found| found["metadata"]["name"] == pod.as_str()) {
            stage.remove(pod).await;
        }
    }
    stage.settle("the pods have gone").await;
    stage.patch(WORK, json!({"spec": {"suspend": false}})).await;
    stage.settle("resumed again").await;
    stage.end(&stage.active().await[0], 0).await;
    stage.settle("a pod of the work queue succeeded").await;
    stage.finish().await;
}

#[tokio::test]
async fn indexes_succeed_and_fail_on_their_own() {
    let mut stage = Stage::open("job_indexed", &SHOWN).await;
    let indexed = json!({
        "completionMode": "Indexed", "completions": 4, "backoffLimit": null,
        "backoffLimitPerIndex": 0, "maxFailedIndexes": 2,
    });
    stage.create(JOBS, job(indexed)).await;
    stage.settle("created").await;
    let pods = stage.active().await;
    stage.end(&pods[1], 0).await;
    stage.settle("index 1 succeeded").await;
    stage.end(&pods[0], 1).await;
    stage.settle("index 0 failed").await;
    for pod in stage.active().await {
        stage.end(&pod, 0).await;
    }
    stage.settle("the others succeeded").await;
    stage.finish().await;
}

#[tokio::test]
async fn a_success_policy_stops_the_other_pods() {
    let mut stage = Stage::open("job_success_policy", &SHOWN).await;
    let policy = json!({
        "completionMode": "Indexed", "successPolicy": {"rules": [{"succeededIndexes": "1-2", "succeededCount": 1}]},
    });
    stage.create(JOBS, job(policy)).await;
    stage.settle("created").await;
    let pods = stage.active().await;
    for pod in &pods {
        stage.bind(pod, "n").await;
        stage.run(pod, true).await;
    }
    stage.settle("both run").await;
    stage.end(&pods[1], 0).await;
    stage.settle("index 1 succeeded").await;
    stage.remove(&pods[0]).await;
    stage.settle("index 0 has gone").await;
    stage.finish().await;
}

#[tokio::test]
async fn a_failure_policy_fails_the_job_at_once() {
    let mut stage = Stage::open("job_failure_policy", &SHOWN).await;
    let policy = json!({"podFailurePolicy": {"rules": [
        {"action": "Ignore", "onExitCodes": {"operator": "In", "values": [7]}},
        {"action": "FailJob", "onExitCodes": {"containerName": "c", "operator": "NotIn", "values": [1, 2]}},
    ]}});
    stage.create(JOBS, job(policy)).await;
    stage.settle("created").await;
    let pods = stage.active().await;
    stage.bind(&pods[1], "n").await;
    stage.run(&pods[1], true).await;
    stage.end(&pods[0], 42).await;
    stage.settle("one failed for good").await;
    stage.remove(&pods[1]).await;
    stage.settle("the other has gone").await;
    stage.finish().await;
}

#[tokio::test]
async fn a_deadline_ends_a_job() {
    let mut stage = Stage::open("job_deadline", &SHOWN).await;
    stage.create(JOBS, job(json!({"activeDeadlineSeconds": 1, "parallelism": 1}))).await;
    stage.settle("too late").await;
    stage.finish().await;
}

#[tokio::test]
async fn a_job_adopts_counts_and_releases_pods() {
    let mut stage = Stage::open("job_adoption", &SHOWN).await;
    let spec = json!({
        "containers": [{"name": "c", "image": "i"}], "restartPolicy": "Never", "automountServiceAccountToken": false,
    });
    let labels = json!({"app": "work"});
    stage.create("v1/pods", json!({"metadata": {"name": "orphan", "labels": labels}, "spec": spec})).await;
    let template = json!({"metadata": {"labels": labels}, "spec": spec});
    let change = json!({"manualSelector": true, "selector": {"matchLabels": labels}, "template": template});
    stage.create(JOBS, job(change)).await;
    stage.settle("a pod is adopted").await;
    stage.end("orphan", 0).await;
    stage.settle("the adopted pod succeeded").await;
    let pods = stage.active().await;
    stage.patch(&format!("v1/pods/{}", pods[0]), json!({"metadata": {"labels": {"app": "other"}}})).await;
    stage.settle("a pod is released").await;
    stage.delete(WORK).await;
    stage.settle("deleted").await;
    stage.finish().await;
}
