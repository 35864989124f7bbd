//! What this server does not do, it says. The real one does it, so these tests run on embedded servers only.

use serde_json::json;
use windlass_apiserver::Server;

use crate::fixtures::{group, widget, widgets};
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

#[tokio::test]
async fn a_version_that_needs_a_conversion_webhook_is_an_error() {
    let api = Api::embedded(&Server::builder().build().unwrap());
    let mut definition = widgets(&api);
    let mut second = definition["spec"]["versions"][0].clone();
    second["name"] = json!("v2");
    second["storage"] = json!(false);
    definition["spec"]["versions"].as_array_mut().unwrap().push(second);
    definition["spec"]["conversion"] = json!({
        "strategy": "Webhook",
        "webhook": {"conversionReviewVersions": ["v1"], "clientConfig": {"url": "https://localhost:1/"}},
    });
    api.post(DEFINITIONS, definition).await.is(201);
    let path = |version: &str| format!("/apis/{}/{version}/namespaces/default/widgets", group(&api));
    api.get(&path("v2")).await.is(200);
    api.post(&path("v1"), widget(&api, "a")).await.is(201);
    api.get(&path("v1")).await.is(200);
    let refused = api.get(&path("v2")).await.is(500);
    assert!(refused.text_at("/message").contains("does not call conversion webhooks yet"), "{refused}");
}
