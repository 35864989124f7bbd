//! The simulated node and the scheduler.

use k8s_openapi::api::coordination::v1::Lease;
use k8s_openapi::api::core::v1::{Node, Pod, Service};
use kube_client::api::{Api, ListParams, Patch, PatchParams, PostParams};
use serde_json::json;
use windlass_test::{TestCluster, eventually};

use crate::support::{WAIT_LIMIT, becomes, create, phase, pod};

#[tokio::test]
async fn there_is_one_node_with_room_an_address_and_a_lease() {
    let cluster = TestCluster::with_controllers().await;
    let nodes: Api<Node> = Api::all(cluster.client());
    let node = nodes.get("windlass").await.unwrap();
    let status = node.status.unwrap();
    assert!(status.allocatable.unwrap().contains_key("pods"));
    let addresses = status.addresses.unwrap();
    assert_eq!(addresses[0].type_, "InternalIP");
    let leases: Api<Lease> = Api::namespaced(cluster.client(), "kube-node-lease");
    eventually(WAIT_LIMIT, || async { leases.get("windlass").await.map(drop) }).await;
    let service = json!({"metadata": {"name": "a"}, "spec": {"clusterIP": addresses[0].address, "ports": [{"port": 80}]}});
    let service: Service = serde_json::from_value(service).unwrap();
    let services: Api<Service> = Api::namespaced(cluster.client(), "default");
    let refused = services.create(&PostParams::default(), &service).await.unwrap_err();
    assert!(refused.to_string().contains("does not match the current range"), "{refused}");
}

#[tokio::test]
async fn a_pod_waits_until_a_node_fits() {
    let cluster = TestCluster::with_controllers().await;
    let client = cluster.client();
    let mut picky = pod("picky", &json!({}));
    picky["spec"]["nodeSelector"] = json!({"disk": "ssd"});
    create::<Pod>(&client, picky).await;
    let waiting = becomes::<Pod>(&client, "picky", |pod| {
        let conditions = pod.status.iter().flat_map(|status| status.conditions.iter().flatten());
        conditions
            .into_iter()
            .any(|c| c.type_ == "PodScheduled" && c.reason.as_deref() == Some("Unschedulable"))
    })
    .await;
    assert_eq!(phase(&waiting), "Pending");
    let nodes: Api<Node> = Api::all(client.clone());
    let label = Patch::Merge(json!({"metadata": {"labels": {"disk": "ssd"}}}));
    nodes.patch("windlass", &PatchParams::default(), &label).await.unwrap();
    becomes::<Pod>(&client, "picky", |pod| phase(pod) == "Running").await;
}

#[tokio::test]
async fn a_cordoned_node_takes_no_new_pods_until_it_is_open_again() {
    let cluster = TestCluster::with_controllers().await;
    let client = cluster.client();
    let nodes: Api<Node> = Api::all(client.clone());
    nodes.cordon("windlass").await.unwrap();
    create::<Pod>(&client, pod("p", &json!({}))).await;
    becomes::<Pod>(&client, "p", |pod| {
        let conditions = pod.status.iter().flat_map(|status| status.conditions.iter().flatten());
        conditions.into_iter().any(|c| c.reason.as_deref() == Some("Unschedulable"))
    })
    .await;
    nodes.uncordon("windlass").await.unwrap();
    becomes::<Pod>(&client, "p", |pod| phase(pod) == "Running").await;
}

#[tokio::test]
async fn pods_of_other_schedulers_and_gated_ones_are_left_alone() {
    let cluster = TestCluster::with_controllers().await;
    let client = cluster.client();
    let mut other = pod("other", &json!({}));
    other["spec"]["schedulerName"] = json!("mine");
    create::<Pod>(&client, other).await;
    let mut gated = pod("gated", &json!({}));
    gated["spec"]["schedulingGates"] = json!([{"name": "example.com/wait"}]);
    create::<Pod>(&client, gated).await;
    create::<Pod>(&client, pod("plain", &json!({}))).await;
    becomes::<Pod>(&client, "plain", |pod| phase(pod) == "Running").await;
    let pods: Api<Pod> = Api::default_namespaced(client.clone());
    let placed = pods.list(&ListParams::default().fields("spec.nodeName=windlass")).await.unwrap();
    assert_eq!(placed.items.len(), 1, "only the plain one");
    let open = Patch::Merge(json!({"spec": {"schedulingGates": null}}));
    pods.patch("gated", &PatchParams::default(), &open).await.unwrap();
    becomes::<Pod>(&client, "gated", |pod| phase(pod) == "Running").await;
}
