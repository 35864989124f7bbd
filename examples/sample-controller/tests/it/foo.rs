//! The operator from a user's point of view.

use k8s_openapi::api::apps::v1::Deployment;
use kube::api::PostParams;
use sample_controller::{Foo, FooSpec, controller, crd_without_status};
use windlass::prelude::*;
use windlass_test::{RestrictedManager, TestCluster, eventually};

use crate::{SOON, user::User};

struct Fixture {
    operator: RestrictedManager,
    user: User,
    cluster: TestCluster,
}

impl Fixture {
    async fn start() -> Self {
        let cluster = TestCluster::with_controllers().await;
        cluster.install_crd::<Foo>().await;
        Self::on(cluster).await
    }

    async fn on(cluster: TestCluster) -> Self {
        let manager = Manager::new(cluster.client()).controller(controller());
        Self { operator: cluster.run_restricted(manager).await, user: User(cluster.client()), cluster }
    }

    async fn stop(self) {
        let missing = self.operator.rights().missing;
        assert!(missing.is_empty(), "{missing:?}");
        self.operator.stop().await.expect("a graceful stop");
    }
}

#[tokio::test]
async fn a_foo_has_its_deployment() {
    let fixture = Fixture::start().await;
    let user = &fixture.user;
    user.create("a", "web", Some(2)).await;
    user.settled("a", 2).await;

    let deployment = user.deployments().get("web").await.expect("got");
    let owner = &deployment.owner_references()[0];
    let named = (&*owner.api_version, &*owner.kind, &*owner.name);
    assert_eq!(named, ("samplecontroller.k8s.io/v1alpha1", "Foo", "a"));
    assert_eq!((owner.controller, owner.block_owner_deletion), (Some(true), Some(true)));
    let template = deployment.spec.expect("a spec").template;
    let labels = template.metadata.and_then(|metadata| metadata.labels).unwrap_or_default();
    assert_eq!(labels, [("app", "nginx"), ("controller", "a")].map(|(k, v)| (k.into(), v.into())).into());
    assert_eq!(template.spec.expect("a spec").containers[0].image.as_deref(), Some("nginx:latest"));
    user.recorded("a Normal Synced Foo synced successfully (sample-controller)").await;

    user.scale("a", 3).await;
    user.settled("a", 3).await;
    fixture.stop().await;
}

#[tokio::test]
async fn what_a_person_does_to_the_deployment_is_undone() {
    let fixture = Fixture::start().await;
    let user = &fixture.user;
    user.create("a", "web", Some(2)).await;
    user.settled("a", 2).await;
    user.scale_deployment("web", 5).await;
    user.settled("a", 2).await;
    let before = user.deployments().get("web").await.expect("got").uid();
    user.delete_deployment("web").await;
    eventually(SOON, || async {
        match user.deployments().get_opt("web").await {
            Ok(Some(deployment)) if deployment.uid() != before => Ok(()),
            other => Err(format!("{other:?}")),
        }
    })
    .await;
    user.settled("a", 2).await;

    user.delete("a").await;
    fixture.cluster.gone::<Deployment>("web").await;
    fixture.stop().await;
}

#[tokio::test]
async fn without_replicas_their_number_is_left_to_others() {
    let fixture = Fixture::start().await;
    let user = &fixture.user;
    user.create("a", "web", None).await;
    user.settled("a", 1).await;
    user.scale_deployment("web", 2).await;
    user.settled("a", 2).await;
    fixture.stop().await;
}

#[tokio::test]
async fn a_deployment_of_others_is_left_alone_and_reported() {
    let fixture = Fixture::start().await;
    let user = &fixture.user;
    user.create_deployment("web").await;
    user.create("a", "web", Some(2)).await;
    let warning = r#"a Warning ErrResourceExists Resource "web" already exists and is not managed by Foo (sample-controller)"#;
    user.recorded(warning).await;
    let deployment = user.deployments().get("web").await.expect("got");
    assert!(deployment.owner_references().is_empty());

    // The Foo is retried, and takes the name when the name becomes free.
    user.delete_deployment("web").await;
    user.settled("a", 2).await;
    fixture.stop().await;
}

#[tokio::test]
async fn a_foo_without_a_name_waits_for_one() {
    let fixture = Fixture::start().await;
    let user = &fixture.user;
    user.create("a", "", Some(1)).await;
    // The Foos are reconciled in order: when b has a Deployment, a has been reconciled.
    user.create("b", "web", Some(1)).await;
    user.settled("b", 1).await;
    assert_eq!(user.foos().get("a").await.expect("got").status, None);
    let patch = kube::api::Patch::Merge(serde_json::json!({ "spec": { "deploymentName": "late" } }));
    user.foos().patch("a", &kube::api::PatchParams::default(), &patch).await.expect("patched");
    user.settled("a", 1).await;
    fixture.stop().await;
}

#[tokio::test]
async fn one_to_ten_replicas_are_valid() {
    let cluster = TestCluster::start().await;
    cluster.install_crd::<Foo>().await;
    let user = User(cluster.client());
    for replicas in [1, 10] {
        user.create(&format!("with-{replicas}"), "web", Some(replicas)).await;
    }
    for replicas in [0, 11] {
        let object = Foo::new("a", FooSpec { deployment_name: "web".to_owned(), replicas: Some(replicas) });
        let error = user.foos().create(&PostParams::default(), &object).await.expect_err("invalid");
        assert!(error.to_string().contains("spec.replicas"), "{error}");
    }
}

#[tokio::test]
async fn it_works_without_the_status_subresource() {
    let cluster = TestCluster::with_controllers().await;
    cluster.install(&crd_without_status()).await;
    let fixture = Fixture::on(cluster).await;
    let user = &fixture.user;
    user.create("a", "web", Some(1)).await;
    user.settled("a", 1).await;
    user.scale("a", 2).await;
    user.settled("a", 2).await;
    fixture.stop().await;
}

#[tokio::test]
async fn nothing_is_written_when_nothing_changes() {
    let fixture = Fixture::start().await;
    let user = &fixture.user;
    user.create("a", "web", Some(1)).await;
    user.settled("a", 1).await;
    let patch =
        kube::api::Patch::Merge(serde_json::json!({ "metadata": { "labels": { "touched": "yes" } } }));
    let touched = user.foos().patch("a", &kube::api::PatchParams::default(), &patch).await.expect("patched");
    let deployment = user.deployments().get("web").await.expect("got");
    user.create("b", "other", Some(1)).await;
    user.settled("b", 1).await;
    assert_eq!(user.foos().get("a").await.expect("got").resource_version(), touched.resource_version());
    let later = user.deployments().get("web").await.expect("got");
    assert_eq!(later.resource_version(), deployment.resource_version());
    fixture.stop().await;
}
