//! Managers that run with exactly the declared rights.

use std::panic::AssertUnwindSafe;
use std::time::Duration;

use futures::FutureExt;
use k8s_openapi::api::apps::v1::StatefulSet;
use k8s_openapi::api::core::v1::{ConfigMap, Secret};
use kube_client::api::{Api, DeleteParams, PostParams};
use kube_core::{ObjectMeta, ResourceExt};
use serde_json::json;
use windlass_runtime::leader_election::LeaderElection;
use windlass_runtime::{Action, Context, Controller, Error, Manager, ObjectKey, Permission, Result, Verb};
use windlass_test::{TestCluster, eventually};

use crate::create_config;

/// Makes a Secret for each ConfigMap.
async fn reconcile(key: ObjectKey, cx: Context<ConfigMap>) -> Result<Action> {
    let Some(config) = cx.get_not_terminating(&key)? else { return Ok(Action::done()) };
    let metadata =
        ObjectMeta { name: Some(config.name_any()), namespace: config.namespace(), ..ObjectMeta::default() };
    match cx.create(Secret { metadata, ..Secret::default() }).await {
        Err(error) if !error.is_already_exists() => Err(error),
        _ => Ok(Action::done()),
    }
}

fn controller() -> Controller {
    Controller::of::<ConfigMap>(reconcile).named("copies")
}

#[tokio::test]
async fn what_is_declared_and_no_more_is_permitted() {
    let cluster = TestCluster::start().await;
    let controller = controller().needs(Permission::to::<Secret>([Verb::Create]));
    let manager =
        Manager::new(cluster.client()).controller(controller).leader_election(LeaderElection::new("copies"));
    let operator = cluster.run_restricted(manager).await;
    create_config(&cluster, &[]).await;
    cluster.wait_for::<Secret>("default/a", |_| true).await;

    let secrets: Api<Secret> = Api::namespaced(operator.client(), "default");
    let error = secrets.delete("a", &DeleteParams::default()).await.expect_err("not declared");
    assert!(Error::from(error).is_forbidden());
    let elsewhere = format!("{}/copies", operator.namespace());
    cluster.wait_for::<k8s_openapi::api::coordination::v1::Lease>(elsewhere, |_| true).await;
    assert!(operator.rights().missing.is_empty());
    operator.stop_with_exact_rights().await.expect("a graceful stop");
}

#[tokio::test]
async fn a_manager_of_one_namespace_gets_a_role_there() {
    let cluster = TestCluster::start().await;
    let controller = controller().needs(Permission::to::<Secret>([Verb::Create]));
    let manager = Manager::new(cluster.client()).controller(controller).namespaces(["default"]);
    let operator = cluster.run_restricted(manager).await;
    create_config(&cluster, &[]).await;
    cluster.wait_for::<Secret>("default/a", |_| true).await;
    let elsewhere: Api<ConfigMap> = Api::namespaced(operator.client(), "kube-system");
    assert!(elsewhere.list(&kube_client::api::ListParams::default()).await.is_err());
    let new = Secret {
        metadata: ObjectMeta { name: Some("b".to_owned()), ..ObjectMeta::default() },
        ..Secret::default()
    };
    let secrets: Api<Secret> = Api::namespaced(operator.client(), "kube-system");
    assert!(secrets.create(&PostParams::default(), &new).await.is_err());
    operator.stop_with_exact_rights().await.expect("a graceful stop");
}

#[tokio::test]
async fn a_missing_right_is_reported_with_its_declaration() {
    let cluster = TestCluster::start().await;
    let operator = cluster
        .run_restricted(Manager::new(cluster.client()).controller(controller()).namespaces(["default"]))
        .await;
    create_config(&cluster, &[]).await;
    let report = eventually(Duration::from_secs(20), || async {
        let report = operator.rights();
        if report.missing.is_empty() { Err("nothing is missing") } else { Ok(report) }
    })
    .await;
    let line = "create secrets in namespace default: add .needs(Permission::to::<the type of secrets>([Verb::Create]))";
    assert_eq!(report.missing, [line]);
    operator.stop().await.expect("a graceful stop");
}

/// Deletes the StatefulSet of each ConfigMap. The right to delete is not declared.
async fn clean_up(key: ObjectKey, cx: Context<ConfigMap>) -> Result<Action> {
    let metadata = ObjectMeta {
        name: Some(key.name().to_owned()),
        namespace: key.namespace().map(ToOwned::to_owned),
        ..ObjectMeta::default()
    };
    cx.delete(&StatefulSet { metadata, ..StatefulSet::default() }).await?;
    Ok(Action::done())
}

#[tokio::test]
async fn a_wait_that_fails_names_the_denied_requests_and_the_last_errors() {
    let cluster = TestCluster::start().await.wait_limit(Duration::from_millis(50));
    let set = json!({
        "metadata": { "name": "a" },
        "spec": {
            "serviceName": "a",
            "selector": { "matchLabels": { "app": "a" } },
            "template": {
                "metadata": { "labels": { "app": "a" } },
                "spec": { "containers": [{ "name": "main", "image": "postgres" }] },
            },
        },
    });
    let set: StatefulSet = serde_json::from_value(set).expect("a StatefulSet");
    let sets: Api<StatefulSet> = Api::default_namespaced(cluster.client());
    sets.create(&PostParams::default(), &set).await.expect("created");
    let controller = Controller::of::<ConfigMap>(clean_up).named("cleaner");
    let manager = Manager::new(cluster.client()).controller(controller).namespaces(["default"]);
    let operator = cluster.run_restricted(manager).await;
    create_config(&cluster, &[]).await;
    eventually(Duration::from_secs(20), || async {
        if operator.rights().missing.is_empty() { Err("nothing is missing") } else { Ok(()) }
    })
    .await;

    let wait = AssertUnwindSafe(cluster.gone::<StatefulSet>("default/a")).catch_unwind().await;
    let message = *wait.expect_err("the StatefulSet stays").downcast::<String>().expect("a message");
    let (state, reasons) = message.split_once('\n').expect("reasons");
    assert!(state.contains("last: default/a still exists"), "{message}");
    let denied = "denied requests:\n  delete statefulsets.apps \"a\" in namespace default: add .needs(Permission::to::<the type of \
                  statefulsets>([Verb::Delete]))\nfailed reconciles:\n  cleaner default/a: ";
    assert!(reasons.starts_with(denied), "{message}");
    assert!(reasons.contains("statefulsets.apps \"a\" is forbidden"), "{message}");
    operator.stop().await.expect("a graceful stop");
}

#[tokio::test]
#[should_panic(expected = "never used:\n  delete secrets: declared by copies")]
async fn a_right_that_is_never_used_fails_the_test() {
    let cluster = TestCluster::start().await;
    let controller = controller().needs(Permission::to::<Secret>([Verb::Create, Verb::Delete]));
    let operator = cluster.run_restricted(Manager::new(cluster.client()).controller(controller)).await;
    create_config(&cluster, &[]).await;
    cluster.wait_for::<Secret>("default/a", |_| true).await;
    let _ = operator.stop_with_exact_rights().await;
}
