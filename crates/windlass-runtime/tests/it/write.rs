use http::Method;
use k8s_openapi::api::core::v1::{ConfigMap, Container, Pod, PodSpec, PodStatus, Secret};
use kube::CustomResource;
use kube_client::{
    Api,
    api::{DeleteParams, Patch, PatchParams, PostParams},
};
use kube_core::ResourceExt;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::json;
use tokio::sync::mpsc;
use windlass_runtime::{
    Action, Context, Controller, Error, Manager, ObjectKey, OperationResult, Permission, Result, Verb, Watch,
    informer::{CacheOptions, Transform},
    kind,
};
use windlass_test::{TestCluster, stretched};

use crate::{
    fault::Faults,
    fixture::{SOON, config_map, create_config_map, run, secret, secrets},
};

/// Returns the context of an idle controller, for single writes.
async fn context<K>(faults: &Faults) -> (Context<K>, crate::fixture::Running)
where
    K: kube_core::Resource<DynamicType = ()> + serde::de::DeserializeOwned + Send + Sync + 'static,
{
    let (tell, mut told) = mpsc::unbounded_channel();
    let controller = Controller::of::<K>(move |_: ObjectKey, cx: Context<K>| {
        let _ = tell.send(cx);
        async { Ok::<_, Error>(Action::done()) }
    })
    .named("writer");
    let handle = controller.handle();
    let running = run(Manager::new(faults.client()).controller(controller));
    handle.enqueue(ObjectKey::namespaced("default", "none"));
    (told.recv().await.expect("reconciled"), running)
}

fn pod(name: &str) -> Pod {
    let container =
        Container { name: "main".to_owned(), image: Some("busybox".to_owned()), ..Container::default() };
    let mut pod =
        Pod { spec: Some(PodSpec { containers: vec![container], ..PodSpec::default() }), ..Pod::default() };
    pod.metadata = config_map(name).metadata;
    pod
}

fn running_phase() -> PodStatus {
    PodStatus { phase: Some("Running".to_owned()), ..PodStatus::default() }
}

#[tokio::test]
async fn a_status_that_is_so_already_is_not_written() -> Result<()> {
    let cluster = TestCluster::start().await;
    let faults = Faults::before(cluster.client());
    let (cx, running) = context::<Pod>(&faults).await;
    let pod = cx.create(pod("a")).await?;
    let status = pod.status.clone().unwrap_or_default();
    cx.update_status(&pod, &status).await?;
    assert_eq!(faults.count(&Method::PATCH, "/status"), 0);
    cx.update_status(&pod, running_phase()).await?;
    assert_eq!(faults.count(&Method::PATCH, "/status"), 1);
    let pods: Api<Pod> = Api::default_namespaced(cluster.client());
    let now = pods.get("a").await?;
    assert_eq!(now.status.and_then(|status| status.phase).as_deref(), Some("Running"));
    running.stop().await
}

#[derive(CustomResource, Serialize, Deserialize, JsonSchema, Clone, Debug)]
#[kube(group = "example.com", version = "v1", kind = "Gauge", namespaced, status = "GaugeStatus")]
struct GaugeSpec {}

#[derive(Serialize, Deserialize, JsonSchema, Clone, Debug)]
struct GaugeStatus {
    values: Vec<f64>,
}

/// The server stores `1.0` as `1`.
#[tokio::test]
async fn a_status_with_a_whole_number_that_is_so_already_is_not_written() -> Result<()> {
    let cluster = TestCluster::start().await;
    cluster.install_crd::<Gauge>().await;
    let faults = Faults::before(cluster.client());
    let (cx, running) = context::<Gauge>(&faults).await;
    let mut gauge = Gauge::new("a", GaugeSpec {});
    gauge.metadata.namespace = Some("default".to_owned());
    let gauge = cx.create(gauge).await?;
    let status = GaugeStatus { values: vec![1.0, 2.5] };
    assert_eq!(cx.update_status(&gauge, &status).await?, OperationResult::Updated);
    assert_eq!(cx.update_status(&gauge, &status).await?, OperationResult::Unchanged);
    assert_eq!(faults.count(&Method::PATCH, "/status"), 1);
    running.stop().await
}

/// A reconciler in Go also changes an object after reading the object, and then updates the status.
#[tokio::test]
async fn a_status_that_was_changed_in_place_is_written() -> Result<()> {
    let cluster = TestCluster::start().await;
    let faults = Faults::before(cluster.client());
    let (cx, running) = context::<Pod>(&faults).await;
    let mut changed = cx.create(pod("a")).await?;
    changed.status = Some(running_phase());
    assert_eq!(cx.update_status(&changed, changed.status.clone()).await?, OperationResult::Updated);
    running.stop().await
}

/// A field that another writer set, and that the caches have not seen, is not lost.
#[tokio::test]
async fn a_status_is_not_written_over_a_newer_one() -> Result<()> {
    let cluster = TestCluster::start().await;
    let faults = Faults::before(cluster.client());
    let (cx, running) = context::<Pod>(&faults).await;
    let stale = cx.create(pod("a")).await?;
    let pods: Api<Pod> = Api::default_namespaced(cluster.client());
    let theirs = Patch::Merge(json!({ "status": { "reason": "Theirs" } }));
    pods.patch_status("a", &PatchParams::default(), &theirs).await?;
    let error = cx.update_status(&stale, running_phase()).await.expect_err("the pod is newer");
    assert!(error.is_conflict(), "{error}");
    assert!(error.to_string().starts_with("writing the status of Pod default/a: "), "{error}");
    let reason = async || pods.get("a").await.map(|pod| pod.status.and_then(|status| status.reason));
    assert_eq!(reason().await?.as_deref(), Some("Theirs"));
    assert_eq!(cx.update_status(&stale, running_phase()).force().await?, OperationResult::Updated);
    assert_eq!(reason().await?, None);
    running.stop().await
}

/// The cache lacks a field of the status, so that the cached status says nothing about the status on the server.
#[tokio::test]
async fn a_status_of_a_cache_with_dropped_fields_is_always_written() {
    let cluster = TestCluster::start().await;
    let pods: Api<Pod> = Api::default_namespaced(cluster.client());
    pods.create(&PostParams::default(), &pod("a")).await.expect("created");
    let old = Patch::Merge(json!({ "status": { "phase": "Running", "reason": "Old" } }));
    pods.patch_status("a", &PatchParams::default(), &old).await.expect("patched");
    let transform = Transform::drop_fields(["status.reason".parse().expect("a path")]);
    let transform = transform.expect("not a field that every cache needs");
    let (tell, mut told) = mpsc::unbounded_channel();
    let controller = Controller::of::<Pod>(move |key: ObjectKey, cx: Context<Pod>| {
        let tell = tell.clone();
        async move {
            let Some(read) = cx.get(&key)? else { return Ok(Action::done()) };
            let status = PodStatus { reason: None, ..read.status.clone().unwrap_or_default() };
            let _ = tell.send(cx.update_status(&read, status).await?);
            Ok::<_, Error>(Action::done())
        }
    })
    .options(CacheOptions::new().transform(transform))
    .needs(Permission::to::<Pod>([Verb::Patch]).subresource("status"));
    let running = cluster.run_restricted(Manager::new(cluster.client()).controller(controller)).await;
    assert_eq!(told.recv().await, Some(OperationResult::Updated));
    let reason = pods.get("a").await.expect("read").status.and_then(|status| status.reason);
    assert_eq!(reason, None);
    running.stop().await.expect("a graceful end");
}

/// The second update of a reconcile goes on from the first, with the object that the reconcile has read.
#[tokio::test]
async fn a_reconcile_may_update_a_status_twice() {
    let cluster = TestCluster::start().await;
    let pods: Api<Pod> = Api::default_namespaced(cluster.client());
    pods.create(&PostParams::default(), &pod("a")).await.expect("created");
    let (tell, mut told) = mpsc::unbounded_channel();
    let controller = Controller::of::<Pod>(move |key: ObjectKey, cx: Context<Pod>| {
        let tell = tell.clone();
        async move {
            let Some(read) = cx.get(&key)? else { return Ok(Action::done()) };
            let step = |reason: &str| PodStatus { reason: Some(reason.to_owned()), ..running_phase() };
            let first = cx.update_status(&read, step("Begun")).await?;
            let second = cx.update_status(&read, step("Done")).await?;
            let _ = tell.send((first, second));
            Ok::<_, Error>(Action::done())
        }
    })
    .needs(Permission::to::<Pod>([Verb::Patch]).subresource("status"));
    let running = cluster.run_restricted(Manager::new(cluster.client()).controller(controller)).await;
    assert_eq!(told.recv().await, Some((OperationResult::Updated, OperationResult::Updated)));
    let reason = pods.get("a").await.expect("read").status.and_then(|status| status.reason);
    assert!(matches!(reason.as_deref(), Some("Begun" | "Done")), "{reason:?}");
    running.stop().await.expect("a graceful end");
}

#[tokio::test]
async fn a_status_is_not_for_a_successor_nor_for_what_is_gone() -> Result<()> {
    let cluster = TestCluster::start().await;
    let faults = Faults::before(cluster.client());
    let (cx, running) = context::<Pod>(&faults).await;
    let old = cx.create(pod("a")).await?;
    let pods: Api<Pod> = Api::default_namespaced(cluster.client());
    let now = DeleteParams::default().grace_period(0);
    pods.delete("a", &now).await?;
    cx.update_status(&old, running_phase()).await?;
    let new = pods.create(&PostParams::default(), &pod("a")).await?;
    assert_ne!(old.uid(), new.uid());
    cx.update_status(&old, running_phase()).await?;
    assert_eq!(faults.count(&Method::PATCH, "/status"), 2, "both were tried");
    let phase = pods.get("a").await?.status.and_then(|status| status.phase);
    assert_eq!(phase.as_deref(), Some("Pending"), "the successor was left alone");
    cx.delete(&old).await?;
    assert!(pods.get("a").await.is_ok(), "and is not deleted either");
    cx.delete(&new).await?;
    let left = pods.get_opt("a").await?;
    assert!(left.is_none_or(|pod| pod.metadata.deletion_timestamp.is_some()));
    running.stop().await
}

/// A kind without a status.
#[derive(CustomResource, Serialize, Deserialize, JsonSchema, Clone, Debug, PartialEq)]
#[kube(group = "example.com", version = "v1", kind = "Mute", namespaced)]
struct MuteSpec {}

#[tokio::test]
async fn a_status_that_the_kind_does_not_have_is_an_error_that_says_so() -> Result<()> {
    let cluster = TestCluster::start().await;
    cluster.install_crd::<Mute>().await;
    let faults = Faults::before(cluster.client());
    let (cx, running) = context::<Mute>(&faults).await;
    let mut mute = Mute::new("a", MuteSpec {});
    mute.metadata.namespace = Some("default".to_owned());
    let mute = cx.create(mute).await?;
    let error = cx.update_status(&mute, serde_json::json!({ "n": 1 })).await.expect_err("no status");
    let text = error.to_string();
    assert!(
        text.starts_with("writing the status of Mute default/a: mutes has no subresource `status`; "),
        "{text}"
    );
    running.stop().await
}

#[tokio::test]
async fn what_cannot_be_written_is_told_with_its_object() -> Result<()> {
    let cluster = TestCluster::start().await;
    let faults = Faults::before(cluster.client());
    let (cx, running) = context::<ConfigMap>(&faults).await;
    cx.create(config_map("a")).await?;
    let error = cx.create(config_map("a")).await.expect_err("it exists");
    assert!(error.is_already_exists(), "{error}");
    assert_eq!(error.to_string(), "creating ConfigMap default/a: configmaps \"a\" already exists (409)");
    let mut stale = config_map("a");
    stale.metadata.resource_version = Some("1".to_owned());
    let error = cx.update(&stale).await.expect_err("it is stale");
    assert!(error.is_conflict(), "{error}");
    let mut nowhere = config_map("b");
    nowhere.metadata.namespace = None;
    let error = cx.create(nowhere).await.expect_err("where?");
    assert_eq!(error.to_string(), "ConfigMap b: metadata.namespace is not set");
    running.stop().await
}

/// An update of an object from a cache that drops fields would remove these fields on the server, so the
/// update fails.
#[tokio::test]
async fn an_object_without_its_dropped_fields_is_not_written_back() {
    let cluster = TestCluster::start().await;
    let client = cluster.client();
    create_config_map(&client, "a").await;
    let mut existing = secret("s");
    existing.data = Some([("k".to_owned(), k8s_openapi::ByteString(b"v".to_vec()))].into());
    secrets(&client).create(&PostParams::default(), &existing).await.expect("created");
    let (told, errors) = std::sync::mpsc::channel();
    let transform = Transform::drop_fields(["data".parse().expect("a path")]);
    let transform = transform.expect("not a field that every cache needs");
    let controller = Controller::of::<ConfigMap>(move |_: ObjectKey, cx: Context<ConfigMap>| {
        let told = told.clone();
        async move {
            let label = |secret: &mut Secret| {
                secret.labels_mut().insert("l".to_owned(), "m".to_owned());
                Ok(())
            };
            let result = cx.create_or_update(secret("s"), label).await;
            let _ = told.send(result.err().map(|error| error.to_string()));
            Ok::<_, Error>(Action::done())
        }
    })
    .watch(Watch::owned(kind::<Secret>()).options(CacheOptions::new().transform(transform)));
    let running = cluster.run_restricted(Manager::new(client.clone()).controller(controller)).await;
    let error = tokio::task::spawn_blocking(move || errors.recv_timeout(stretched(SOON)))
        .await
        .expect("ends")
        .expect("told");
    let after = secrets(&client).get("s").await.expect("read");
    assert_eq!(after.data, existing.data, "nothing is lost");
    assert!(error.expect("an error").contains("leaves out fields"));
    running.stop().await.expect("a graceful end");
}
