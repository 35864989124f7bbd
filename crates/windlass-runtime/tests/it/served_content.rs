//! Objects that the server serves with other content than before, at the same resource version.

use std::sync::Arc;

use k8s_openapi::apiextensions_apiserver::pkg::apis::apiextensions::v1::CustomResourceDefinition;
use kube::{CustomResource, CustomResourceExt};
use kube_client::{
    Api, Client,
    api::{Patch, PatchParams, PostParams},
};
use kube_core::{ApiResource, DynamicObject};
use parking_lot::Mutex;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};
use windlass_runtime::{Action, Context, Controller, Error, Manager, ObjectKey, Predicate};
use windlass_test::{TestCluster, eventually};

use crate::fixture::{SOON, expect_eq, metric};

#[derive(CustomResource, Serialize, Deserialize, JsonSchema, Clone, Debug)]
#[kube(group = "example.com", version = "v1", kind = "Jar", namespaced)]
struct JarSpec {
    size: u32,
}

/// Returns the definition of an older release, without a required size.
fn loose_definition() -> CustomResourceDefinition {
    let mut definition = serde_json::to_value(Jar::crd()).expect("JSON");
    let schema = &mut definition["spec"]["versions"][0]["schema"]["openAPIV3Schema"];
    schema["properties"]["spec"]["required"] = json!([]);
    serde_json::from_value(definition).expect("a definition")
}

async fn set_default(client: &Client, size: u32) {
    let path = "/spec/versions/0/schema/openAPIV3Schema/properties/spec/properties/size/default";
    let patch = json!([{ "op": "add", "path": path, "value": size }]);
    let patch = Patch::<()>::Json(serde_json::from_value(patch).expect("a patch"));
    let definitions: Api<CustomResourceDefinition> = Api::all(client.clone());
    definitions.patch("jars.example.com", &PatchParams::default(), &patch).await.expect("patched");
}

/// A change of a CRD's defaults changes the content of objects, but neither resource versions nor generations.
#[tokio::test]
async fn a_new_default_reaches_the_reconciler_without_a_write_to_the_object() {
    let cluster = TestCluster::start().await;
    let client = cluster.client();
    cluster.install(&loose_definition()).await;
    let jars =
        || Api::<DynamicObject>::default_namespaced_with(client.clone(), &ApiResource::erase::<Jar>(&()));
    let jar: DynamicObject = serde_json::from_value(json!({
        "apiVersion": "example.com/v1", "kind": "Jar", "metadata": { "name": "a" }, "spec": {},
    }))
    .expect("an object");
    let created = jars().create(&PostParams::default(), &jar).await.expect("created");
    assert_eq!(created.data["spec"], Value::Object(serde_json::Map::new()));

    let sizes = Arc::new(Mutex::new(Vec::new()));
    let controller = {
        let sizes = sizes.clone();
        Controller::of::<Jar>(move |key: ObjectKey, cx: Context<Jar>| {
            let sizes = sizes.clone();
            async move {
                let Some(jar) = cx.get(&key)? else { return Ok(Action::done()) };
                sizes.lock().push(jar.spec.size);
                Ok::<_, Error>(Action::done())
            }
        })
        .predicate(Predicate::generation_changed())
    };
    let manager = Manager::new(client.clone()).namespaces(["default"]).controller(controller);
    let metrics = manager.metrics().clone();
    let running = cluster.run_restricted(manager).await;
    let of_jars = |name: &str| metric(&metrics.render(), &format!("{name}{{controller=\"jar\"}}"));
    eventually(SOON, || async {
        expect_eq(of_jars("controller_runtime_terminal_reconcile_errors_total"), 1)
    })
    .await;
    let retries = metric(&metrics.render(), "workqueue_retries_total{name=\"jar\",controller=\"jar\"}");
    assert_eq!(retries, 0, "a retry does not help");

    for size in [3, 5] {
        set_default(&client, size).await;
        eventually(SOON, || async { expect_eq(sizes.lock().last().copied(), Some(size)) }).await;
    }
    assert_eq!(of_jars("windlass_undecodable_objects_total"), 1);
    let now = jars().get("a").await.expect("read");
    assert_eq!(now.metadata.resource_version, created.metadata.resource_version, "nobody wrote the object");
    running.stop().await.expect("a graceful end");
}
