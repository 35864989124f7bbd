//! Evictions, and the PodDisruptionBudgets that have a say in them.

use serde_json::{Value, json};

use crate::fixtures::pod;
use crate::harness::{Api, MERGE_PATCH, Reply};

/// A running pod with the label `app: web`, ready or not, and its path.
async fn running(api: &Api, ns: &str, name: &str, ready: &str) -> String {
    let pods = format!("/api/v1/namespaces/{ns}/pods");
    let mut body = pod(name);
    body["metadata"]["labels"] = json!({"app": "web"});
    api.post(&pods, body).await.is(201);
    let path = format!("{pods}/{name}");
    let status = json!({"status": {
        "phase": "Running",
        "conditions": [{"type": "Ready", "status": ready}],
    }});
    api.patch(&format!("{path}/status"), MERGE_PATCH, status).await.is(200);
    path
}

/// Creates a budget for pods with the label `app: web`, with a controller's status. Returns the path of the
/// budget.
async fn budget(api: &Api, ns: &str, spec: Value, status: Value) -> String {
    let budgets = format!("/apis/policy/v1/namespaces/{ns}/poddisruptionbudgets");
    let mut body = json!({
        "metadata": {"name": "b"},
        "spec": {"minAvailable": 1, "selector": {"matchLabels": {"app": "web"}}},
    });
    for (field, value) in spec.as_object().into_iter().flatten() {
        body["spec"][field] = value.clone();
    }
    api.post(&budgets, body).await.is(201);
    let path = format!("{budgets}/b");
    api.patch(&format!("{path}/status"), MERGE_PATCH, json!({"status": status})).await.is(200);
    path
}

async fn evict(api: &Api, pod: &str) -> Reply {
    let name = pod.rsplit('/').next().unwrap();
    api.post(&format!("{pod}/eviction"), json!({"metadata": {"name": name}})).await
}

fn condition(reply: &Reply, kind: &str) -> Value {
    let conditions = reply.at("/status/conditions");
    let found = conditions.as_array().into_iter().flatten().find(|condition| condition["type"] == kind);
    found.cloned().unwrap_or_default()
}

#[tokio::test]
async fn an_eviction_spends_the_budget_and_tells_of_itself() {
    let api = Api::start();
    if api.is_shared() {
        // The real server's controller manager rewrites the status of budgets.
        return;
    }
    let ns = api.namespace().await;
    let pod = running(&api, &ns, "a", "True").await;
    let held = json!({"metadata": {"finalizers": ["example.com/hold"]}});
    api.patch(&pod, MERGE_PATCH, held).await.is(200);
    let budget =
        budget(&api, &ns, json!({}), json!({"disruptionsAllowed": 1, "observedGeneration": 1})).await;
    evict(&api, &pod).await.is(201);
    let left = api.get(&budget).await.is(200);
    assert_eq!(left.at("/status/disruptionsAllowed"), 0);
    assert!(left.at("/status/disruptedPods/a").is_string());
    assert_eq!(condition(&left, "DisruptionAllowed")["reason"], "InsufficientPods");
    let pod = api.get(&pod).await.is(200);
    let target = condition(&pod, "DisruptionTarget");
    assert_eq!((&target["status"], &target["reason"]), (&json!("True"), &json!("EvictionByEvictionAPI")));
    assert!(pod.at("/metadata/deletionTimestamp").is_string());
}

#[tokio::test]
async fn a_dry_run_spends_nothing_and_marks_nothing() {
    let api = Api::start();
    if api.is_shared() {
        return;
    }
    let ns = api.namespace().await;
    let pod = running(&api, &ns, "a", "True").await;
    let budget =
        budget(&api, &ns, json!({}), json!({"disruptionsAllowed": 1, "observedGeneration": 1})).await;
    let before = (api.get(&pod).await.json(), api.get(&budget).await.json());
    let body = json!({"metadata": {"name": "a"}, "deleteOptions": {"dryRun": ["All"]}});
    api.post(&format!("{pod}/eviction"), body).await.is(201);
    api.post(&format!("{pod}/eviction?dryRun=All"), json!({"metadata": {"name": "a"}})).await.is(201);
    assert_eq!(before, (api.get(&pod).await.json(), api.get(&budget).await.json()));
}

#[tokio::test]
async fn a_spent_budget_refuses() {
    let api = Api::start();
    if api.is_shared() {
        return;
    }
    let ns = api.namespace().await;
    let pod = running(&api, &ns, "a", "True").await;
    let status = json!({"observedGeneration": 1, "desiredHealthy": 1, "currentHealthy": 1});
    let budget = budget(&api, &ns, json!({}), status).await;
    let refused = evict(&api, &pod).await.is(429);
    assert_eq!(
        refused.at("/details/causes/0/message"),
        "The disruption budget b needs 1 healthy pods and has 1 currently"
    );
    // Its controller has to see the last change first.
    api.patch(&budget, MERGE_PATCH, json!({"spec": {"minAvailable": 2}})).await.is(200);
    let refused = evict(&api, &pod).await.is(429);
    assert_eq!(refused.header("retry-after"), Some("10"));
    assert_eq!(
        refused.at("/details/causes/0/message"),
        "The disruption budget b is still being processed by the server."
    );
}

#[tokio::test]
async fn a_pod_that_is_not_ready_goes_if_its_budget_lets_it() {
    let api = Api::start();
    if api.is_shared() {
        return;
    }
    let ns = api.namespace().await;
    let spent = json!({"observedGeneration": 1, "desiredHealthy": 2, "currentHealthy": 1});
    let pod = running(&api, &ns, "a", "False").await;
    let path = budget(&api, &ns, json!({}), spent).await;
    evict(&api, &pod).await.is(429);
    api.patch(&path, MERGE_PATCH, json!({"spec": {"unhealthyPodEvictionPolicy": "AlwaysAllow"}}))
        .await
        .is(200);
    evict(&api, &pod).await.is(201);
    api.get(&pod).await.is(404);
    let other = running(&api, &ns, "b", "False").await;
    let healthy = json!({"spec": {"unhealthyPodEvictionPolicy": null}});
    api.patch(&path, MERGE_PATCH, healthy).await.is(200);
    let status = json!({"status": {"observedGeneration": 3, "desiredHealthy": 1, "currentHealthy": 1}});
    api.patch(&format!("{path}/status"), MERGE_PATCH, status).await.is(200);
    evict(&api, &other).await.is(201);
}

#[tokio::test]
async fn a_pod_that_does_not_run_needs_no_budget() {
    let api = Api::start();
    let ns = api.namespace().await;
    let pods = format!("/api/v1/namespaces/{ns}/pods");
    api.post(&pods, pod("a")).await.is(201);
    evict(&api, &format!("{pods}/a")).await.is(201);
    api.get(&format!("{pods}/a")).await.is(404);
    evict(&api, &format!("{pods}/a")).await.is(404);
}
