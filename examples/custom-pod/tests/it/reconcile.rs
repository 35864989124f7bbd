//! The writes of one reconcile, without a cluster.

use custom_pod::{CustomPod, CustomPodSpec, CustomPodStatus};
use k8s_openapi::api::core::v1::Pod;
use windlass::prelude::*;
use windlass_test::{Fault, fake::FakeCluster};

#[tokio::test]
async fn creates_the_missing_pods() -> Result<()> {
    let controller = custom_pod::controller();
    let mut object = CustomPod::new("a", CustomPodSpec { replicas: 2 });
    object.metadata.namespace = Some("default".to_owned());
    let fake = FakeCluster::new([object]);
    let key = ObjectKey::namespaced("default", "a");

    fake.inject(Fault::Forbidden.on_create::<Pod>());
    let error = fake.reconcile(&controller, key.clone()).await.expect_err("no pod may be created");
    assert!(error.is_forbidden(), "{error}");

    fake.reconcile(&controller, key.clone()).await?;
    let names: Vec<String> = fake.list::<Pod>().iter().map(ResourceExt::name_any).collect();
    assert_eq!(names.len(), 2);
    let status = fake.get::<CustomPod>(&key).and_then(|object| object.status);
    assert_eq!(status.map(|status| status.pod_names), Some(names.clone()));

    // A deleted pod is replaced, and the status follows.
    fake.take_writes();
    fake.remove::<Pod>(&ObjectKey::namespaced("default", &names[0]));
    fake.reconcile(&controller, key.clone()).await?;
    let writes = fake.take_writes();
    assert_eq!(writes[0].body["metadata"]["generateName"], "a-");
    assert_eq!(writes[1..], ["patch CustomPod/status default/a"]);

    fake.reconcile(&controller, key).await?;
    assert!(fake.writes().is_empty(), "nothing is left to do");
    Ok(())
}

/// Returns a cluster with a reconciled object and pods.
async fn reconciled(replicas: u32) -> Result<(FakeCluster, ObjectKey)> {
    let mut object = CustomPod::new("a", CustomPodSpec { replicas });
    object.metadata.namespace = Some("default".to_owned());
    let fake = FakeCluster::new([object]);
    let key = ObjectKey::namespaced("default", "a");
    fake.reconcile(&custom_pod::controller(), key.clone()).await?;
    fake.take_writes();
    Ok((fake, key))
}

#[tokio::test]
async fn deletes_the_newest_pods() -> Result<()> {
    let (fake, key) = reconciled(3).await?;
    let mut names: Vec<String> = fake.list::<Pod>().iter().map(ResourceExt::name_any).collect();
    fake.update(&key, |object: &mut CustomPod| object.spec.replicas = 1);
    fake.reconcile(&custom_pod::controller(), key).await?;
    // All were created in the same second, so the name decides.
    let (third, second) = (names.pop().unwrap_or_default(), names.pop().unwrap_or_default());
    let deletions = [format!("delete Pod default/{third}"), format!("delete Pod default/{second}")];
    assert_eq!(fake.writes()[..2], deletions);
    assert_eq!(fake.writes()[2..], ["patch CustomPod/status default/a"]);
    assert_eq!(fake.list::<Pod>().iter().map(ResourceExt::name_any).collect::<Vec<_>>(), names);
    Ok(())
}

#[tokio::test]
async fn an_object_that_goes_meanwhile_is_no_error() -> Result<()> {
    let (fake, key) = reconciled(1).await?;
    fake.update(&key, |object: &mut CustomPod| object.status = Some(CustomPodStatus::default()));
    fake.inject(Fault::NotFound.on_patch::<CustomPod>().named("a").subresource("status"));
    fake.reconcile(&custom_pod::controller(), key.clone()).await?;
    fake.assert_all_struck();
    fake.delete::<CustomPod>(&key);
    fake.reconcile(&custom_pod::controller(), key).await?;
    assert!(fake.writes().is_empty());
    Ok(())
}
