//! The pods that Jobs count.

use k8s_openapi::api::batch::v1::Job;
use k8s_openapi::api::core::v1::Pod;
use kube_client::Client;
use kube_client::api::{DeleteParams, ListParams, Patch, PatchParams};
use kube_core::ResourceExt;
use serde_json::{Value, json};
use windlass_controllers::Controllers;
use windlass_test::{RunningManager, TestCluster, eventually};

use crate::support::{WAIT_LIMIT, api, becomes, create, delete, gone};

const TRACKING: &str = "batch.kubernetes.io/job-tracking";

/// A cluster whose pods stay pending.
async fn cluster() -> (TestCluster, RunningManager) {
    let cluster = TestCluster::start().await;
    let running = cluster.run(Controllers::new(cluster.client()).without_nodes().manager());
    (cluster, running)
}

/// A Job with a selector of the user's.
fn job() -> Value {
    let containers = json!([{"name": "c", "image": "i"}]);
    let template = json!({
        "metadata": {"labels": {"app": "work"}}, "spec": {"containers": containers, "restartPolicy": "Never"},
    });
    let selector = json!({"matchLabels": {"app": "work"}});
    let spec = json!({"manualSelector": true, "selector": selector, "template": template});
    json!({"metadata": {"name": "work"}, "spec": spec})
}

fn pod(name: &str, metadata: &Value) -> Value {
    let mut pod = json!({
        "metadata": {"name": name, "labels": {"app": "work"}},
        "spec": {"containers": [{"name": "c", "image": "i"}], "restartPolicy": "Never"},
    });
    pod["metadata"].as_object_mut().unwrap().extend(metadata.as_object().unwrap().clone());
    pod
}

/// Waits for a pod of the Job, and returns the name.
async fn only_pod(client: &Client) -> String {
    eventually(WAIT_LIMIT, || async {
        let pods =
            api::<Pod>(client).list(&ListParams::default()).await.map_err(|error| error.to_string())?;
        pods.items.first().map(ResourceExt::name_any).ok_or_else(|| "no pod".to_owned())
    })
    .await
}

fn is_tracked(pod: &Pod) -> bool {
    pod.finalizers().iter().any(|finalizer| finalizer == TRACKING)
}

#[tokio::test]
async fn a_pod_that_leaves_a_job_can_be_deleted() {
    let (cluster, _running) = cluster().await;
    let client = cluster.client();
    create::<Job>(&client, job()).await;
    let name = only_pod(&client).await;
    let away = Patch::Merge(json!({"metadata": {"labels": {"app": "debug"}}}));
    api::<Pod>(&client).patch(&name, &PatchParams::default(), &away).await.unwrap();
    becomes::<Pod>(&client, &name, |pod| pod.owner_references().is_empty() && !is_tracked(pod)).await;
    delete::<Pod>(&client, &name, DeleteParams::default()).await;
    gone::<Pod>(&client, &name).await;
}

#[tokio::test]
async fn a_pod_that_a_job_adopts_is_counted() {
    let (cluster, _running) = cluster().await;
    let client = cluster.client();
    create::<Pod>(&client, pod("orphan", &json!({}))).await;
    create::<Job>(&client, job()).await;
    becomes::<Pod>(&client, "orphan", |pod| !pod.owner_references().is_empty() && is_tracked(pod)).await;
    let succeeded = Patch::Merge(json!({"status": {"phase": "Succeeded"}}));
    api::<Pod>(&client).patch_status("orphan", &PatchParams::default(), &succeeded).await.unwrap();
    becomes::<Job>(&client, "work", |job| job.status.as_ref().is_some_and(|s| s.succeeded == Some(1))).await;
    becomes::<Pod>(&client, "orphan", |pod| !is_tracked(pod)).await;
}

#[tokio::test]
async fn pods_without_their_job_lose_the_finalizer() {
    let (cluster, _running) = cluster().await;
    let client = cluster.client();
    create::<Job>(&client, job()).await;
    only_pod(&client).await;
    let other = json!({"finalizers": [TRACKING], "labels": {"app": "other"}});
    create::<Pod>(&client, pod("alone", &other)).await;
    becomes::<Pod>(&client, "alone", |pod| !is_tracked(pod)).await;
    let owner = json!({
        "apiVersion": "batch/v1", "kind": "Job", "name": "work", "uid": "an-earlier-job", "controller": true,
    });
    let earlier = json!({"finalizers": [TRACKING], "ownerReferences": [owner]});
    create::<Pod>(&client, pod("earlier", &earlier)).await;
    // The garbage collector deletes the pod of a Job that is gone.
    gone::<Pod>(&client, "earlier").await;
}
