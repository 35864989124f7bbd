//! Deployments: rollouts, a pause, and the way back.

use serde_json::{Value, json};
use windlass_test::eventually;

use super::stage::{LIMIT, Stage};

const DEPLOYMENTS: &str = "apps/v1/deployments";
const WEB: &str = "apps/v1/deployments/web";

fn image(image: &str) -> Value {
    let containers = json!([{"name": "c", "image": image}]);
    json!({"spec": {"template": {"spec": {"containers": containers}}}})
}

/// Runs all pods that do not run yet, until there are `count` with the image.
async fn run_all(stage: &Stage, image: &str, count: usize) {
    eventually(LIMIT, || async {
        let mut ready = 0;
        for pod in stage.list("v1/pods").await {
            let name = pod["metadata"]["name"].as_str().unwrap_or_default();
            if pod["status"]["phase"] != "Running" {
                stage.run(name, true).await;
            } else if pod["spec"]["containers"][0]["image"] == image {
                ready += 1;
            }
        }
        let all = stage.list("v1/pods").await.len();
        let is_done = ready == count && all == count;
        is_done.then_some(()).ok_or_else(|| format!("{ready} of {all} pods are ready and of {image}"))
    })
    .await;
}

#[tokio::test]
async fn a_deployment_rolls_out_pauses_and_goes_on() {
    let mut stage = Stage::open("deployment_paused", &[DEPLOYMENTS, "apps/v1/replicasets"]).await;
    let template = json!({
        "metadata": {"labels": {"app": "web"}},
        "spec": {"containers": [{"name": "c", "image": "web:1"}], "automountServiceAccountToken": false},
    });
    let spec = json!({"replicas": 2, "selector": {"matchLabels": {"app": "web"}}, "template": template});
    stage.create(DEPLOYMENTS, json!({"metadata": {"name": "web"}, "spec": spec})).await;
    stage.settle("no pod runs").await;
    run_all(&stage, "web:1", 2).await;
    stage.settle("all pods run").await;
    stage.patch(WEB, json!({"spec": {"paused": true}})).await;
    stage.settle("paused").await;
    stage.patch(WEB, image("web:2")).await;
    stage.settle("changed while it is paused").await;
    stage.patch(WEB, json!({"spec": {"replicas": 3}})).await;
    run_all(&stage, "web:1", 3).await;
    stage.settle("scaled while it is paused").await;
    stage.patch(WEB, json!({"spec": {"paused": false}})).await;
    run_all(&stage, "web:2", 3).await;
    stage.settle("resumed").await;
    stage.patch(WEB, image("web:1")).await;
    run_all(&stage, "web:1", 3).await;
    stage.settle("rolled back").await;
    stage.patch(WEB, json!({"spec": {"paused": true}})).await;
    stage.patch(WEB, json!({"spec": {"paused": false}})).await;
    stage.settle("paused and resumed").await;
    // The events name pods. The script knows the names only while the pods exist.
    stage.finish().await;
}
