//! ReplicaSets and ReplicationControllers.

use serde_json::{Value, json};

use super::stage::Stage;

async fn keeps_its_number_of_pods(script: &str, resource: &'static str, selector: Value) {
    let mut stage = Stage::open(script, &[resource, "v1/pods"]).await;
    let template = json!({
        "metadata": {"labels": {"app": "web"}},
        "spec": {"containers": [{"name": "c", "image": "i"}], "automountServiceAccountToken": false},
    });
    let spec = json!({"replicas": 2, "selector": selector, "template": template});
    stage.create(resource, json!({"metadata": {"name": "web"}, "spec": spec})).await;
    stage.settle("created").await;
    let pods = stage.active().await;
    for pod in &pods {
        stage.bind(pod, "n").await;
        stage.run(pod, true).await;
    }
    stage.settle("both are ready").await;
    let web = format!("{resource}/web");
    stage.patch(&web, json!({"spec": {"replicas": 3}})).await;
    stage.settle("scaled up").await;
    stage.delete(&format!("v1/pods/{}", pods[0])).await;
    stage.settle("one terminates and is replaced").await;
    stage.remove(&pods[0]).await;
    stage.settle("it has gone").await;
    let away = json!({"metadata": {"labels": {"app": "debug"}}});
    stage.patch(&format!("v1/pods/{}", pods[1]), away).await;
    stage.settle("one is taken away").await;
    stage.report(&pods[1], json!({"phase": "Failed"})).await;
    stage.patch(&web, json!({"spec": {"replicas": 0}})).await;
    stage.settle("scaled to none").await;
    stage.finish().await;
}

#[tokio::test]
async fn a_replica_set_keeps_its_number_of_pods() {
    let selector = json!({"matchLabels": {"app": "web"}});
    keeps_its_number_of_pods("replica_set", "apps/v1/replicasets", selector).await;
}

#[tokio::test]
async fn a_replication_controller_keeps_its_number_of_pods() {
    keeps_its_number_of_pods("replication_controller", "v1/replicationcontrollers", json!({"app": "web"}))
        .await;
}
