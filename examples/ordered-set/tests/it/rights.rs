//! The operator needs exactly the declared rights. `WINDLASS_TEST_KUBECONFIG` names a real cluster for this
//! test.

use kube::api::DeleteParams;
use ordered_set::{OrderedSet, controller};
use serde_json::json;
use windlass::prelude::*;
use windlass_test::TestCluster;

use crate::user::User;

#[tokio::test]
async fn the_declared_rights_are_those_that_are_needed() {
    let cluster = TestCluster::from_env().await;
    cluster.install_crd::<OrderedSet>().await;
    let manager = Manager::new(cluster.client()).controller(controller());
    let operator = cluster.run_restricted(manager).await;

    // A real control plane without nodes runs no pods: the first pod keeps the other pods waiting, and the
    // set reports the first pod.
    let user = User(cluster.client());
    user.create("exact-rights", 2, json!({ "kubelet.windlass.dev/ready-after": "1h" })).await;
    user.blocked("exact-rights", "PodStuck").await;
    user.sets().delete("exact-rights", &DeleteParams::default()).await.expect("deleted");
    cluster.gone::<OrderedSet>("exact-rights").await;
    operator.stop_with_exact_rights().await.expect("a graceful stop");
}

/// With the field manager `helm`, for instance, by a user of Helm.
#[tokio::test]
async fn the_operator_takes_no_field_from_its_user() {
    let cluster = TestCluster::with_controllers().await;
    cluster.install_crd::<OrderedSet>().await;
    let manager = Manager::new(cluster.client()).controller(controller());
    cluster.check_ownership(manager, include_str!("../../sample.yaml")).await;
}
