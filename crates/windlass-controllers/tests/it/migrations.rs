//! Migrations of custom resources to another stored version.

use std::sync::{Arc, Mutex};

use http::{Method, Request, Response};
use kube_client::Client;
use kube_client::client::Body;
use serde_json::{Value, json};
use windlass_controllers::Controllers;
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

/// Waits for the end of a migration. Returns the conditions.
async fn ended(client: &Client, name: &str) -> Vec<String> {
    let path = format!("{MIGRATIONS}/{name}");
    eventually(WAIT_LIMIT, || async {
        let migration = send(client, Method::GET, &path, &Value::Null).await?;
        let conditions = conditions(&migration);
        let is_done = conditions.iter().any(|text| text.starts_with("Running False"));
        if is_done { Ok(conditions) } else { Err(format!("{conditions:?}")) }
    })
    .await
}

/// Waits for the success of a migration.
async fn expect_success(client: &Client, name: &str) {
    assert_eq!(
        ended(client, name).await,
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

/// Returns a client whose lists of the foos of all namespaces have these replies first: codes and bodies.
fn with_lists(client: Client, replies: Vec<(u16, Value)>) -> Client {
    let replies = Arc::new(Mutex::new(replies.into_iter()));
    let service = tower::service_fn(move |request: Request<Body>| {
        let (client, replies) = (client.clone(), Arc::clone(&replies));
        async move {
            let query = request.uri().query().unwrap_or_default();
            let is_list =
                request.method() == Method::GET && request.uri().path() == "/apis/example.com/v1/foos";
            // The lists of watches say a resource version.
            let reply = if is_list && !query.contains("resourceVersion") {
                replies.lock().unwrap().next()
            } else {
                None
            };
            match reply {
                None => client.send(request).await,
                Some((code, body)) => {
                    let body = Body::from(body.to_string().into_bytes());
                    Ok(Response::builder().status(code).body(body).unwrap())
                }
            }
        }
    });
    Client::new(service, "default")
}

/// A list of metadata, as an extension server sends the list.
fn list(version: &str, objects: &[&str]) -> Value {
    let object = |version: &&str| json!({"kind": "PartialObjectMetadata", "apiVersion": "meta.k8s.io/v1", "metadata": {"name": "a", "resourceVersion": version}});
    let items: Vec<Value> = objects.iter().map(object).collect();
    json!({
        "kind": "PartialObjectMetadataList", "apiVersion": "meta.k8s.io/v1",
        "metadata": {"resourceVersion": version}, "items": items,
    })
}

/// Returns the conditions at the end of a migration of the foos, if lists have these replies first.
async fn with_replies(replies: Vec<(u16, Value)>) -> Vec<String> {
    let cluster = TestCluster::start().await;
    let client = cluster.client();
    define(&client, "Foo", versions(&["v1"], "v1"), FOOS).await;
    let _controllers = cluster.run(Controllers::new(with_lists(client.clone(), replies)).manager());
    migrate(&client, "a", "foos").await;
    ended(&client, "a").await
}

#[tokio::test]
async fn a_migration_fails_if_resource_versions_have_no_order() {
    let failed = |why: &str| {
        let failed = format!("Failed True StorageVersionMigrationFailed {why}");
        vec!["Running False MigrationCompleted Migration completed".to_owned(), failed]
    };
    assert_eq!(
        with_replies(vec![(200, list("etag", &[]))]).await,
        failed(
            "latest resourceVersion for example.com/v1, Resource=foos is not valid: resource version is not well formed: etag"
        )
    );
    assert_eq!(
        with_replies(vec![(200, list("9", &[])), (200, list("9", &["8", "etag"]))]).await,
        failed("migration encountered unhandled error: resource version is not well formed: etag")
    );
}

#[tokio::test]
async fn a_list_that_is_not_found_is_repeated() {
    let absent = json!({"kind": "Status", "status": "Failure", "reason": "NotFound", "message": "absent", "code": 404});
    let conditions = with_replies(vec![(404, absent)]).await;
    assert_eq!(conditions[1], "Succeeded True StorageVersionMigrationSucceeded Migration completed");
}
