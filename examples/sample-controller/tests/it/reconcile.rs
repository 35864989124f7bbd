//! The writes of one reconcile, without a cluster: the tests of the original's `controller_test.go`.

use k8s_openapi::api::apps::v1::Deployment;
use sample_controller::{Foo, FooSpec, controller};
use windlass::prelude::*;
use windlass_test::fake::FakeCluster;

fn key() -> ObjectKey {
    ObjectKey::namespaced("default", "a")
}

fn foo(replicas: i32) -> Foo {
    let mut object =
        Foo::new("a", FooSpec { deployment_name: "a-deployment".to_owned(), replicas: Some(replicas) });
    object.metadata.namespace = Some("default".to_owned());
    object
}

/// Returns a cluster with a Foo and a Deployment.
async fn reconciled() -> Result<FakeCluster> {
    let fake = FakeCluster::builder()
        .object(foo(1))
        .kind::<Deployment>()
        .controller_name("sample-controller")
        .build();
    fake.reconcile(&controller(), key()).await?;
    Ok(fake)
}

#[tokio::test]
async fn creates_the_deployment() -> Result<()> {
    let fake = reconciled().await?;
    assert_eq!(fake.take_writes(), ["create Deployment default/a-deployment", "patch Foo/status default/a"]);
    let deployment = fake.get::<Deployment>(&ObjectKey::namespaced("default", "a-deployment"));
    assert_eq!(deployment.and_then(|deployment| deployment.spec).and_then(|spec| spec.replicas), Some(1));
    Ok(())
}

#[tokio::test]
async fn does_nothing_when_nothing_is_to_be_done() -> Result<()> {
    let fake = reconciled().await?;
    fake.take_writes();
    fake.reconcile(&controller(), key()).await?;
    assert!(fake.writes().is_empty());
    Ok(())
}

#[tokio::test]
async fn updates_the_deployment() -> Result<()> {
    let fake = reconciled().await?;
    fake.take_writes();
    fake.update(&key(), |object: &mut Foo| object.spec.replicas = Some(2));
    fake.reconcile(&controller(), key()).await?;
    assert_eq!(fake.writes(), ["update Deployment default/a-deployment"]);
    Ok(())
}

#[tokio::test]
async fn is_not_controlled_by_it() -> Result<()> {
    let mut other = Deployment::default();
    other.metadata.name = Some("a-deployment".to_owned());
    other.metadata.namespace = Some("default".to_owned());
    let fake = FakeCluster::builder().object(foo(1)).object(other).build();
    let error = fake.reconcile(&controller(), key()).await.expect_err("it is another's");
    assert_eq!(error.to_string(), r#"Resource "a-deployment" already exists and is not managed by Foo"#);
    assert!(!error.is_terminal(), "it is retried");
    assert!(fake.writes().is_empty());
    Ok(())
}

#[tokio::test]
async fn a_missing_name_is_not_retried() -> Result<()> {
    let mut object = foo(1);
    object.spec.deployment_name.clear();
    let fake = FakeCluster::builder().object(object).kind::<Deployment>().build();
    let error = fake.reconcile(&controller(), key()).await.expect_err("there is no name");
    assert!(error.is_terminal(), "{error}");
    assert!(fake.writes().is_empty());
    Ok(())
}
