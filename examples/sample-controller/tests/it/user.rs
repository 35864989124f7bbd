//! The tests' actions on a cluster, and observations of the cluster.

use std::collections::BTreeSet;

use k8s_openapi::api::{apps::v1::Deployment, core::v1::Event};
use kube::{
    Api, Client,
    api::{DeleteParams, ListParams, Patch, PatchParams, PostParams},
};
use sample_controller::{Foo, FooSpec};
use serde_json::json;
use windlass_test::eventually;

use crate::SOON;

/// A user of the namespace `default`.
#[derive(Clone)]
pub(crate) struct User(pub(crate) Client);

impl User {
    pub(crate) fn foos(&self) -> Api<Foo> {
        Api::default_namespaced(self.0.clone())
    }

    pub(crate) fn deployments(&self) -> Api<Deployment> {
        Api::default_namespaced(self.0.clone())
    }

    pub(crate) async fn create(&self, name: &str, deployment: &str, replicas: Option<i32>) {
        let object = Foo::new(name, FooSpec { deployment_name: deployment.to_owned(), replicas });
        self.foos().create(&PostParams::default(), &object).await.expect("created");
    }

    pub(crate) async fn scale(&self, name: &str, replicas: i32) {
        let patch = Patch::Merge(json!({ "spec": { "replicas": replicas } }));
        self.foos().patch(name, &PatchParams::default(), &patch).await.expect("scaled");
    }

    pub(crate) async fn scale_deployment(&self, name: &str, replicas: i32) {
        let patch = Patch::Merge(json!({ "spec": { "replicas": replicas } }));
        self.deployments().patch(name, &PatchParams::default(), &patch).await.expect("scaled");
    }

    pub(crate) async fn delete(&self, name: &str) {
        self.foos().delete(name, &DeleteParams::default()).await.expect("deleted");
    }

    pub(crate) async fn delete_deployment(&self, name: &str) {
        self.deployments().delete(name, &DeleteParams::background()).await.expect("deleted");
    }

    /// Creates a Deployment without an owner.
    pub(crate) async fn create_deployment(&self, name: &str) {
        let deployment = json!({
            "metadata": { "name": name },
            "spec": {
                "selector": { "matchLabels": { "app": name } },
                "template": {
                    "metadata": { "labels": { "app": name } },
                    "spec": { "containers": [{ "name": "main", "image": "busybox" }] },
                },
            },
        });
        let deployment = serde_json::from_value(deployment).expect("a Deployment");
        self.deployments().create(&PostParams::default(), &deployment).await.expect("created");
    }

    /// Checks that a Foo controls the Deployment, that the Deployment has this number of replicas, all
    /// available, and that the status of the Foo agrees.
    pub(crate) async fn has(&self, name: &str, replicas: i32) -> Result<(), String> {
        let failed = |error: kube::Error| error.to_string();
        let object = self.foos().get(name).await.map_err(failed)?;
        let deployment = self.deployments().get(&object.spec.deployment_name).await.map_err(failed)?;
        let owners = deployment.metadata.owner_references.unwrap_or_default();
        let owner = owners.first().map(|owner| owner.uid.clone());
        let wanted = deployment.spec.and_then(|spec| spec.replicas);
        let status = object.status.unwrap_or_default();
        if owner == object.metadata.uid && wanted == Some(replicas) && status.available_replicas == replicas {
            return Ok(());
        }
        Err(format!("{name}: owner {owner:?}, replicas {wanted:?}, {status:?}"))
    }

    pub(crate) async fn settled(&self, name: &str, replicas: i32) {
        eventually(SOON, || self.has(name, replicas)).await;
    }

    /// The Events about Foos, as `name type reason message (component)`.
    pub(crate) async fn events(&self) -> BTreeSet<String> {
        let events: Api<Event> = Api::default_namespaced(self.0.clone());
        let about = ListParams::default().fields("involvedObject.kind=Foo");
        let line = |event: Event| {
            let component = event.source.and_then(|source| source.component).unwrap_or_default();
            let (name, type_) = (event.involved_object.name, event.type_);
            let name = name.unwrap_or_default();
            let (reason, message) = (event.reason.unwrap_or_default(), event.message.unwrap_or_default());
            format!("{name} {} {reason} {message} ({component})", type_.unwrap_or_default())
        };
        events.list(&about).await.expect("listed").items.into_iter().map(line).collect()
    }

    pub(crate) async fn recorded(&self, wanted: &str) {
        eventually(SOON, || async {
            let events = self.events().await;
            if events.contains(wanted) { Ok(()) } else { Err(format!("{wanted:?} is not in {events:?}")) }
        })
        .await;
    }
}
