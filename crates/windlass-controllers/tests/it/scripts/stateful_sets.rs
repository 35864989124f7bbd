//! StatefulSets.

use serde_json::{Value, json};

use super::stage::Stage;

const SETS: &str = "apps/v1/statefulsets";
const SHOWN: [&str; 4] = [SETS, "apps/v1/controllerrevisions", "v1/pods", "v1/persistentvolumeclaims"];

fn set(change: Value) -> Value {
    let template = json!({
        "metadata": {"labels": {"app": "web"}},
        "spec": {"containers": [{"name": "c", "image": "i:1"}], "automountServiceAccountToken": false},
    });
    let mut spec = json!({
        "serviceName": "web", "replicas": 3, "selector": {"matchLabels": {"app": "web"}}, "template": template,
    });
    spec.as_object_mut().unwrap().extend(change.as_object().unwrap().clone());
    json!({"metadata": {"name": "web", "annotations": {"note": "kept"}}, "spec": spec})
}

fn image(image: &str) -> Value {
    json!({"spec": {"template": {"spec": {"containers": [{"name": "c", "image": image}]}}}})
}

#[tokio::test]
async fn an_ordered_set_grows_is_updated_and_shrinks_one_pod_at_a_time() {
    let mut stage = Stage::open("stateful_set_ordered", &SHOWN).await;
    let web = "apps/v1/statefulsets/web";
    stage.create(SETS, set(json!({}))).await;
    stage.settle("created").await;
    stage.run("web-0", false).await;
    stage.settle("web-0 runs and is not ready").await;
    stage.run("web-0", true).await;
    stage.settle("web-0 is ready").await;
    stage.run("web-1", true).await;
    stage.settle("web-1 is ready").await;
    stage.run("web-2", true).await;
    stage.settle("all are ready").await;

    stage.patch(web, image("i:2")).await;
    stage.settle("a new image").await;
    stage.run("web-2", true).await;
    stage.settle("web-2 is new and ready").await;
    stage.patch(web, image("i:1")).await;
    stage.settle("rolled back half-way").await;
    stage.run("web-1", true).await;
    stage.settle("web-1 is ready after the rollback").await;
    stage.run("web-2", true).await;
    stage.settle("web-2 is ready after the rollback").await;

    stage.run("web-1", true).await;
    stage.settle("all are as they were").await;

    stage.run("web-0", false).await;
    stage.run("web-1", false).await;
    stage.patch(web, json!({"spec": {"replicas": 0}})).await;
    stage.settle("scaled to none while two are not ready").await;
    stage.run("web-1", true).await;
    stage.settle("web-1 is ready again").await;
    stage.delete(web).await;
    stage.settle("deleted").await;
    stage.finish().await;
}

#[tokio::test]
async fn pods_on_nodes_terminate_before_they_are_replaced() {
    let mut stage = Stage::open("stateful_set_on_nodes", &SHOWN).await;
    let web = "apps/v1/statefulsets/web";
    let partition = json!({"type": "RollingUpdate", "rollingUpdate": {"partition": 1}});
    stage.create(SETS, set(json!({"replicas": 2, "updateStrategy": partition}))).await;
    for pod in ["web-0", "web-1"] {
        stage.settle(&format!("{pod} is there")).await;
        stage.bind(pod, "n").await;
        stage.run(pod, true).await;
    }
    stage.settle("both are ready").await;
    stage.patch(web, image("i:2")).await;
    stage.settle("web-1 terminates").await;
    stage.remove("web-1").await;
    stage.settle("web-1 is new").await;
    stage.bind("web-1", "n").await;
    stage.run("web-1", true).await;
    stage.settle("the partition is reached").await;
    stage.remove("web-0").await;
    stage.settle("web-0 comes back as it was").await;
    stage.run("web-0", true).await;
    stage.report("web-1", json!({"phase": "Failed"})).await;
    stage.settle("web-1 failed").await;
    stage.remove("web-1").await;
    stage.settle("web-1 is replaced").await;
    stage.run("web-1", true).await;
    stage.patch(web, json!({"spec": {"updateStrategy": {"rollingUpdate": {"partition": 0}}}})).await;
    stage.settle("no partition").await;
    stage.run("web-0", true).await;
    stage.settle("all are new").await;
    stage.finish().await;
}

#[tokio::test]
async fn a_parallel_set_has_claims_that_follow_the_policy() {
    let mut stage = Stage::open("stateful_set_parallel", &SHOWN).await;
    let web = "apps/v1/statefulsets/web";
    let claim = json!({
        "metadata": {"name": "data"},
        "spec": {"accessModes": ["ReadWriteOnce"], "resources": {"requests": {"storage": "1Gi"}}},
    });
    let change = json!({
        "podManagementPolicy": "Parallel", "ordinals": {"start": 3}, "updateStrategy": {"type": "OnDelete"},
        "volumeClaimTemplates": [claim], "revisionHistoryLimit": 1,
        "persistentVolumeClaimRetentionPolicy": {"whenDeleted": "Delete", "whenScaled": "Delete"},
    });
    stage.create(SETS, set(change)).await;
    stage.settle("created").await;
    for pod in ["web-3", "web-4", "web-5"] {
        stage.run(pod, true).await;
    }
    stage.settle("all are ready").await;
    for n in 2..5 {
        stage.patch(web, image(&format!("i:{n}"))).await;
        stage.settle(&format!("image {n}")).await;
    }
    stage.delete("v1/pods/web-4").await;
    stage.settle("web-4 is replaced").await;
    stage.patch(web, json!({"spec": {"replicas": 1}})).await;
    stage.settle("scaled down").await;
    stage.finish().await;
}

/// Updates a set of four pods, of which web-0 is not ready, while two pods may be unavailable.
async fn two_may_be_unavailable(script: &str, policy: &str) {
    let mut stage = Stage::open(script, &SHOWN).await;
    let web = "apps/v1/statefulsets/web";
    let rolling = json!({"type": "RollingUpdate", "rollingUpdate": {"maxUnavailable": 2}});
    let change = json!({"replicas": 4, "podManagementPolicy": policy, "updateStrategy": rolling});
    stage.create(SETS, set(change)).await;
    for pod in ["web-0", "web-1", "web-2", "web-3"] {
        stage.settle(&format!("{pod} is there")).await;
        stage.bind(pod, "n").await;
        stage.run(pod, true).await;
    }
    stage.settle("all are ready").await;
    if policy == "Parallel" {
        stage.run("web-0", false).await;
    }
    stage.patch(web, image("i:2")).await;
    stage.settle("two pods terminate").await;
    stage.remove("web-3").await;
    stage.settle("web-3 is gone").await;
    stage.finish().await;
}

#[tokio::test]
async fn an_ordered_update_has_as_many_unavailable_pods_as_it_may() {
    two_may_be_unavailable("stateful_set_ordered_unavailable", "OrderedReady").await;
}

#[tokio::test]
async fn a_parallel_update_has_as_many_unavailable_pods_as_it_may() {
    two_may_be_unavailable("stateful_set_parallel_unavailable", "Parallel").await;
}
