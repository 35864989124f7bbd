//! Nodes.

use serde_json::json;

use super::named;
use crate::harness::Api;

#[tokio::test]
async fn the_dynamic_configuration_of_a_kubelet_is_dropped() {
    let api = Api::start();
    let config = json!({"spec": {"configSource": {}}, "status": {"config": {"error": "e"}}});
    let node = api.post("/api/v1/nodes?dryRun=All", named("checked", config)).await.is(201);
    assert_eq!(node.at("/spec/configSource"), json!(null));
    assert_eq!(node.at("/status/config"), json!(null));
}
