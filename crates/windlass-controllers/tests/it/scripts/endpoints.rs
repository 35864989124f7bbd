//! EndpointSlices and Endpoints of Services.

use serde_json::{Value, json};

use super::stage::Stage;

const SERVICES: &str = "v1/services";
const SHOWN: [&str; 2] = ["v1/endpoints", "discovery.k8s.io/v1/endpointslices"];

async fn pod(stage: &Stage, name: &str, node: &str, port: i32) {
    let ports = json!([{"name": "web", "containerPort": port}]);
    let spec = json!({
        "containers": [{"name": "c", "image": "i", "ports": ports}], "automountServiceAccountToken": false,
        "hostname": name, "subdomain": "web", "nodeName": node,
    });
    stage
        .create("v1/pods", json!({"metadata": {"name": name, "labels": {"app": "web"}}, "spec": spec}))
        .await;
}

async fn report(stage: &Stage, pod: &str, ip: &str, ready: bool) {
    let ready = if ready { "True" } else { "False" };
    let conditions = json!([{"type": "Ready", "status": ready}]);
    let status = json!({"phase": "Running", "podIP": ip, "podIPs": [{"ip": ip}], "conditions": conditions});
    stage.report(pod, status).await;
}

async fn follows_its_pods(script: &str, change: Value) {
    let mut stage = Stage::open(script, &SHOWN).await;
    let node = stage.node("a").await;
    let mut spec = json!({
        "selector": {"app": "web"},
        "ports": [{"name": "http", "port": 80, "targetPort": "web"}, {"name": "metrics", "port": 9, "targetPort": 90}],
    });
    spec.as_object_mut().unwrap().extend(change.as_object().unwrap().clone());
    stage.create(SERVICES, json!({"metadata": {"name": "web", "labels": {"l": "v"}}, "spec": spec})).await;
    stage.settle("a service without pods").await;
    pod(&stage, "one", &node, 8080).await;
    pod(&stage, "two", &node, 8080).await;
    pod(&stage, "three", &node, 9090).await;
    report(&stage, "one", "10.1.0.1", false).await;
    stage.settle("one pod has an address").await;
    report(&stage, "one", "10.1.0.1", true).await;
    report(&stage, "three", "10.1.0.3", true).await;
    stage.settle("two pods are ready, with different ports").await;
    report(&stage, "two", "10.1.0.2", true).await;
    report(&stage, "one", "10.1.0.1", false).await;
    stage.settle("another pod, and one is not ready any more").await;
    stage.delete("v1/pods/two").await;
    stage.settle("a ready pod terminates").await;
    stage.remove("two").await;
    let ended = json!({"phase": "Succeeded", "conditions": [{"type": "Ready", "status": "False"}]});
    stage.report("three", ended).await;
    stage.settle("one pod is gone, and one has ended").await;
    stage.patch("v1/services/web", json!({"metadata": {"labels": {"l": "w"}}})).await;
    stage.settle("the service has another label").await;
    stage.delete("v1/services/web").await;
    stage.settle("deleted").await;
    stage.delete_node(&node).await;
    stage.finish().await;
}

#[tokio::test]
async fn endpoints_follow_the_pods_of_a_service() {
    follows_its_pods("endpoints", json!({})).await;
}

#[tokio::test]
async fn a_headless_service_can_publish_pods_that_are_not_ready() {
    let headless = json!({"clusterIP": "None", "publishNotReadyAddresses": true});
    follows_its_pods("endpoints_headless", headless).await;
}
