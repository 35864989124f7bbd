//! PodDisruptionBudgets.

use serde_json::{Value, json};

use super::stage::Stage;

const BUDGETS: &str = "policy/v1/poddisruptionbudgets";

async fn counts(script: &str, bounds: Value) {
    let mut stage = Stage::open(script, &[BUDGETS]).await;
    let template = json!({
        "metadata": {"labels": {"app": "web"}},
        "spec": {"containers": [{"name": "c", "image": "i"}], "automountServiceAccountToken": false},
    });
    let mut spec = json!({"selector": {"matchLabels": {"app": "web"}}});
    spec.as_object_mut().unwrap().extend(bounds.as_object().unwrap().clone());
    stage.create(BUDGETS, json!({"metadata": {"name": "web"}, "spec": spec})).await;
    stage.settle("a budget without pods").await;
    let workload = json!({"replicas": 3, "selector": {"matchLabels": {"app": "web"}}, "template": template});
    stage.create("apps/v1/deployments", json!({"metadata": {"name": "web"}, "spec": workload})).await;
    stage.settle("a deployment").await;
    let pods = stage.active().await;
    for pod in &pods {
        stage.bind(pod, "n").await;
        stage.run(pod, true).await;
    }
    stage.settle("all pods are ready").await;
    let eviction = json!({"apiVersion": "policy/v1", "kind": "Eviction", "metadata": {"name": pods[0]}});
    stage.create(&format!("v1/pods/{}/eviction", pods[0]), eviction).await;
    stage.settle("one is evicted").await;
    stage.run(&pods[1], false).await;
    stage.settle("one is not ready").await;
    stage.patch("apps/v1/deployments/web", json!({"spec": {"replicas": 6}})).await;
    stage.settle("scaled up").await;
    stage.finish().await;
}

#[tokio::test]
async fn a_budget_of_available_pods_counts_pods() {
    counts("budget_available", json!({"minAvailable": 2})).await;
}

#[tokio::test]
async fn a_budget_of_unavailable_pods_counts_by_the_scale_of_their_owner() {
    counts("budget_unavailable", json!({"maxUnavailable": "30%"})).await;
}
