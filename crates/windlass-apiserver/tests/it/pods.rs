//! What only pods have: a node, an end in time, a log, evictions.

use serde_json::{Value, json};

use crate::harness::{Client, client};

const PODS: &str = "/api/v1/namespaces/default/pods";

async fn pod(client: &Client, name: &str, annotations: Value) {
    let body = json!({
        "metadata": {"name": name, "labels": {"app": "web"}, "annotations": annotations},
        "spec": {"containers": [{"name": "c", "image": "nginx"}]},
    });
    client.post(PODS, &body).await.expect(201);
}

async fn bind(client: &Client, name: &str) {
    let binding = json!({"metadata": {"name": name}, "target": {"kind": "Node", "name": "n"}});
    client.post(&format!("{PODS}/{name}/binding"), &binding).await.expect(201);
}

#[tokio::test]
async fn a_bound_pod_has_its_node_and_gets_no_other() {
    let client = client();
    pod(&client, "a", json!({})).await;
    bind(&client, "a").await;
    let bound = client.get(&format!("{PODS}/a")).await.expect(200);
    assert_eq!(bound.body["spec"]["nodeName"], "n");
    assert_eq!(bound.body["status"]["conditions"][0]["type"], "PodScheduled");
    let again = json!({"metadata": {"name": "a"}, "target": {"kind": "Node", "name": "m"}});
    let again = client.post(&format!("{PODS}/a/binding"), &again).await.expect(409);
    assert!(again.message().ends_with("pod a is already assigned to node \"n\""), "{}", again.text);
}

#[tokio::test]
async fn a_scheduled_pod_ends_in_its_own_time() {
    let client = client();
    let path = &format!("{PODS}/a");
    pod(&client, "a", json!({})).await;
    bind(&client, "a").await;
    let ending = client.delete(path).await.expect(200);
    assert_eq!(ending.body["metadata"]["deletionGracePeriodSeconds"], 30);
    client.get(path).await.expect(200);
    client.delete(&format!("{path}?gracePeriodSeconds=0")).await.expect(200);
    client.get(path).await.expect(404);
}

#[tokio::test]
async fn a_log_is_what_the_annotation_says() {
    let client = client();
    pod(&client, "a", json!({"kubelet.windlass.dev/log": "one\ntwo\nthree"})).await;
    let path = &format!("{PODS}/a/log");
    assert_eq!(client.get(path).await.expect(200).text, "", "nothing ran yet");
    bind(&client, "a").await;
    assert_eq!(client.get(path).await.expect(200).text, "one\ntwo\nthree\n");
    assert_eq!(client.get(&format!("{path}?tailLines=1")).await.expect(200).text, "three\n");
    let unknown = client.get(&format!("{path}?container=x")).await.expect(400);
    assert_eq!(unknown.message(), "container x is not valid for pod a");
}

#[tokio::test]
async fn a_budget_has_a_say_in_evictions() {
    let client = client();
    pod(&client, "a", json!({})).await;
    let running = json!({"status": {"phase": "Running"}});
    client.patch(&format!("{PODS}/a/status"), crate::harness::MERGE, &running).await.expect(200);
    let budgets = "/apis/policy/v1/namespaces/default/poddisruptionbudgets";
    let budget = json!({"metadata": {"name": "b"}, "spec": {"minAvailable": 1, "selector": {"matchLabels": {"app": "web"}}}});
    client.post(budgets, &budget).await.expect(201);
    let eviction = json!({"metadata": {"name": "a"}});
    let path = &format!("{PODS}/a/eviction");
    let unseen = client.post(path, &eviction).await.expect(429);
    assert_eq!(unseen.headers["retry-after"], "10");
    let seen = json!({"status": {"observedGeneration": 1}});
    client.patch(&format!("{budgets}/b/status"), crate::harness::MERGE, &seen).await.expect(200);
    let refused = client.post(path, &eviction).await.expect(429);
    assert_eq!(refused.body["details"]["causes"][0]["reason"], "DisruptionBudget");
    let spare = json!({"status": {"disruptionsAllowed": 1, "observedGeneration": 1}});
    client.patch(&format!("{budgets}/b/status"), crate::harness::MERGE, &spare).await.expect(200);
    client.post(path, &eviction).await.expect(201);
    client.get(&format!("{PODS}/a")).await.expect(404);
}
