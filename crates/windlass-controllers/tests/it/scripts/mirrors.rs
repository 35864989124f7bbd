//! Endpoints of Services without a selector, and the mirroring slices.

use serde_json::{Value, json};

use super::stage::Stage;

const SHOWN: [&str; 2] = ["v1/endpoints", "discovery.k8s.io/v1/endpointslices"];
const ENDPOINTS: &str = "v1/endpoints";
const DB: &str = "v1/endpoints/db";

fn subset(addresses: &[&str], ports: Value) -> Value {
    let addresses: Vec<Value> = addresses.iter().map(|ip| json!({"ip": ip})).collect();
    json!({"addresses": addresses, "ports": ports})
}

async fn service(stage: &Stage, name: &str) {
    let spec = json!({"ports": [{"name": "sql", "port": 5432}], "clusterIP": "None"});
    stage.create("v1/services", json!({"metadata": {"name": name}, "spec": spec})).await;
}

#[tokio::test]
async fn endpoints_without_a_selector_are_mirrored() {
    let mut stage = Stage::open("mirrors", &SHOWN).await;
    let sql = || json!([{"name": "sql", "port": 5432}]);
    let metadata = json!({
        "name": "db", "labels": {"l": "v"},
        "annotations": {"a": "b", "kubectl.kubernetes.io/last-applied-configuration": "{}"},
    });
    let subsets = json!([subset(&["10.1.0.1", "10.1.0.2"], sql())]);
    stage.create(ENDPOINTS, json!({"metadata": metadata, "subsets": subsets})).await;
    service(&stage, "db").await;
    stage.settle("two addresses").await;
    let mut ready = subset(&["10.1.0.1", "fd00::1"], sql());
    ready["notReadyAddresses"] = json!([{"ip": "10.1.0.3", "hostname": "three", "nodeName": "n"}]);
    let more = subset(&["10.1.0.1"], json!([{"name": "http", "port": 80, "appProtocol": "http"}]));
    stage.patch(DB, json!({"subsets": [ready, more]})).await;
    stage.settle("two families, other ports, one is not ready").await;
    // A single slice of each family: the reused slice is then unambiguous.
    stage.patch(DB, json!({"subsets": [subset(&["10.1.0.1", "fd00::1"], sql())]})).await;
    stage.settle("one set of ports").await;
    let bare = subset(&["10.1.0.9"], json!([]));
    stage.patch(DB, json!({"subsets": [subset(&["fd00::2"], json!([{"port": 1}])), bare]})).await;
    stage.settle("all ports are others").await;
    stage.patch(DB, json!({"metadata": {"labels": {"l": "w"}, "annotations": {"a": null}}})).await;
    stage.settle("another label").await;
    stage
        .patch(DB, json!({"metadata": {"labels": {"endpointslice.kubernetes.io/skip-mirror": "true"}}}))
        .await;
    stage.settle("not to be mirrored").await;
    stage
        .patch(DB, json!({"metadata": {"labels": {"endpointslice.kubernetes.io/skip-mirror": "false"}}}))
        .await;
    stage.settle("to be mirrored again").await;
    stage.patch(DB, json!({"subsets": null})).await;
    stage.settle("without addresses").await;
    stage.patch(DB, json!({"subsets": [subset(&["10.1.0.1"], sql())]})).await;
    stage.settle("one address").await;
    stage.delete(DB).await;
    stage.settle("deleted").await;
    stage.delete("v1/services/db").await;
    stage.finish().await;
}

#[tokio::test]
async fn a_thousand_addresses_are_mirrored() {
    let mut stage = Stage::open("mirrors_too_many", &["v1/services"]).await;
    service(&stage, "db").await;
    let addresses: Vec<String> = (0..1003).map(|n| format!("10.1.{}.{}", n / 250, n % 250)).collect();
    let addresses: Vec<&str> = addresses.iter().map(String::as_str).collect();
    let subsets = json!([subset(&addresses, json!([{"port": 1}]))]);
    stage.create(ENDPOINTS, json!({"metadata": {"name": "db"}, "subsets": subsets})).await;
    stage.settle("mirrored").await;
    let mirrored = async |stage: &Stage| -> usize {
        let slices = stage.list("discovery.k8s.io/v1/endpointslices").await;
        slices.iter().map(|slice| slice["endpoints"].as_array().map_or(0, Vec::len)).sum()
    };
    while mirrored(&stage).await != 1000 {
        tokio::time::sleep(std::time::Duration::from_millis(30)).await;
    }
    stage.finish().await;
}
