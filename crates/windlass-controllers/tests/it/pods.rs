//! Pods on the simulated node.

use k8s_openapi::api::core::v1::Pod;
use kube_client::api::{Api, DeleteParams, Patch, PatchParams};
use kube_core::ResourceExt;
use serde_json::json;
use windlass_test::TestCluster;

use crate::support::{api, becomes, create, delete, gone, phase, pod};

#[tokio::test]
async fn pods_run_at_addresses_of_their_own() {
    let cluster = TestCluster::with_controllers().await;
    let client = cluster.client();
    let mut addresses = Vec::new();
    for name in ["a", "b"] {
        create::<Pod>(&client, pod(name, &json!({}))).await;
        let running = becomes::<Pod>(&client, name, |pod| phase(pod) == "Running").await;
        assert_eq!(running.spec.unwrap().node_name.as_deref(), Some("windlass"));
        addresses.push(running.status.unwrap().pod_ip.unwrap());
    }
    assert!(addresses[0].starts_with("10.244.") && addresses[0] != addresses[1], "{addresses:?}");
}

#[tokio::test]
async fn pods_end_as_their_annotations_say() {
    let cluster = TestCluster::with_controllers().await;
    let client = cluster.client();
    let soon = json!({"kubelet.windlass.dev/run-for": "10ms"});
    create::<Pod>(&client, pod("good", &soon)).await;
    let bad = json!({"kubelet.windlass.dev/run-for": "10ms", "kubelet.windlass.dev/exit-code": "7"});
    create::<Pod>(&client, pod("bad", &bad)).await;
    becomes::<Pod>(&client, "good", |pod| phase(pod) == "Succeeded").await;
    let failed = becomes::<Pod>(&client, "bad", |pod| phase(pod) == "Failed").await;
    let state = failed.status.unwrap().container_statuses.unwrap()[0].state.clone().unwrap();
    assert_eq!(state.terminated.unwrap().exit_code, 7);
}

#[tokio::test]
async fn a_port_of_the_node_is_given_once() {
    let cluster = TestCluster::with_controllers().await;
    let client = cluster.client();
    let wanting = |name: &str, node: Option<&str>| {
        let mut wanting = pod(name, &json!({}));
        wanting["spec"]["nodeName"] = json!(node);
        wanting["spec"]["containers"][0]["ports"] = json!([{"containerPort": 80, "hostPort": 8080}]);
        wanting
    };
    create::<Pod>(&client, wanting("first", None)).await;
    becomes::<Pod>(&client, "first", |pod| phase(pod) == "Running").await;
    create::<Pod>(&client, wanting("second", None)).await;
    let message = "0/1 nodes are available: 1 node(s) didn't have free ports for the requested pod ports.";
    becomes::<Pod>(&client, "second", |pod| {
        let conditions = pod.status.as_ref().and_then(|status| status.conditions.as_deref());
        let mut messages =
            conditions.into_iter().flatten().filter_map(|condition| condition.message.as_deref());
        messages.any(|shown| shown.starts_with(message))
    })
    .await;
    create::<Pod>(&client, wanting("bound", Some("windlass"))).await;
    let rejected = becomes::<Pod>(&client, "bound", |pod| phase(pod) == "Failed").await.status.unwrap();
    assert_eq!(rejected.reason.as_deref(), Some("NodePorts"));
    delete::<Pod>(&client, "first", DeleteParams::default()).await;
    becomes::<Pod>(&client, "second", |pod| phase(pod) == "Running").await;
}

#[tokio::test]
async fn a_resize_takes_effect_at_once() {
    let cluster = TestCluster::with_controllers().await;
    let client = cluster.client();
    let mut sized = pod("sized", &json!({}));
    sized["spec"]["containers"][0]["resources"] = json!({"requests": {"cpu": "100m"}});
    create::<Pod>(&client, sized).await;
    becomes::<Pod>(&client, "sized", |pod| phase(pod) == "Running").await;
    let name = api::<Pod>(&client).get("sized").await.unwrap().spec.unwrap().containers[0].name.clone();
    let resources = json!({"requests": {"cpu": "200m"}});
    let patch = json!({"spec": {"containers": [{"name": name, "resources": resources}]}});
    let patch = Patch::Strategic(patch);
    api::<Pod>(&client).patch_subresource("resize", "sized", &PatchParams::default(), &patch).await.unwrap();
    becomes::<Pod>(&client, "sized", |pod| {
        let statuses = pod.status.as_ref().and_then(|status| status.container_statuses.as_ref());
        let resources = statuses.and_then(|statuses| statuses[0].resources.as_ref());
        let requests = resources.and_then(|resources| resources.requests.as_ref());
        requests.is_some_and(|requests| requests["cpu"].0 == "200m")
    })
    .await;
}

#[tokio::test]
async fn a_deleted_pod_stops_and_goes() {
    let cluster = TestCluster::with_controllers().await;
    let client = cluster.client();
    create::<Pod>(&client, pod("p", &json!({"kubelet.windlass.dev/stop-after": "150ms"}))).await;
    becomes::<Pod>(&client, "p", |pod| phase(pod) == "Running").await;
    // The reply has the pod. Another request may come after the end of the pod.
    let stopping = api::<Pod>(&client).delete("p", &DeleteParams::default()).await.unwrap();
    let grace = stopping.left().and_then(|pod| pod.metadata.deletion_grace_period_seconds);
    assert_eq!(grace, Some(30));
    gone::<Pod>(&client, "p").await;
}

#[tokio::test]
async fn a_pod_with_a_finalizer_stops_but_stays() {
    let cluster = TestCluster::with_controllers().await;
    let client = cluster.client();
    let mut held = pod("p", &json!({}));
    held["metadata"]["finalizers"] = json!(["example.com/hold"]);
    create::<Pod>(&client, held).await;
    becomes::<Pod>(&client, "p", |pod| phase(pod) == "Running").await;
    delete::<Pod>(&client, "p", DeleteParams::default()).await;
    let stopped = becomes::<Pod>(&client, "p", |pod| phase(pod) == "Succeeded").await;
    assert_eq!(stopped.finalizers(), ["example.com/hold"]);
    becomes::<Pod>(&client, "p", |pod| pod.metadata.deletion_grace_period_seconds == Some(0)).await;
    let release = Patch::Merge(json!({"metadata": {"finalizers": null}}));
    api::<Pod>(&client).patch("p", &PatchParams::default(), &release).await.unwrap();
    gone::<Pod>(&client, "p").await;
}

#[tokio::test]
async fn a_hundred_pods_start_and_go() {
    let cluster = TestCluster::with_controllers().await;
    let client = cluster.client();
    for n in 0..100 {
        create::<Pod>(&client, pod(&format!("p{n}"), &json!({}))).await;
    }
    for n in 0..100 {
        becomes::<Pod>(&client, &format!("p{n}"), |pod| phase(pod) == "Running").await;
    }
    let pods: Api<Pod> = api(&client);
    pods.delete_collection(&DeleteParams::default(), &kube_client::api::ListParams::default()).await.unwrap();
    for n in 0..100 {
        gone::<Pod>(&client, &format!("p{n}")).await;
    }
}
