//! Pods that no kubelet deletes.

use serde_json::{Value, json};

use super::stage::Stage;

const PODS: &str = "v1/pods";

async fn pod(stage: &Stage, name: &str, node: Option<&str>, finalizer: bool) {
    let finalizers: Vec<&str> = finalizer.then_some("example.com/kept").into_iter().collect();
    let mut spec =
        json!({"containers": [{"name": "c", "image": "i"}], "automountServiceAccountToken": false});
    if let Some(node) = node {
        spec["nodeName"] = node.into();
    }
    let metadata = json!({"name": name, "finalizers": finalizers});
    stage.create(PODS, json!({"metadata": metadata, "spec": spec})).await;
}

#[tokio::test]
async fn pods_of_a_node_that_is_gone_and_terminating_pods_without_one_have_failed() {
    let mut stage = Stage::open("pod_gc", &[PODS]).await;
    let gone = stage.node("gone").await;
    pod(&stage, "orphan", Some(&gone), false).await;
    pod(&stage, "orphan-kept", Some(&gone), true).await;
    pod(&stage, "orphan-ended", Some(&gone), true).await;
    pod(&stage, "unscheduled", None, true).await;
    for name in ["orphan", "orphan-kept"] {
        stage.run(name, true).await;
    }
    stage.end("orphan-ended", 0).await;
    stage.delete("v1/pods/unscheduled").await;
    stage.delete_node(&gone).await;
    stage.gone("v1/pods/orphan").await;
    stage.settle("the node is gone").await;
    let released: Value = json!({"metadata": {"finalizers": null}});
    for name in ["orphan-kept", "orphan-ended", "unscheduled"] {
        stage.patch(&format!("v1/pods/{name}"), released.clone()).await;
    }
    stage.settle("released").await;
    stage.finish().await;
}
