use std::{net::SocketAddr, sync::Arc, time::Duration};

use k8s_openapi::apiextensions_apiserver::pkg::apis::apiextensions::v1::{
    CustomResourceDefinition, JSONSchemaProps,
};
use kube_client::{
    Api, Client,
    api::{ListParams, Patch, PatchParams, PostParams},
};
use parking_lot::Mutex;
use serde_json::json;
use tokio::{
    io::copy_bidirectional,
    net::{TcpListener, TcpStream},
};
use windlass_runtime::{
    Action, Context, Controller, Error, Manager, ObjectKey, Result, RunContext, Runnable,
    storage_migration::StorageMigration,
    webhook::{
        AdmissionChange, AdmissionContext, AdmissionDenial, SelfIssued, WebhookServer, manifests::Endpoint,
    },
};
use windlass_test::{eventually, stretched};

use super::{
    bars::{self, bars, create_old, named, old_bars, v2},
    configure, denial, free_port,
    setting::Cluster,
};
use crate::{
    fixture::{Running, SOON, expect_eq},
    manager::{free_address, get},
};

struct Setting {
    cluster: Cluster,
    client: Client,
    running: Running,
}

async fn setting(stored: &str) -> Setting {
    async fn reconcile(_: ObjectKey, _: Context<v2::Bar>) -> Result<Action> {
        Ok(Action::done())
    }
    let cluster = Cluster::start().await;
    let (client, port) = (cluster.client(), free_port().await);
    let endpoint = Endpoint::url(format!("https://127.0.0.1:{port}"));
    cluster.install(&bars::definition(stored, &endpoint)).await;
    let issued = SelfIssued::for_host("127.0.0.1", port).interval(Duration::from_millis(50));
    let webhooks = bars::webhooks().validator::<v2::Bar>(refuse);
    configure(&client, "hooks", &webhooks, &endpoint).await;
    let server = WebhookServer::new(webhooks).port(port).self_issued(issued);
    let manager =
        Manager::new(client.clone()).webhooks(server).controller(Controller::of::<v2::Bar>(reconcile));
    Setting { running: cluster.run(manager).await, cluster, client }
}

async fn stored_versions(client: &Client) -> Vec<String> {
    let definitions: Api<CustomResourceDefinition> = Api::all(client.clone());
    let definition = definitions.get("bars.example.com").await.expect("read");
    definition.status.and_then(|status| status.stored_versions).unwrap_or_default()
}

/// Makes v2 the storage version.
async fn store_v2(client: &Client) {
    let definitions: Api<CustomResourceDefinition> = Api::all(client.clone());
    let patch = json!([
        {"op": "replace", "path": "/spec/versions/0/storage", "value": false},
        {"op": "replace", "path": "/spec/versions/1/storage", "value": true},
    ]);
    let patch = Patch::<()>::Json(serde_json::from_value(patch).expect("a patch"));
    definitions.patch("bars.example.com", &PatchParams::default(), &patch).await.expect("patched");
    eventually(SOON, || async {
        let stored = stored_versions(client).await;
        if stored == ["v1", "v2"] { Ok(()) } else { Err(format!("{stored:?}")) }
    })
    .await;
}

/// Refuses updates of an object.
async fn refuse(change: AdmissionChange<v2::Bar>, _: AdmissionContext) -> Result<(), AdmissionDenial> {
    match change {
        AdmissionChange::Update { old, .. } if old.spec.max == 99 => Err(AdmissionDenial::new("99 stays")),
        _ => Ok(()),
    }
}

/// Forwards connections to the port while the manager is ready, as a Service does.
async fn forward_while_ready(listener: TcpListener, health: SocketAddr, port: u16) {
    loop {
        let (mut client, _) = listener.accept().await.expect("a connection");
        if matches!(get(health, "/readyz").await, Ok((200, _))) {
            tokio::spawn(async move {
                let mut server = TcpStream::connect(("127.0.0.1", port)).await?;
                copy_bidirectional(&mut client, &mut server).await
            });
        }
    }
}

#[tokio::test]
async fn the_only_replica_becomes_ready_although_its_first_list_needs_its_conversion() {
    async fn reconcile(_: ObjectKey, _: Context<v2::Bar>) -> Result<Action> {
        Ok(Action::done())
    }
    let cluster = Cluster::start().await;
    let (client, port, health) = (cluster.client(), free_port().await, free_address().await);
    let service = TcpListener::bind("127.0.0.1:0").await.expect("bound");
    let service_port = service.local_addr().expect("an address").port();
    let endpoint = Endpoint::url(format!("https://127.0.0.1:{service_port}"));
    cluster.install(&bars::definition("v1", &endpoint)).await;
    eventually(SOON, || create_old(&client, "a", 5)).await;
    let forward = tokio::spawn(forward_while_ready(service, health, port));

    let issued = SelfIssued::for_host("127.0.0.1", service_port).interval(Duration::from_millis(50));
    let server = WebhookServer::new(bars::webhooks()).port(port).self_issued(issued);
    let synced = Arc::new(tokio::sync::Notify::new());
    let tell = synced.clone();
    let reads = Runnable::new("reads", move |_: RunContext| async move {
        tell.notify_one();
        Ok::<_, Error>(())
    });
    let manager = Manager::new(client.clone())
        .webhooks(server)
        .controller(Controller::of::<v2::Bar>(reconcile))
        .runnable(reads)
        .health_address(health);
    let running = cluster.run(manager).await;
    tokio::time::timeout(stretched(SOON), synced.notified()).await.expect("the caches are filled");
    running.stop().await.expect("a graceful stop");
    forward.abort();
    drop(cluster);
}

#[tokio::test]
async fn objects_are_read_and_written_in_both_versions_without_a_loss() {
    let Setting { client, running, cluster } = setting("v1").await;
    let new = v2::Bar::new(named("a"), v2::Spec { min: 2, max: 5 });
    eventually(SOON, || async { bars(&client).create(&PostParams::default(), &new).await }).await;
    assert_eq!(old_bars(&client).get("a").await.expect("read").spec.size, 5);
    assert_eq!(bars(&client).get("a").await.expect("read").spec, new.spec);
    let patch = Patch::Merge(json!({"spec": {"size": 7}}));
    old_bars(&client).patch("a", &PatchParams::default(), &patch).await.expect("patched");
    assert_eq!(bars(&client).get("a").await.expect("read").spec, v2::Spec { min: 2, max: 7 });
    assert_eq!(
        denial(create_old(&client, "unlucky", 13).await),
        "500 InternalError Internal error occurred: conversion webhook for example.com/v1, Kind=Bar failed: \
         failed to convert example.com/v1, Kind=Bar to example.com/v2, Kind=Bar: 13 is unlucky"
    );
    running.stop().await.expect("a graceful stop");
    drop(cluster);
}

/// `windlass run` registers the conversion when the operator serves webhooks, which may be after the
/// operator's first list.
#[tokio::test]
async fn a_conversion_that_is_registered_after_the_first_list_reaches_the_cache() {
    let cluster = Cluster::start().await;
    let (client, port) = (cluster.client(), free_port().await);
    let endpoint = Endpoint::url(format!("https://127.0.0.1:{port}"));
    let mut definition = bars::definition("v1", &endpoint);
    let conversion = definition.spec.conversion.take();
    cluster.install(&definition).await;
    let created = eventually(SOON, || create_old(&client, "a", 5)).await;

    let seen = Arc::new(Mutex::new(Vec::new()));
    let controller = {
        let seen = seen.clone();
        Controller::of::<v2::Bar>(move |key: ObjectKey, cx: Context<v2::Bar>| {
            let seen = seen.clone();
            async move {
                let bar = cx.get(&key)?;
                seen.lock().push(bar.map(|bar| bar.spec.max));
                Ok::<_, Error>(Action::done())
            }
        })
    };
    let issued = SelfIssued::for_host("127.0.0.1", port).interval(Duration::from_millis(50));
    let server = WebhookServer::new(bars::webhooks()).port(port).self_issued(issued);
    let running = cluster.run(Manager::new(client.clone()).webhooks(server).controller(controller)).await;
    eventually(SOON, || async { expect_eq(seen.lock().clone(), vec![Some(0)]) }).await;

    let definitions: Api<CustomResourceDefinition> = Api::all(client.clone());
    let patch = Patch::Merge(json!({ "spec": { "conversion": conversion } }));
    definitions.patch("bars.example.com", &PatchParams::default(), &patch).await.expect("patched");
    eventually(SOON, || async { expect_eq(seen.lock().last().copied(), Some(Some(5))) }).await;
    let now = bars(&client).get("a").await.expect("read");
    assert_eq!(now.metadata.resource_version, created.metadata.resource_version, "nobody wrote the object");
    running.stop().await.expect("a graceful stop");
    drop(cluster);
}

/// kubectl has applied the derived CRD, without a conversion.
#[tokio::test]
async fn an_operator_adds_the_conversion_to_a_crd_that_is_complete_otherwise() {
    let definition = without_conversion();
    assert_conversion_is_added(definition.clone(), definition).await;
}

#[tokio::test]
async fn an_operator_adds_the_conversion_to_a_crd_that_allows_more() {
    let definition = without_conversion();
    let mut newer = definition.clone();
    let schemas = newer.spec.versions.iter_mut().filter_map(|version| version.schema.as_mut());
    for schema in schemas.filter_map(|validation| validation.open_api_v3_schema.as_mut()) {
        let integer = JSONSchemaProps { type_: Some("integer".to_owned()), ..JSONSchemaProps::default() };
        let spec = schema.properties.get_or_insert_default().get_mut("spec").expect("a spec");
        spec.properties.get_or_insert_default().insert("weight".to_owned(), integer);
    }
    assert_conversion_is_added(newer, definition).await;
}

fn without_conversion() -> CustomResourceDefinition {
    let mut definition = bars::definition("v1", &Endpoint::url("https://127.0.0.1:1"));
    definition.spec.conversion = None;
    definition
}

/// Runs an operator with the definition `own` in a cluster with the definition `live`.
async fn assert_conversion_is_added(live: CustomResourceDefinition, own: CustomResourceDefinition) {
    let cluster = Cluster::start().await;
    let (client, port) = (cluster.client(), free_port().await);
    cluster.install(&live).await;
    let issued = SelfIssued::for_host("127.0.0.1", port).interval(Duration::from_millis(50));
    let server = WebhookServer::new(bars::webhooks()).port(port).self_issued(issued);
    let manager = Manager::new(client.clone()).crd(own).apply_crds().webhooks(server);
    let running = cluster.run(manager).await;
    let created = eventually(SOON, || create_old(&client, "a", 5)).await;
    assert_eq!(created.metadata.name.as_deref(), Some("a"));
    eventually(SOON, || async {
        let converted = bars(&client).get("a").await.map_err(|error| error.to_string())?;
        if converted.spec.max == 5 { Ok(()) } else { Err(format!("max is {}", converted.spec.max)) }
    })
    .await;
    running.stop().await.expect("a graceful stop");
    drop(cluster);
}

#[tokio::test]
async fn a_migration_rewrites_all_objects_and_removes_the_old_version() {
    let Setting { client, running, cluster } = setting("v1").await;
    eventually(SOON, || create_old(&client, "bar-0", 0)).await;
    for number in 1..12 {
        create_old(&client, &format!("bar-{number}"), number).await.expect("created");
    }
    let migration = StorageMigration::of("bars.example.com").page_size(5);
    assert_eq!(migration.run(&client).await.expect("nothing to do").rewritten, 0);
    store_v2(&client).await;
    let report = migration.run(&client).await.expect("migrated");
    assert_eq!((report.rewritten, &*report.storage_version), (12, "v2"));
    assert_eq!(report.removed_versions, ["v1"]);
    assert_eq!(stored_versions(&client).await, ["v2"]);
    // The objects are there without the webhook, in the version that is stored.
    running.stop().await.expect("a graceful stop");
    let list = bars(&client).list(&ListParams::default()).await.expect("no conversion is needed");
    assert_eq!(list.items.len(), 12);
    drop(cluster);
}

#[tokio::test]
async fn a_migration_that_an_object_refuses_removes_nothing() {
    let Setting { client, running, cluster } = setting("v1").await;
    for number in [1, 99, 2] {
        let name = format!("bar-{number}");
        eventually(SOON, || create_old(&client, &name, number)).await;
    }
    store_v2(&client).await;
    let error = StorageMigration::of("bars.example.com").run(&client).await.expect_err("refused").to_string();
    let wanted = "migrating bars.example.com: 1 objects cannot be written back: default/bar-99: \
                  admission webhook \"vbar-v2.kb.io\" denied the request: 99 stays (403)";
    assert_eq!(error, wanted);
    assert_eq!(stored_versions(&client).await, ["v1", "v2"]);
    let error = StorageMigration::of("foos.example.com").run(&client).await.expect_err("no such definition");
    assert!(error.is_not_found() && error.to_string().starts_with("migrating foos.example.com: "), "{error}");
    running.stop().await.expect("a graceful stop");
    drop(cluster);
}
