//! The operator needs exactly the declared rights. `WINDLASS_TEST_KUBECONFIG` names a real cluster for this
//! test.

use ip_pool::{IPAddress, IPPool, manager};
use kube::api::DeleteParams;
use windlass_test::TestCluster;

use crate::{claims::install, user::User};

#[tokio::test]
async fn the_declared_rights_are_those_that_are_needed() {
    let cluster = TestCluster::from_env().await;
    install(&cluster).await;
    let operator = cluster.run_restricted(manager(cluster.client())).await;
    let user = User(cluster.client());
    user.create_pool("exact-rights", &["198.51.100.0/28"], &[]).await;
    user.claim("exact-rights", "exact-rights", None).await;
    let address = user.bound("exact-rights").await;
    user.counts("exact-rights", [16, 1, 15, 0], ["Available", "AllInside"]).await;
    user.release("exact-rights").await;
    cluster.gone::<IPAddress>(address).await;
    user.pools().delete("exact-rights", &DeleteParams::default()).await.expect("deleted");
    cluster.gone::<IPPool>("exact-rights").await;
    let mut rights = operator.rights();
    // A second replica reads and deletes the Lease of a replica that died; here is only one replica.
    rights.unused.retain(|unused| !unused.contains("leases.coordination.k8s.io"));
    assert!(rights.is_exact(), "{rights}");
    operator.stop().await.expect("a graceful stop");
}

/// With the field manager `helm`, for instance, by a user of Helm.
#[tokio::test]
async fn the_operator_takes_no_field_from_its_user() {
    let cluster = TestCluster::with_controllers().await;
    install(&cluster).await;
    cluster.check_ownership(manager(cluster.client()), include_str!("../../sample.yaml")).await;
}
