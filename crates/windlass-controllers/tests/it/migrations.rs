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

/// The served versions of a definition. The server stores objects in the version `stored`.
fn versions(names: &[&str], stored: &str) -> Value {
    let schema = json!({"openAPIV3Schema": {"type": "object", "x-kubernetes-preserve-unknown-fields": true}});
    let version =
        |name: &&str| json!({"name": name, "served": true, "storage": *name == stored, "schema": schema});
    names.iter().map(version).collect()
}

/// Creates a definition of the kind, and waits until the path of the objects is served.
async fn define(client: &Client, kind: &str, versions: Value, path: &str) {
    let singular = kind.to_lowercase();
    let plural = format!("{singular}s");
    let names =
        json!({"plural": plural, "singular": singular, "kind": kind, "listKind": format!("{kind}List")});
    let spec = json!({"group": "example.com", "scope": "Namespaced", "names": names, "versions": versions});
    let definition = json!({"metadata": {"name": format!("{plural}.example.com")}, "spec": spec});
    send(client, Method::POST, DEFINITIONS, &definition).await.unwrap();
    eventually(WAIT_LIMIT, || send(client, Method::GET, path, &Value::Null)).await;
}

async fn migrate(client: &Client, name: &str, plural: &str) {
    let spec = json!({"resource": {"group": "example.com", "resource": plural}});
    let migration = json!({"metadata": {"name": name}, "spec": spec});
    send(client, Method::POST, MIGRATIONS, &migration).await.unwrap();
}

/// Waits for the success of a migration.
async fn expect_success(client: &Client, name: &str) {
    let path = format!("{MIGRATIONS}/{name}");
    let migration = eventually(WAIT_LIMIT, || async {
        let migration = send(client, Method::GET, &path, &Value::Null).await?;
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
    define(&client, "Foo", versions(&["v1", "v2"], "v1"), FOOS).await;
    let definition = format!("{DEFINITIONS}/foos.example.com");
    let foo = json!({"apiVersion": "example.com/v1", "kind": "Foo", "metadata": {"name": "a"}});
    let before = send(&client, Method::POST, FOOS, &foo).await.unwrap();
    let change = json!({"spec": {"versions": versions(&["v1", "v2"], "v2")}});
    send(&client, Method::PATCH, &definition, &change).await.unwrap();
    for name in ["a", "b"] {
        migrate(&client, name, "foos").await;
    }
    for name in ["a", "b"] {
        expect_success(&client, name).await;
    }
    let after = get(&format!("{FOOS}/a")).await.unwrap();
    assert_ne!(before["metadata"]["resourceVersion"], after["metadata"]["resourceVersion"]);
    let definition = get(&definition).await.unwrap();
    assert_eq!(definition["status"]["storedVersions"], json!(["v2"]));
    let migrating = "StorageMigrating False MigrationSucceeded The migration has succeeded and the stored versions have been updated";
    assert!(conditions(&definition).contains(&migrating.to_owned()), "{:?}", conditions(&definition));
}

#[tokio::test]
async fn a_resource_that_the_preferred_version_of_the_group_lacks_is_migrated() {
    let cluster = TestCluster::with_controllers().await;
    let client = cluster.client();
    define(&client, "Foo", versions(&["v1"], "v1"), FOOS).await;
    define(&client, "Bar", versions(&["v1beta1"], "v1beta1"), "/apis/example.com/v1beta1/bars").await;
    migrate(&client, "a", "bars").await;
    expect_success(&client, "a").await;
}
