//! The guarantees of windlass-test for tests of operators.

mod clock;
mod faults;
mod output;
mod ownership;
mod rights;
mod scenario;

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use k8s_openapi::api::apps::v1::DaemonSet;
use k8s_openapi::api::core::v1::{ConfigMap, Namespace, Node, Secret};
use k8s_openapi::apiextensions_apiserver::pkg::apis::apiextensions::v1::CustomResourceDefinition;
use kube_client::api::{Api, DeleteParams, DynamicObject, ListParams, PostParams};
use kube_core::discovery::ApiResource;
use serde_json::json;
use tokio::sync::oneshot;
use windlass_runtime::{Manager, RunContext, Runnable};
use windlass_test::{TestCluster, eventually};

async fn create_config(cluster: &TestCluster, finalizers: &[&str]) {
    let object =
        json!({ "metadata": { "name": "a", "finalizers": finalizers }, "data": { "key": "hunter2" } });
    let object: ConfigMap = serde_json::from_value(object).expect("a ConfigMap");
    let api: Api<ConfigMap> = Api::default_namespaced(cluster.client());
    api.create(&PostParams::default(), &object).await.expect("created");
}

fn definition(plural: &str, kind: &str) -> CustomResourceDefinition {
    let definition = json!({
        "metadata": { "name": format!("{plural}.example.com") },
        "spec": {
            "group": "example.com", "scope": "Namespaced", "names": { "plural": plural, "kind": kind },
            "versions": [{
                "name": "v1", "served": true, "storage": true, "schema": { "openAPIV3Schema": { "type": "object" } },
            }],
        },
    });
    serde_json::from_value(definition).expect("a CRD")
}

/// A manager whose runnable fails with `error` at once.
fn failing(cluster: &TestCluster, error: &'static str) -> Manager {
    Manager::new(cluster.client())
        .runnable(Runnable::new("broken", async move |_: RunContext| Err::<(), _>(error)))
}

#[tokio::test]
async fn a_wait_returns_the_object_once_it_is_as_wanted() {
    let cluster = TestCluster::start().await;
    let (config, ()) = tokio::join!(
        cluster.wait_for::<ConfigMap>("default/a", |config| config.data.is_some()),
        create_config(&cluster, &[]),
    );
    assert_eq!(config.metadata.name.as_deref(), Some("a"));
    cluster.wait_for::<ConfigMap>("a", |_| true).await;
    cluster.wait_for::<Namespace>("default", |_| true).await;
    cluster.gone::<Secret>("default/a").await;
}

#[tokio::test]
#[should_panic(expected = "last: default/a is at resourceVersion ")]
async fn a_wait_that_fails_shows_the_last_state() {
    let cluster = TestCluster::start().await.wait_limit(Duration::from_millis(50));
    create_config(&cluster, &[]).await;
    cluster.wait_for::<ConfigMap>("default/a", |_| false).await;
}

#[tokio::test]
#[should_panic(expected = "last: configmaps \"a\" not found")]
async fn a_wait_for_an_object_that_never_comes_says_so() {
    let cluster = TestCluster::start().await.wait_limit(Duration::from_millis(50));
    cluster.wait_for::<ConfigMap>("default/a", |_| true).await;
}

#[tokio::test]
#[should_panic(expected = "finalizers [example.com/stay]")]
async fn a_terminating_object_is_not_gone() {
    let cluster = TestCluster::start().await.wait_limit(Duration::from_millis(50));
    create_config(&cluster, &["example.com/stay"]).await;
    let api: Api<ConfigMap> = Api::default_namespaced(cluster.client());
    api.delete("a", &DeleteParams::default()).await.expect("deleted");
    cluster.gone::<ConfigMap>("default/a").await;
}

#[tokio::test]
#[should_panic(expected = "Namespace is cluster-scoped, so its key is a name alone, not `default/a`")]
async fn a_key_of_the_wrong_scope_is_refused() {
    TestCluster::start().await.wait_for::<Namespace>("default/a", |_| true).await;
}

#[tokio::test]
async fn several_definitions_are_served_when_they_are_installed() {
    let cluster = TestCluster::start().await;
    let definitions = [definition("cats", "Cat"), definition("dogs", "Dog")];
    cluster.install_all(&definitions).await;
    for definition in definitions {
        let names = definition.spec.names;
        let resource = ApiResource {
            group: definition.spec.group,
            version: "v1".to_owned(),
            api_version: "example.com/v1".to_owned(),
            kind: names.kind,
            plural: names.plural,
        };
        let api: Api<DynamicObject> = Api::all_with(cluster.client(), &resource);
        assert!(api.list(&ListParams::default()).await.expect("served").items.is_empty());
    }
}

#[tokio::test]
async fn a_manager_stops_gracefully() {
    let cluster = TestCluster::start().await;
    let stopped = Arc::new(AtomicBool::new(false));
    let (started, has_started) = oneshot::channel();
    let manager = Manager::new(cluster.client()).runnable(Runnable::new("witness", {
        let stopped = Arc::clone(&stopped);
        async move |cx: RunContext| {
            let _ = started.send(());
            cx.shutdown().requested().await;
            stopped.store(true, Ordering::Relaxed);
            Ok::<(), String>(())
        }
    }));
    let running = cluster.run(manager);
    has_started.await.expect("started");
    assert!(!running.is_finished());
    running.stop().await.expect("a graceful stop");
    assert!(stopped.load(Ordering::Relaxed));
}

#[tokio::test]
async fn the_error_of_a_manager_is_returned_to_a_test_that_asks_for_it() {
    let cluster = TestCluster::start().await;
    let error = cluster.run(failing(&cluster, "no disk")).ended().await.expect_err("it fails");
    assert!(error.to_string().contains("no disk"), "{error}");
    // An error that the test has taken disturbs no later wait.
    cluster.wait_for::<Namespace>("default", |_| true).await;
}

#[tokio::test]
#[should_panic(expected = "no disk")]
async fn a_wait_panics_when_the_manager_fails() {
    let cluster = TestCluster::start().await;
    let _running = cluster.run(failing(&cluster, "no disk"));
    cluster.wait_for::<ConfigMap>("default/a", |_| true).await;
}

#[tokio::test]
#[should_panic(expected = "the manager failed: ")]
async fn dropping_the_guard_of_a_failed_manager_panics() {
    let cluster = TestCluster::start().await;
    let running = cluster.run(failing(&cluster, "no disk"));
    eventually(Duration::from_secs(20), || async {
        if running.is_finished() { Ok(()) } else { Err("the manager runs") }
    })
    .await;
}

#[tokio::test]
async fn a_cluster_has_the_nodes_and_zones_of_the_builder() {
    let cluster = TestCluster::builder().nodes(3).zones(["a", "b"]).strict(false).start().await;
    let nodes: Api<Node> = Api::all(cluster.client());
    let nodes = nodes.list(&ListParams::default()).await.expect("nodes");
    let zones: Vec<_> = nodes
        .iter()
        .map(|node| node.metadata.labels.as_ref().expect("labels")["topology.kubernetes.io/zone"].as_str())
        .collect();
    assert_eq!(zones, ["a", "b", "a"]);
    let labels = json!({ "app": "agent" });
    let set = json!({
        "metadata": { "name": "agent" },
        "spec": {
            "selector": { "matchLabels": labels },
            "template": { "metadata": { "labels": labels }, "spec": { "containers": [{ "name": "c", "image": "i" }] } },
        },
    });
    let set: DaemonSet = serde_json::from_value(set).expect("a DaemonSet");
    let sets: Api<DaemonSet> = Api::default_namespaced(cluster.client());
    sets.create(&PostParams::default(), &set).await.expect("created");
    let is_everywhere = |set: &DaemonSet| set.status.as_ref().is_some_and(|status| status.number_ready == 3);
    cluster.wait_for("default/agent", is_everywhere).await;
}
