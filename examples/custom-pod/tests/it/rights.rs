//! The operator needs exactly the declared rights. `WINDLASS_TEST_KUBECONFIG` names a real cluster for this
//! test.

use custom_pod::{CustomPod, CustomPodSpec};
use kube::api::{Api, DeleteParams, Patch, PatchParams, PostParams};
use serde_json::json;
use windlass::prelude::*;
use windlass_test::TestCluster;

#[tokio::test]
async fn the_declared_rights_are_those_that_are_needed() {
    let cluster = TestCluster::from_env().await;
    cluster.install_crd::<CustomPod>().await;
    let manager = Manager::new(cluster.client()).controller(custom_pod::controller());
    let operator = cluster.run_restricted(manager).await;

    let objects: Api<CustomPod> = Api::default_namespaced(cluster.client());
    let object = CustomPod::new("exact-rights", CustomPodSpec { replicas: 2 });
    objects.create(&PostParams::default(), &object).await.expect("created");
    let counts = |replicas| {
        move |object: &CustomPod| object.status.as_ref().is_some_and(|status| status.replicas == replicas)
    };
    cluster.wait_for::<CustomPod>("exact-rights", counts(2)).await;
    let patch = Patch::Merge(json!({ "spec": { "replicas": 0 } }));
    objects.patch("exact-rights", &PatchParams::default(), &patch).await.expect("scaled");
    cluster.wait_for::<CustomPod>("exact-rights", counts(0)).await;
    objects.delete("exact-rights", &DeleteParams::default()).await.expect("deleted");

    operator.stop_with_exact_rights().await.expect("a graceful stop");
}

/// With the field manager `helm`, for instance, by a user of Helm.
#[tokio::test]
async fn the_operator_takes_no_field_from_its_user() {
    let cluster = TestCluster::with_controllers().await;
    cluster.install_crd::<CustomPod>().await;
    let manager = Manager::new(cluster.client()).controller(custom_pod::controller());
    cluster.check_ownership(manager, include_str!("../../sample.yaml")).await;
}
