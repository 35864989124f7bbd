//! Endpoints and EndpointSlices of Services.

use k8s_openapi::api::core::v1::{Endpoints, Node, Pod, Service};
use k8s_openapi::api::discovery::v1::{Endpoint, EndpointSlice};
use kube_client::Client;
use kube_client::api::{Api, ListParams, Patch, PatchParams, PostParams};
use serde_json::{Value, json};
use windlass_controllers::Controllers;
use windlass_test::{RunningManager, TestCluster, eventually};

use crate::support::{WAIT_LIMIT, api, create};

/// A cluster whose nodes and statuses of pods the test writes.
async fn cluster() -> (TestCluster, RunningManager) {
    let cluster = TestCluster::start().await;
    let running = cluster.run(Controllers::new(cluster.client()).without_nodes().manager());
    (cluster, running)
}

async fn service(client: &Client, name: &str, change: Value) {
    let mut spec = json!({"selector": {"app": "web"}, "ports": [{"port": 80}]});
    spec.as_object_mut().unwrap().extend(change.as_object().unwrap().clone());
    create::<Service>(client, json!({"metadata": {"name": name}, "spec": spec})).await;
}

/// Creates a pod that is ready on a node.
async fn ready_pod(client: &Client, node: &str) {
    let spec = json!({"nodeName": node, "containers": [{"name": "c", "image": "i"}]});
    create::<Pod>(client, json!({"metadata": {"name": "web", "labels": {"app": "web"}}, "spec": spec})).await;
    let conditions = json!([{"type": "Ready", "status": "True"}]);
    let address = "10.1.0.1";
    let status =
        json!({"phase": "Running", "podIP": address, "podIPs": [{"ip": address}], "conditions": conditions});
    let patch = Patch::Merge(json!({ "status": status }));
    api::<Pod>(client).patch_status("web", &PatchParams::default(), &patch).await.unwrap();
}

async fn create_node(client: &Client, name: &str) {
    let labels = json!({"topology.kubernetes.io/zone": "zone-a"});
    let node = serde_json::from_value(json!({"metadata": {"name": name, "labels": labels}})).unwrap();
    Api::<Node>::all(client.clone()).create(&PostParams::default(), &node).await.unwrap();
}

async fn slices(client: &Client, service: &str) -> Vec<EndpointSlice> {
    let of_service = ListParams::default().labels(&format!("kubernetes.io/service-name={service}"));
    api::<EndpointSlice>(client).list(&of_service).await.unwrap().items
}

/// Waits for the only endpoint of a Service.
async fn endpoint(client: &Client, service: &str, is: impl Fn(&Endpoint) -> bool) -> Endpoint {
    eventually(WAIT_LIMIT, || async {
        let slices = slices(client, service).await;
        let mut endpoints = slices.iter().flat_map(|slice| slice.endpoints.iter().flatten());
        endpoints.find(|endpoint| is(endpoint)).cloned().ok_or_else(|| format!("{slices:?}"))
    })
    .await
}

#[tokio::test]
async fn a_pod_gets_an_endpoint_when_its_node_appears() {
    let (cluster, _running) = cluster().await;
    let client = cluster.client();
    service(&client, "web", json!({})).await;
    ready_pod(&client, "late").await;
    // The Endpoints need no node: the slices were planned without the node by then.
    eventually(WAIT_LIMIT, || async {
        let endpoints = api::<Endpoints>(&client).get("web").await.map_err(|error| error.to_string())?;
        endpoints.subsets.filter(|subsets| !subsets.is_empty()).map(drop).ok_or("no address".to_owned())
    })
    .await;
    eventually(WAIT_LIMIT, || async {
        let slices = slices(&client, "web").await;
        if slices.is_empty() { Err("no slice") } else { Ok(()) }
    })
    .await;
    create_node(&client, "late").await;
    endpoint(&client, "web", |endpoint| endpoint.node_name.as_deref() == Some("late")).await;
}

#[tokio::test]
async fn endpoints_have_the_hints_of_the_traffic_distribution() {
    let (cluster, _running) = cluster().await;
    let client = cluster.client();
    create_node(&client, "a").await;
    ready_pod(&client, "a").await;
    service(&client, "web", json!({"trafficDistribution": "PreferSameNode"})).await;
    let found = endpoint(&client, "web", |endpoint| endpoint.hints.is_some()).await;
    let hints = json!({"forNodes": [{"name": "a"}], "forZones": [{"name": "zone-a"}]});
    assert_eq!(serde_json::to_value(found.hints).unwrap(), hints);
    let change = |spec: Value| Patch::Merge(json!({ "spec": spec }));
    let services = api::<Service>(&client);
    let zone = change(json!({"trafficDistribution": "PreferClose"}));
    services.patch("web", &PatchParams::default(), &zone).await.unwrap();
    let zones = json!({"forZones": [{"name": "zone-a"}]});
    endpoint(&client, "web", |endpoint| serde_json::to_value(&endpoint.hints).unwrap() == zones).await;
    let everywhere = change(json!({"trafficDistribution": null}));
    services.patch("web", &PatchParams::default(), &everywhere).await.unwrap();
    endpoint(&client, "web", |endpoint| endpoint.hints.is_none()).await;
}

#[tokio::test]
async fn a_service_with_an_external_name_has_no_endpoints() {
    let (cluster, _running) = cluster().await;
    let client = cluster.client();
    create_node(&client, "a").await;
    ready_pod(&client, "a").await;
    let external = json!({"type": "ExternalName", "externalName": "example.com"});
    service(&client, "external", external).await;
    service(&client, "web", json!({})).await;
    // The controllers have handled the older service by the end of the newer one, or a moment later.
    endpoint(&client, "web", |_| true).await;
    let change = Patch::Merge(json!({"metadata": {"labels": {"l": "v"}}}));
    api::<Service>(&client).patch("web", &PatchParams::default(), &change).await.unwrap();
    eventually(WAIT_LIMIT, || async {
        let slices = slices(&client, "web").await;
        let labelled = slices.iter().any(|slice| slice.metadata.labels.as_ref().unwrap().contains_key("l"));
        if labelled { Ok(()) } else { Err(format!("{slices:?}")) }
    })
    .await;
    assert_eq!(slices(&client, "external").await, []);
    assert_eq!(api::<Endpoints>(&client).get_opt("external").await.unwrap(), None);
}
