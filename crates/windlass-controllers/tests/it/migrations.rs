//! Migrations of custom resources to another stored version.

use http::{Method, Request};
use kube_client::Client;
use serde_json::{Value, json};
use windlass_test::{TestCluster, eventually};

use crate::support::WAIT_LIMIT;

const MIGRATIONS: &str = "/apis/storagemigration.k8s.io/v1/storageversionmigrations";
const DEFINITIONS: &str = "/apis/apiextensions.k8s.io/v1/customresourcedefinitions";
const FOOS: &str = "/apis/example.com/v1/namespaces/default/foos";

async fn send(client: &Client, method: Method, path: &str, body: &Value) -> Result<Value, String> {
    let kind = if method == Method::PATCH { "application/merge-patch+json" } else { "application/json" };
    let body = if body.is_null() { Vec::new() } else { body.to_string().into_bytes() };
    let request = Request::builder().method(method).uri(path).header("content-type", kind);
    client.request(request.body(body).unwrap()).await.map_err(|error| format!("{path}: {error}"))
}

/// The versions of a definition, one of which is stored.
fn versions(stored: &str) -> Value {
    let schema = json!({"openAPIV3Schema": {"type": "object", "x-kubernetes-preserve-unknown-fields": true}});
    let version =
        |name: &str| json!({"name": name, "served": true, "storage": name == stored, "schema": schema});
    json!([version("v1"), version("v2")])
}

/// Returns type, status, reason and message of each condition.
fn conditions(object: &Value) -> Vec<String> {
    let conditions = object["status"]["conditions"].as_array().cloned().unwrap_or_default();
    let text = |condition: &Value, field: &str| condition[field].as_str().unwrap_or_default().to_owned();
    let shown = |condition: &Value| {
        ["type", "status", "reason", "message"].map(|field| text(condition, field)).join(" ")
    };
    conditions.iter().map(shown).collect()
}

#[tokio::test]
async fn each_object_is_written_in_the_stored_version() {
    let cluster = TestCluster::with_controllers().await;
    let client = cluster.client();
    let get = async |path: &str| send(&client, Method::GET, path, &Value::Null).await;
    let names = json!({"plural": "foos", "singular": "foo", "kind": "Foo", "listKind": "FooList"});
    let spec =
        json!({"group": "example.com", "scope": "Namespaced", "names": names, "versions": versions("v1")});
    let definition = json!({"metadata": {"name": "foos.example.com"}, "spec": spec});
    send(&client, Method::POST, DEFINITIONS, &definition).await.unwrap();
    let definition = format!("{DEFINITIONS}/foos.example.com");
    eventually(WAIT_LIMIT, || get(FOOS)).await;
    let foo = json!({"apiVersion": "example.com/v1", "kind": "Foo", "metadata": {"name": "a"}});
    let before = send(&client, Method::POST, FOOS, &foo).await.unwrap();
    let change = json!({"spec": {"versions": versions("v2")}});
    send(&client, Method::PATCH, &definition, &change).await.unwrap();
    let spec = json!({"resource": {"group": "example.com", "resource": "foos"}});
    for name in ["a", "b"] {
        let migration = json!({"metadata": {"name": name}, "spec": spec});
        send(&client, Method::POST, MIGRATIONS, &migration).await.unwrap();
    }
    for name in ["a", "b"] {
        let path = format!("{MIGRATIONS}/{name}");
        let migration = eventually(WAIT_LIMIT, || async {
            let migration = get(&path).await?;
            let is_done = conditions(&migration).iter().any(|text| text.starts_with("Running False"));
            if is_done { Ok(migration) } else { Err(format!("{:?}", conditions(&migration))) }
        })
        .await;
        assert_eq!(
            conditions(&migration),
            [
                "Running False MigrationCompleted Migration completed",
                "Succeeded True StorageVersionMigrationSucceeded Migration completed"
            ]
        );
    }
    let after = get(&format!("{FOOS}/a")).await.unwrap();
    assert_ne!(before["metadata"]["resourceVersion"], after["metadata"]["resourceVersion"]);
    let definition = get(&definition).await.unwrap();
    assert_eq!(definition["status"]["storedVersions"], json!(["v2"]));
    let migrating = "StorageMigrating False MigrationSucceeded The migration has succeeded and the stored versions have been updated";
    assert!(conditions(&definition).contains(&migrating.to_owned()), "{:?}", conditions(&definition));
}
