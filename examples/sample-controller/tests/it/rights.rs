//! The operator needs exactly the declared rights. `WINDLASS_TEST_KUBECONFIG` names a real cluster for this
//! test.

use sample_controller::{Foo, controller};
use windlass::prelude::*;
use windlass_test::{TestCluster, eventually};

use crate::{SOON, user::User};

#[tokio::test]
async fn the_declared_rights_are_those_that_are_needed() {
    let cluster = TestCluster::from_env().await;
    cluster.install_crd::<Foo>().await;
    let manager = Manager::new(cluster.client()).controller(controller());
    let operator = cluster.run_restricted(manager).await;

    // A real control plane without nodes starts no pods: this test looks only at the Deployment.
    let user = User(cluster.client());
    let replicas = |wanted| {
        let user = user.clone();
        move || {
            let user = user.clone();
            async move {
                let deployment = user.deployments().get("exact-rights").await.map_err(|e| e.to_string())?;
                let found = deployment.spec.and_then(|spec| spec.replicas);
                if found == Some(wanted) { Ok(()) } else { Err(format!("{found:?} replicas")) }
            }
        }
    };
    user.create("exact-rights", "exact-rights", Some(1)).await;
    eventually(SOON, replicas(1)).await;
    user.scale("exact-rights", 2).await;
    eventually(SOON, replicas(2)).await;
    user.recorded("exact-rights Normal Synced Foo synced successfully (sample-controller)").await;
    user.delete("exact-rights").await;

    operator.stop_with_exact_rights().await.expect("a graceful stop");
}

/// With the field manager `helm`, for instance, by a user of Helm.
#[tokio::test]
async fn the_operator_takes_no_field_from_its_user() {
    let cluster = TestCluster::with_controllers().await;
    cluster.install_crd::<Foo>().await;
    let manager = Manager::new(cluster.client()).controller(controller());
    cluster.check_ownership(manager, include_str!("../../sample.yaml")).await;
}
