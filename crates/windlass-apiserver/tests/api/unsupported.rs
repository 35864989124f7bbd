//! Features that this server does not support: the server reports an error. The tests run on embedded servers
//! only, because the real server supports the features.

use serde_json::json;
use windlass_apiserver::Server;

use crate::fixtures::widgets;
use crate::harness::Api;

const DEFINITIONS: &str = "/apis/apiextensions.k8s.io/v1/customresourcedefinitions";

#[tokio::test]
async fn rules_of_a_schema_are_warned_of() {
    let api = Api::embedded(&Server::builder().build().unwrap());
    let mut definition = widgets(&api);
    definition["spec"]["versions"][0]["schema"]["openAPIV3Schema"]["properties"]["spec"]["x-kubernetes-validations"] =
        json!([{"rule": "self.size < 5"}]);
    let created = api.post(&format!("{DEFINITIONS}?dryRun=All"), definition).await.is(201);
    assert!(created.warnings()[0].contains("x-kubernetes-validations are not evaluated"), "{created}");
}
