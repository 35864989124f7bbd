use http::Method;
use k8s_openapi::api::core::v1::{ConfigMap, Container, Pod, PodSpec, PodStatus};
use kube_client::{
    Api,
    api::{DeleteParams, PostParams},
};
use kube_core::ResourceExt;
use tokio::sync::mpsc;
use windlass_runtime::{Action, Context, Controller, Error, Manager, ObjectKey, Result};
use windlass_test::TestCluster;

use crate::{
    fault::Faults,
    fixture::{config_map, run},
};

/// A context of a controller that does nothing by itself: for trying one write after the other.
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
