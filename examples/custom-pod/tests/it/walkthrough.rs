//! The test that docs/testing.md shows.

use custom_pod::{CustomPod, CustomPodSpec};
use k8s_openapi::api::core::v1::Pod;
use kube::api::{Api, DeleteParams, PostParams};
use windlass::prelude::*;
use windlass_test::TestCluster;

#[tokio::test]
async fn a_pod_comes_and_goes_with_its_owner() {
    let cluster = TestCluster::with_controllers().await;
    cluster.install_crd::<CustomPod>().await;
    let operator = cluster.run(Manager::new(cluster.client()).controller(custom_pod::controller()));

    let objects: Api<CustomPod> = Api::default_namespaced(cluster.client());
    let object = CustomPod::new("a", CustomPodSpec { replicas: 1 });
    objects.create(&PostParams::default(), &object).await.expect("created");

    let named =
        |object: &CustomPod| object.status.as_ref().and_then(|status| status.pod_names.first()).cloned();
    let object = cluster.wait_for::<CustomPod>("default/a", |object| named(object).is_some()).await;
    let pod = named(&object).expect("the status names the pod");

    objects.delete("a", &DeleteParams::default()).await.expect("deleted");
    cluster.gone::<Pod>(pod).await;
    operator.stop().await.expect("a graceful stop");
}
