//! The tests' actions on a cluster, and observations of the cluster.

use k8s_openapi::api::core::v1::{Event, Pod};
use kube::{
    Api, Client,
    api::{DeleteParams, ListParams, Patch, PatchParams, PostParams},
};
use ordered_set::{OrderedSet, OrderedSetStatus};
use serde_json::{Value, json};
use windlass::{conditions::Condition, prelude::*};
use windlass_test::eventually;

use crate::SOON;

/// A user of the namespace `default`.
#[derive(Clone)]
pub(crate) struct User(pub(crate) Client);

impl User {
    pub(crate) fn sets(&self) -> Api<OrderedSet> {
        Api::default_namespaced(self.0.clone())
    }

    pub(crate) fn pods(&self) -> Api<Pod> {
        Api::default_namespaced(self.0.clone())
    }

    /// Creates a set. The annotations script the pods on the simulated node.
    pub(crate) async fn create(&self, name: &str, replicas: u32, annotations: Value) {
        let set = json!({
            "apiVersion": "apps.abc.com/v1",
            "kind": "OrderedSet",
            "metadata": { "name": name },
            "spec": {
                "replicas": replicas,
                "patienceSeconds": 1,
                "template": {
                    "metadata": { "annotations": annotations },
                    "spec": { "containers": [{ "name": "main", "image": "nginx:1" }] },
                },
            },
        });
        let set = serde_json::from_value(set).expect("a set");
        self.sets().create(&PostParams::default(), &set).await.expect("created");
    }

    pub(crate) async fn change(&self, name: &str, spec: Value) {
        let patch = Patch::Merge(json!({ "spec": spec }));
        self.sets().patch(name, &PatchParams::default(), &patch).await.expect("patched");
    }

    pub(crate) async fn label_pod(&self, name: &str, labels: Value) {
        let patch = Patch::Merge(json!({ "metadata": { "labels": labels } }));
        self.pods().patch(name, &PatchParams::default(), &patch).await.expect("patched");
    }

    pub(crate) async fn scale(&self, name: &str, replicas: u32) {
        self.change(name, json!({ "replicas": replicas })).await;
    }

    pub(crate) async fn set_image(&self, name: &str, image: &str) {
        let containers = json!([{ "name": "main", "image": image }]);
        self.change(name, json!({ "template": { "spec": { "containers": containers } } })).await;
    }

    pub(crate) async fn delete_pod(&self, name: &str) {
        self.pods().delete(name, &DeleteParams::default()).await.expect("deleted");
    }

    /// Ends a pod like an eviction by the node: the pod stays, and does not run again.
    pub(crate) async fn fail_pod(&self, name: &str) {
        let patch = Patch::Merge(json!({ "status": { "phase": "Failed", "reason": "Evicted" } }));
        self.pods().patch_status(name, &PatchParams::default(), &patch).await.expect("patched");
    }

    /// Checks that a set has the right pods, that all pods are ready and have one image, and that the status
    /// agrees.
    pub(crate) async fn has(&self, name: &str, replicas: u32) -> Result<(), String> {
        let failed = |error: kube::Error| error.to_string();
        let status = self.sets().get(name).await.map_err(failed)?.status.unwrap_or_default();
        let pods = self.pods().list(&ListParams::default().labels(&status.selector)).await.map_err(failed)?;
        let mut names: Vec<String> = pods.items.iter().map(ResourceExt::name_any).collect();
        names.sort();
        let wanted: Vec<String> = (0..replicas).map(|index| format!("{name}-{index}")).collect();
        let OrderedSetStatus {
            replicas: all, ready_replicas, updated_replicas, conditions: reported, ..
        } = &status;
        let counts = [*all, *ready_replicas, *updated_replicas];
        let is_ready = conditions::is_true(reported, "Ready");
        if names == wanted && counts == [replicas; 3] && is_ready {
            return Ok(());
        }
        Err(format!("{name}: {names:?}, {counts:?}, ready: {is_ready}"))
    }

    pub(crate) async fn settled(&self, name: &str, replicas: u32) {
        eventually(SOON, || self.has(name, replicas)).await;
    }

    pub(crate) async fn condition(&self, name: &str, wanted: &str) -> Condition {
        let status = self.sets().get(name).await.expect("got").status.unwrap_or_default();
        let found = status.conditions.into_iter().find(|condition| condition.type_ == wanted);
        found.unwrap_or_else(|| panic!("{name} has no condition {wanted}"))
    }

    /// Waits until the condition `Blocked` of a set has a reason, and returns the message of the condition.
    pub(crate) async fn blocked(&self, name: &str, reason: &str) -> String {
        eventually(SOON, || async {
            let status = self.sets().get(name).await.map_err(|error| error.to_string())?.status;
            let reported = status.unwrap_or_default().conditions;
            match reported.into_iter().find(|condition| condition.type_ == "Blocked") {
                Some(blocked) if blocked.reason == reason => Ok(blocked.message),
                other => Err(format!("{other:?}")),
            }
        })
        .await
    }

    /// Waits until a set is stuck for a reason. The message of the reason begins with `begin`. On a slow
    /// machine, the end of a pod may be an earlier reason.
    pub(crate) async fn stuck(&self, name: &str, begin: &str) {
        eventually(SOON, || async {
            let message = self.blocked(name, "PodStuck").await;
            if message.starts_with(begin) { Ok(()) } else { Err(message) }
        })
        .await;
    }

    /// Waits for an Event about a set that begins with `type reason message`.
    pub(crate) async fn recorded(&self, wanted: &str) {
        let events: Api<Event> = Api::default_namespaced(self.0.clone());
        let about = ListParams::default().fields("involvedObject.kind=OrderedSet");
        let line = |event: Event| {
            let (reason, message) = (event.reason.unwrap_or_default(), event.message.unwrap_or_default());
            format!("{} {reason} {message}", event.type_.unwrap_or_default())
        };
        eventually(SOON, || async {
            let listed = events.list(&about).await.map_err(|error| error.to_string())?;
            let found: Vec<String> = listed.items.into_iter().map(line).collect();
            if found.iter().any(|found| found.starts_with(wanted)) {
                Ok(())
            } else {
                Err(format!("{found:?}"))
            }
        })
        .await;
    }
}
