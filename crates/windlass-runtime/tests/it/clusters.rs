//! A manager of several clusters.

use std::{convert::Infallible, time::Duration};

use http::{Request, Response, StatusCode};
use k8s_openapi::api::core::v1::{ConfigMap, Secret};
use kube_client::{
    Client,
    api::{DeleteParams, ListParams, Patch, PatchParams},
    client::Body,
};
use kube_core::ResourceExt;
use serde_json::json;
use windlass_runtime::{
    Action, Context, Controller, Manager, ObjectKey, Result, Watch,
    client::in_process,
    kind,
    manager::Cluster,
    permission::{Permission, Verb},
};
use windlass_test::{RestrictedAccount, TestCluster, eventually};

use crate::{
    fault::Faults,
    fixture::{SOON, config_map, config_maps, create_config_map, expect_eq, metric, run},
};

/// Keeps a copy of each ConfigMap `copy-*` of the own cluster in the cluster `edge`.
async fn copy(key: ObjectKey, cx: Context<ConfigMap>) -> Result<Action> {
    if !key.name().starts_with("copy-") {
        return Ok(Action::done());
    }
    let edge = cx.in_cluster("edge")?;
    match (cx.get_not_terminating(&key)?, edge.get_not_terminating(&key)?) {
        (Some(original), None) => {
            let copy = ConfigMap { data: original.data.clone(), ..config_map(key.name()) };
            let copy = edge.create(copy).await?;
            edge.recorder().normal(&copy, "Copied", "made a copy");
        }
        (Some(original), Some(copy)) if original.data != copy.data => {
            edge.update(&ConfigMap { data: original.data.clone(), ..(*copy).clone() }).await?;
        }
        (None, Some(copy)) => {
            // The way home, from the other side.
            assert!(edge.in_own_cluster()?.get(&key)?.is_none());
            edge.delete(&*copy).await?;
        }
        _ => {}
    }
    Ok(Action::done())
}

fn controller() -> Controller {
    Controller::of::<ConfigMap>(copy)
        .watch(Watch::primary(kind::<ConfigMap>()).in_cluster("edge"))
        .needs(Permission::to::<ConfigMap>([Verb::Create, Verb::Update, Verb::Delete]).in_cluster("edge"))
}

/// Makes an account in each cluster, with exactly the rights that the manager declares there.
async fn accounts(
    own: &TestCluster,
    edge: &TestCluster,
    controller: Controller,
) -> (RestrictedAccount, RestrictedAccount) {
    let manager =
        Manager::new(own.client()).cluster(Cluster::new("edge", edge.client())).controller(controller);
    let permissions = manager.permissions_in("edge");
    (own.restricted_account(&manager).await, edge.account_with(permissions).await)
}

async fn data(client: &Client, name: &str) -> Option<String> {
    let found = config_maps(client).get_opt(name).await.expect("read")?;
    Some(found.data.and_then(|data| data.get("a").cloned()).unwrap_or_default())
}

async fn set(client: &Client, name: &str, value: &str) {
    let patch = Patch::Merge(json!({ "data": { "a": value } }));
    config_maps(client).patch(name, &PatchParams::default(), &patch).await.expect("patched");
}

#[tokio::test]
async fn a_controller_keeps_copies_in_another_cluster() {
    let (own, edge) = (TestCluster::start().await, TestCluster::start().await);
    create_config_map(&own.client(), "copy-early").await;
    let (here, there) = accounts(&own, &edge, controller()).await;
    let manager =
        Manager::new(here.client()).cluster(Cluster::new("edge", there.client())).controller(controller());
    let metrics = manager.metrics().clone();
    let running = run(manager);

    let edge = edge.client();
    eventually(SOON, || async { expect_eq(data(&edge, "copy-early").await, Some(String::new())) }).await;
    create_config_map(&own.client(), "copy-late").await;
    set(&own.client(), "copy-late", "1").await;
    eventually(SOON, || async { expect_eq(data(&edge, "copy-late").await, Some("1".to_owned())) }).await;
    set(&edge, "copy-late", "spoiled").await;
    eventually(SOON, || async { expect_eq(data(&edge, "copy-late").await, Some("1".to_owned())) }).await;
    config_maps(&own.client()).delete("copy-early", &DeleteParams::default()).await.expect("deleted");
    eventually(SOON, || async { expect_eq(data(&edge, "copy-early").await, None) }).await;

    let own_maps = config_maps(&own.client()).list(&ListParams::default()).await.expect("listed");
    let text = metrics.render();
    assert_eq!(
        metric(&text, "windlass_cache_objects{resource=\"configmaps\"}"),
        own_maps.items.iter().filter(|map| map.namespace().as_deref() == Some("default")).count() as u64
            + others(&own.client()).await
    );
    assert!(text.contains("windlass_cache_objects{resource=\"configmaps\",cluster=\"edge\"}"), "{text}");
    assert_eq!(text.matches("# TYPE rest_client_requests counter").count(), 1);
    running.stop().await.expect("stopped");
    here.assert_exact();
    there.assert_exact();
    let events = kube_client::Api::<k8s_openapi::api::core::v1::Event>::all(edge);
    let events = events.list(&ListParams::default().fields("reason=Copied")).await.expect("listed");
    assert_eq!(events.items.len(), 2, "events are where their objects are");
}

/// Counts the ConfigMaps outside of the namespace `default`, which the control plane writes.
async fn others(client: &Client) -> u64 {
    let all = kube_client::Api::<ConfigMap>::all(client.clone());
    let all = all.list(&ListParams::default()).await.expect("listed");
    all.items.iter().filter(|map| map.namespace().as_deref() != Some("default")).count() as u64
}

/// A reconcile writes to its own cluster and counts the writes that the cache shows; the watch of the other
/// cluster lags.
#[tokio::test]
async fn a_write_is_awaited_in_its_own_cluster_only() {
    // Revisions begin at the time of the start: revisions of the other cluster are older than every write.
    let (edge, own) = (TestCluster::start().await, TestCluster::start().await);
    let lagging = Faults::before(edge.client());
    let held = lagging.clone();
    let controller = move || {
        let lagging = held.clone();
        let reconcile = move |key: ObjectKey, cx: Context<ConfigMap>| {
            let lagging = lagging.clone();
            async move {
                if key.name() != "counter" {
                    return Ok::<_, windlass_runtime::Error>(Action::done());
                }
                lagging.hold_watches();
                let Some(map) = cx.get(&key)? else { return Ok(Action::done()) };
                let count: usize =
                    map.data.as_ref().and_then(|data| data.get("n")?.parse().ok()).unwrap_or(0);
                if count < 5 {
                    let data = [("n".to_owned(), (count + 1).to_string())];
                    cx.update(&ConfigMap { data: Some(data.into()), ..(*map).clone() }).await?;
                    // The own cluster shows the write; the other cluster has no such object.
                    assert!(cx.in_cluster("edge")?.get(&key)?.is_none());
                }
                Ok(Action::done())
            }
        };
        Controller::of::<ConfigMap>(reconcile)
            .watch(Watch::primary(kind::<ConfigMap>()).in_cluster("edge"))
            .needs(Permission::to::<ConfigMap>([Verb::Update]))
            .write_barrier_timeout(Duration::from_millis(500))
    };
    create_config_map(&own.client(), "counter").await;
    let (here, there) = accounts(&own, &edge, controller()).await;
    lagging.send_by(there.client());
    let manager =
        Manager::new(here.client()).cluster(Cluster::new("edge", lagging.client())).controller(controller());
    let metrics = manager.metrics().clone();
    let running = run(manager);
    eventually(SOON, || async {
        let map = config_maps(&own.client()).get("counter").await.expect("read");
        expect_eq(map.data.and_then(|data| data.get("n").cloned()), Some("5".to_owned()))
    })
    .await;
    let timeouts = "windlass_read_your_writes_timeouts_total{controller=\"configmap\"}";
    assert_eq!(metric(&metrics.render(), timeouts), 0);
    lagging.release_watches();
    running.stop().await.expect("stopped");
    here.assert_exact();
    there.assert_exact();
}

fn unreachable() -> Client {
    let service = |_: Request<Body>| async {
        let mut response = Response::new(Body::empty());
        *response.status_mut() = StatusCode::SERVICE_UNAVAILABLE;
        Ok::<_, Infallible>(response)
    };
    in_process(tower::service_fn(service)).expect("a client")
}

/// Returns a client that another program built, for a server that never answers.
fn silent() -> Client {
    let service = |_: Request<Body>| std::future::pending::<Result<Response<Body>, Infallible>>();
    Client::new(tower::service_fn(service), "default")
}

#[tokio::test]
async fn a_cluster_that_is_down_holds_back_its_controllers_only() {
    works_without([Cluster::new("edge", unreachable())]).await;
}

#[tokio::test]
async fn clusters_that_never_answer_hold_back_their_controllers_only() {
    works_without([Cluster::new("edge", silent()), Cluster::new("far", silent())]).await;
}

/// Expects that a controller of the own cluster works, beside a controller that watches the cluster `edge`.
async fn works_without<const N: usize>(clusters: [Cluster; N]) {
    let own = TestCluster::start().await;
    create_config_map(&own.client(), "a").await;
    let here = Controller::of::<ConfigMap>(|key: ObjectKey, cx: Context<ConfigMap>| async move {
        if let Some(map) = cx.get(&key)?.filter(|map| map.data.is_none() && key.name() == "a") {
            let data = [("seen".to_owned(), "yes".to_owned())];
            cx.update(&ConfigMap { data: Some(data.into()), ..(*map).clone() }).await?;
        }
        Ok::<_, windlass_runtime::Error>(Action::done())
    })
    .named("here")
    .needs(Permission::to::<ConfigMap>([Verb::Update]));
    let manager = Manager::new(own.client());
    let manager = clusters.into_iter().fold(manager, Manager::cluster);
    let manager = manager.controller(controller()).controller(here);
    let running = own.run_restricted(manager).await;
    eventually(SOON, || async {
        let map = config_maps(&own.client()).get("a").await.expect("read");
        expect_eq(map.data.is_some(), true)
    })
    .await;
    running.stop_with_exact_rights().await.expect("stopped");
}

#[tokio::test]
async fn names_of_clusters_are_checked() {
    let own = TestCluster::start().await;
    let cluster = |name: &str| Cluster::new(name, own.client());
    let manager = || Manager::new(own.client());
    let error = run(manager().controller(controller())).ended().await.expect_err("no such cluster");
    assert_eq!(
        error.to_string(),
        r#"the manager has no cluster called "edge"; add it with `Manager::cluster`"#
    );
    let error = run(manager().cluster(cluster("a")).cluster(cluster("a"))).ended().await.expect_err("twice");
    assert_eq!(error.to_string(), r#"the manager has two clusters called "a""#);
    let error = run(manager().cluster(cluster(""))).ended().await.expect_err("no name");
    assert_eq!(error.to_string(), "a cluster of the manager has an empty name");
}

#[tokio::test]
async fn each_cluster_has_its_own_rights() {
    let own = TestCluster::start().await;
    let controller = controller().watch(Watch::reads_only(kind::<Secret>()));
    let manager = Manager::new(own.client())
        .cluster(Cluster::new("edge", own.client()).namespaces(["sites"]))
        .controller(controller);
    let lines = |rules: Vec<k8s_openapi::api::rbac::v1::PolicyRule>| {
        let line = |rule: k8s_openapi::api::rbac::v1::PolicyRule| {
            format!("{}: {}", rule.resources.unwrap_or_default().join(","), rule.verbs.join(","))
        };
        rules.into_iter().map(line).collect::<Vec<_>>()
    };
    assert_eq!(
        lines(manager.permissions().cluster_role()),
        ["configmaps,secrets: list,watch", "events: create,patch"]
    );
    let edge = manager.permissions_in("edge");
    assert_eq!(lines(edge.cluster_role()), [""; 0]);
    let roles: Vec<_> =
        edge.roles().into_iter().map(|(namespace, rules)| (namespace, lines(rules))).collect();
    let wanted = ["configmaps: list,watch,create,update,delete", "events: create,patch"].map(str::to_owned);
    assert_eq!(roles, [("sites".to_owned(), wanted.to_vec())]);
}
