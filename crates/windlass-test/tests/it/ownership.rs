//! Operators that take fields from their users, and operators that do not.

use k8s_openapi::api::apps::v1::Deployment;
use kube_core::{ResourceExt, params::Patch};
use serde_json::json;
use windlass_runtime::{Action, Context, Controller, Manager, ObjectKey, Permission, Verb};
use windlass_test::TestCluster;

const SAMPLE: &str = "
apiVersion: apps/v1
kind: Deployment
metadata: { name: web }
spec:
  replicas: 2
  selector: { matchLabels: { app: web } }
  template:
    metadata: { labels: { app: web } }
    spec: { containers: [{ name: main, image: nginx }] }
";

/// Runs an operator that writes `patch` to each Deployment, once.
async fn check(patch: serde_json::Value) {
    let reconcile = move |key: ObjectKey, cx: Context<Deployment>| {
        let patch = patch.clone();
        async move {
            if let Some(deployment) = cx.get(&key)?
                && !deployment.annotations().contains_key("seen")
            {
                cx.patch::<Deployment, _>(&key, &Patch::Merge(&patch)).await?;
            }
            Ok::<_, windlass_runtime::Error>(Action::done())
        }
    };
    let cluster = TestCluster::start().await;
    let controller =
        Controller::of::<Deployment>(reconcile).needs(Permission::to::<Deployment>([Verb::Patch]));
    cluster.check_ownership(Manager::new(cluster.client()).controller(controller), SAMPLE).await;
}

#[tokio::test(start_paused = true)]
async fn an_operator_may_own_what_its_user_leaves_open() {
    check(json!({
        "metadata": { "annotations": { "seen": "yes" }, "finalizers": ["user.example.com/keep", "operator.example.com/clean"] },
        "spec": { "revisionHistoryLimit": 3 },
    }))
    .await;
}

#[tokio::test(start_paused = true)]
#[should_panic(expected = "web: spec.replicas is not owned")]
async fn an_operator_that_changes_a_field_of_its_user_is_reported() {
    check(json!({ "metadata": { "annotations": { "seen": "yes" } }, "spec": { "replicas": 5 } })).await;
}

#[tokio::test(start_paused = true)]
#[should_panic(expected = "web: metadata.finalizers[\"user.example.com/keep\"] is not owned")]
async fn an_operator_that_replaces_the_finalizers_is_reported() {
    check(json!({ "metadata": { "annotations": { "seen": "yes" }, "finalizers": ["operator.example.com/clean"] } })).await;
}

#[tokio::test(start_paused = true)]
#[should_panic(expected = "the operator does not work:\ndenied requests:\n  patch deployments.apps")]
async fn an_operator_that_is_denied_a_request_is_reported() {
    let reconcile = async |key: ObjectKey, cx: Context<Deployment>| {
        let patch = json!({ "metadata": { "annotations": { "seen": "yes" } } });
        cx.patch::<Deployment, _>(&key, &Patch::Merge(&patch)).await?;
        Ok::<_, windlass_runtime::Error>(Action::done())
    };
    check_controller(Controller::of::<Deployment>(reconcile)).await;
}

#[tokio::test(start_paused = true)]
#[should_panic(expected = "failed reconciles:\n  deployment default/web: no disk")]
async fn an_operator_whose_reconciles_fail_is_reported() {
    let reconcile = async |_: ObjectKey, _: Context<Deployment>| {
        Err::<Action, _>(windlass_runtime::Error::other("no disk"))
    };
    check_controller(Controller::of::<Deployment>(reconcile)).await;
}

async fn check_controller(controller: Controller) {
    let cluster = TestCluster::start().await;
    cluster.check_ownership(Manager::new(cluster.client()).controller(controller), SAMPLE).await;
}
