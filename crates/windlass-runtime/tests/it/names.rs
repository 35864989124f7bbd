//! Names with characters that a path encodes.

use k8s_openapi::api::{core::v1::ConfigMap, rbac::v1::ClusterRole};
use kube_core::{ObjectMeta, params::Patch};
use serde_json::json;
use tokio::sync::mpsc;
use windlass_runtime::{
    Action, Context, Controller, Error, Manager, ObjectKey, Permission, Result, Verb,
    informer::{CacheOptions, InformerError, SharedInformerFactory},
    kind,
};
use windlass_test::{TestCluster, eventually};

use crate::fixture::{SOON, run_declared};

/// Kubernetes allows any segment of a path as the name of a role.
#[tokio::test]
async fn a_role_may_have_a_name_that_a_path_encodes() -> Result<()> {
    let cluster = TestCluster::start().await;
    let (tell, mut told) = mpsc::unbounded_channel();
    let controller = Controller::of::<ClusterRole>(move |key: ObjectKey, cx: Context<ClusterRole>| {
        let _ = tell.send((key, cx));
        async { Ok::<_, Error>(Action::done()) }
    });
    let verbs = [Verb::Get, Verb::Create, Verb::Patch, Verb::Delete];
    let controller = controller.needs(Permission::to::<ClusterRole>(verbs));
    let handle = controller.handle();
    let running = run_declared(&cluster, Manager::new(cluster.client()).controller(controller)).await;
    let key = ObjectKey::cluster("a?b#c d\u{e4}");
    let role = ClusterRole {
        metadata: ObjectMeta { name: Some(key.name().to_owned()), ..ObjectMeta::default() },
        ..ClusterRole::default()
    };
    handle.enqueue(key.clone());
    let (_, cx) = told.recv().await.expect("a reconcile");

    cx.create(role).await?;
    while told.recv().await.expect("a reconcile").0 != key {}
    let found = cx.api_reader().get::<ClusterRole>(&key).await?.expect("the role");
    assert_eq!(found.metadata.name.as_deref(), Some(key.name()));
    let labels = json!({ "metadata": { "labels": { "team": "a" } } });
    let patched = cx.patch::<ClusterRole, _>(&key, &Patch::Merge(labels)).await?;
    assert_eq!(patched.metadata.labels.clone().unwrap_or_default()["team"], "a");
    let seen = cx.get(&key)?.expect("the own write is seen");
    assert_eq!(seen.metadata.resource_version, patched.metadata.resource_version);

    cx.delete(&patched).await?;
    assert!(cx.get(&key)?.is_none(), "the own deletion is seen");
    assert!(cx.api_reader().get::<ClusterRole>(&key).await?.is_none());
    eventually(SOON, || async {
        let shown = cx.lister::<ClusterRole>()?.keys()?.contains(&key);
        if shown { Err(Error::other("the watch shows the role")) } else { Ok(()) }
    })
    .await;
    running.stop().await
}

#[tokio::test]
async fn a_namespace_with_an_invalid_name_is_not_watched() {
    let cluster = TestCluster::start().await;
    let informers = SharedInformerFactory::new(cluster.client(), std::time::Duration::ZERO);
    let options = CacheOptions::new().namespaces(["default", "a/../b"]);
    let error = informers.informer(kind::<ConfigMap>(), options).expect_err("no namespace");
    assert!(matches!(error, InformerError::Namespace { .. }), "{error}");
    let text = error.to_string();
    assert!(text.starts_with("watching configmaps: \"a/../b\" cannot be a name"), "{text}");
}
