//! DaemonSets, on nodes that the script creates.

use serde_json::{Value, json};

use super::stage::Stage;

const SETS: &str = "apps/v1/daemonsets";
const AGENT: &str = "apps/v1/daemonsets/agent";
const SHOWN: [&str; 3] = [SETS, "apps/v1/controllerrevisions", "v1/pods"];

/// Returns a set with pods on the nodes with the label `pool: NAMESPACE`.
fn set(stage: &Stage, strategy: Value) -> Value {
    let pod = json!({
        "containers": [{"name": "c", "image": "i:1"}], "automountServiceAccountToken": false,
        "nodeSelector": {"pool": stage.namespace()},
    });
    let template = json!({"metadata": {"labels": {"app": "agent"}}, "spec": pod});
    let spec = json!({
        "selector": {"matchLabels": {"app": "agent"}}, "template": template, "updateStrategy": strategy,
        "revisionHistoryLimit": 0,
    });
    json!({"metadata": {"name": "agent"}, "spec": spec})
}

fn image(image: &str) -> Value {
    json!({"spec": {"template": {"spec": {"containers": [{"name": "c", "image": image}]}}}})
}

/// Binds each pod to the right node, and reports the pod as ready.
async fn run_all(stage: &Stage) {
    for pod in stage.list("v1/pods").await {
        let name = pod["metadata"]["name"].as_str().unwrap();
        let field = "/spec/affinity/nodeAffinity/requiredDuringSchedulingIgnoredDuringExecution/nodeSelectorTerms/0/matchFields/0/values/0";
        if pod["spec"]["nodeName"].is_null() {
            stage.bind(name, pod.pointer(field).unwrap().as_str().unwrap()).await;
            stage.run(name, true).await;
        }
    }
}

/// Removes the pods that are terminating.
async fn remove_terminating(stage: &Stage) {
    for pod in stage.list("v1/pods").await {
        if !pod["metadata"]["deletionTimestamp"].is_null() {
            stage.remove(pod["metadata"]["name"].as_str().unwrap()).await;
        }
    }
}

#[tokio::test]
async fn a_daemon_set_follows_its_nodes_and_is_updated_node_by_node() {
    let mut stage = Stage::open("daemon_set_rolling", &SHOWN).await;
    let nodes = [stage.node("a").await, stage.node("b").await];
    let one = json!({"type": "RollingUpdate", "rollingUpdate": {"maxUnavailable": 1}});
    stage.create(SETS, set(&stage, one)).await;
    stage.settle("created").await;
    run_all(&stage).await;
    stage.settle("both are ready").await;
    let third = stage.node("c").await;
    stage.settle("a third node").await;
    run_all(&stage).await;
    stage.settle("all are ready").await;

    stage.delete_node(&third).await;
    stage.settle("its node is gone").await;
    stage.patch_node(&nodes[1], json!({"metadata": {"labels": {"pool": null}}})).await;
    stage.settle("a node leaves the pool").await;
    remove_terminating(&stage).await;
    stage.settle("its pod is gone").await;
    stage.patch(AGENT, image("i:2")).await;
    stage.settle("a new image").await;
    remove_terminating(&stage).await;
    stage.settle("a new pod").await;
    run_all(&stage).await;
    stage.settle("the new pod is ready").await;
    stage.delete(AGENT).await;
    stage.settle("deleted").await;
    for node in &nodes {
        stage.delete_node(node).await;
    }
    stage.finish().await;
}

#[tokio::test]
async fn with_a_surge_new_pods_come_first() {
    let mut stage = Stage::open("daemon_set_surge", &SHOWN).await;
    let node = stage.node("a").await;
    let surge = json!({"type": "RollingUpdate", "rollingUpdate": {"maxUnavailable": 0, "maxSurge": 1}});
    stage.create(SETS, set(&stage, surge)).await;
    stage.settle("created").await;
    run_all(&stage).await;
    stage.settle("ready").await;
    stage.patch(AGENT, image("i:2")).await;
    stage.settle("a new pod beside the old one").await;
    run_all(&stage).await;
    // Until the old pod is gone, the status comes from the older pod, which can change within a second.
    stage.terminating().await;
    remove_terminating(&stage).await;
    stage.settle("the old pod is gone").await;
    let pod = stage.active().await[0].clone();
    stage.report(&pod, json!({"phase": "Failed"})).await;
    stage.settle("the pod failed").await;
    stage.delete_node(&node).await;
    stage.finish().await;
}
