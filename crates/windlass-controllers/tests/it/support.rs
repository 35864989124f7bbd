//! Functions that create objects and wait for objects.

use std::fmt::Debug;
use std::time::Duration;

use k8s_openapi::NamespaceResourceScope;
use k8s_openapi::api::core::v1::{ConfigMap, Event, Node, Pod};
use kube_client::Client;
use kube_client::api::{Api, DeleteParams, ListParams, PostParams};
use kube_core::{Resource, ResourceExt};
use serde::Serialize;
use serde::de::DeserializeOwned;
use serde_json::{Value, json};
use windlass_controllers::{Controllers, can_run_pods};
use windlass_test::{RunningManager, TestCluster, eventually};

/// The limit of every wait. Most take milliseconds.
pub(crate) const WAIT_LIMIT: Duration = Duration::from_secs(30);

pub(crate) fn api<K>(client: &Client) -> Api<K>
where
    K: Resource<DynamicType = (), Scope = NamespaceResourceScope>,
{
    Api::namespaced(client.clone(), "default")
}

/// Creates an object in the namespace `default`.
pub(crate) async fn create<K>(client: &Client, object: Value) -> K
where
    K: Resource<DynamicType = (), Scope = NamespaceResourceScope>
        + Serialize
        + DeserializeOwned
        + Clone
        + Debug,
{
    create_in(client, "default", object).await
}

pub(crate) async fn create_in<K>(client: &Client, namespace: &str, object: Value) -> K
where
    K: Resource<DynamicType = (), Scope = NamespaceResourceScope>
        + Serialize
        + DeserializeOwned
        + Clone
        + Debug,
{
    let object: K = serde_json::from_value(object).unwrap();
    Api::namespaced(client.clone(), namespace).create(&PostParams::default(), &object).await.unwrap()
}

/// Creates a ConfigMap with owners.
pub(crate) async fn config(client: &Client, name: &str, owners: &[Value]) -> ConfigMap {
    create(client, json!({"metadata": {"name": name, "ownerReferences": owners}})).await
}

/// Returns a reference to an owner.
pub(crate) fn owner<K: Resource<DynamicType = ()>>(object: &K) -> Value {
    json!({
        "apiVersion": K::api_version(&()), "kind": K::kind(&()), "name": object.name_any(), "uid": object.uid(),
        "blockOwnerDeletion": true,
    })
}

pub(crate) async fn delete<K>(client: &Client, name: &str, how: DeleteParams)
where
    K: Resource<DynamicType = (), Scope = NamespaceResourceScope> + DeserializeOwned + Clone + Debug,
{
    api::<K>(client).delete(name, &how).await.unwrap();
}

/// Waits until the object is gone.
pub(crate) async fn gone<K>(client: &Client, name: &str)
where
    K: Resource<DynamicType = (), Scope = NamespaceResourceScope> + DeserializeOwned + Clone + Debug,
{
    let api = api::<K>(client);
    eventually(WAIT_LIMIT, || async {
        match api.get_opt(name).await.map_err(|error| error.to_string())? {
            None => Ok(()),
            Some(object) => Err(format!("{name} is still there: {:?}", object.meta())),
        }
    })
    .await;
}

/// Waits until the object satisfies the condition, and returns it.
pub(crate) async fn becomes<K>(client: &Client, name: &str, is: impl Fn(&K) -> bool) -> K
where
    K: Resource<DynamicType = (), Scope = NamespaceResourceScope>
        + DeserializeOwned
        + Serialize
        + Clone
        + Debug,
{
    let api = api::<K>(client);
    eventually(WAIT_LIMIT, || async {
        let object = api.get(name).await.map_err(|error| error.to_string())?;
        if is(&object) { Ok(object) } else { Err(serde_json::to_string(&object).unwrap_or_default()) }
    })
    .await
}

/// Returns a pod with a container that runs until the pod is deleted, unless the annotations script an
/// earlier end.
pub(crate) fn pod(name: &str, annotations: &Value) -> Value {
    let mut annotations = annotations.clone();
    let run_for = &mut annotations["kubelet.windlass.dev/run-for"];
    if run_for.is_null() {
        *run_for = json!("forever");
    }
    json!({
        "metadata": {"name": name, "annotations": annotations},
        "spec": {"restartPolicy": "Never", "containers": [{"name": "c", "image": "busybox"}]},
    })
}

pub(crate) fn phase(pod: &Pod) -> &str {
    pod.status.as_ref().and_then(|status| status.phase.as_deref()).unwrap_or_default()
}

/// Starts a cluster with simulated nodes. A node without a heartbeat for two seconds is lost.
pub(crate) async fn cluster_with(nodes: Vec<Node>) -> (TestCluster, RunningManager) {
    cluster_with_grace(nodes, Duration::from_secs(2)).await
}

/// As [`cluster_with`]. A node without a heartbeat for `grace` is lost.
pub(crate) async fn cluster_with_grace(nodes: Vec<Node>, grace: Duration) -> (TestCluster, RunningManager) {
    let cluster = TestCluster::start().await;
    let names: Vec<String> = nodes.iter().map(ResourceExt::name_any).collect();
    let controllers =
        Controllers::new(cluster.client()).simulated_nodes(nodes).node_monitor_grace_period(grace);
    let running = cluster.run(controllers.manager());
    let client = cluster.client();
    eventually(WAIT_LIMIT, || can_run_pods(&client, 1)).await;
    for name in names {
        node_becomes(&client, &name, |node| is_ready(node) && taints(node).is_empty()).await;
    }
    (cluster, running)
}

/// Returns a node with labels.
pub(crate) fn node(name: &str, labels: Value, change: Value) -> Node {
    let mut node = json!({"metadata": {"name": name, "labels": labels}});
    if let (Some(fields), Value::Object(change)) = (node.as_object_mut(), change) {
        fields.extend(change);
    }
    serde_json::from_value(node).unwrap()
}

/// Waits until the node satisfies the condition.
pub(crate) async fn node_becomes(client: &Client, name: &str, is: impl Fn(&Node) -> bool) -> Node {
    let nodes: Api<Node> = Api::all(client.clone());
    eventually(WAIT_LIMIT, || async {
        let node = nodes.get(name).await.map_err(|error| error.to_string())?;
        if is(&node) { Ok(node) } else { Err(serde_json::to_string(&node).unwrap_or_default()) }
    })
    .await
}

pub(crate) fn is_ready(node: &Node) -> bool {
    ready_status(node) == "True"
}

/// Returns the status of the condition `Ready`.
pub(crate) fn ready_status(node: &Node) -> &str {
    let mut conditions = node.status.iter().flat_map(|status| status.conditions.iter().flatten());
    conditions.find(|condition| condition.type_ == "Ready").map_or("", |condition| &condition.status)
}

/// Returns the taints as `key:effect`.
pub(crate) fn taints(node: &Node) -> Vec<String> {
    let taints = node.spec.iter().flat_map(|spec| spec.taints.iter().flatten());
    taints.map(|taint| format!("{}:{}", taint.key, taint.effect)).collect()
}

/// Returns the message of the condition `PodScheduled`; empty without a message.
pub(crate) fn schedule_message(pod: &Pod) -> &str {
    let mut conditions = pod.status.iter().flat_map(|status| status.conditions.iter().flatten());
    let scheduled = conditions.find(|condition| condition.type_ == "PodScheduled");
    scheduled.and_then(|condition| condition.message.as_deref()).unwrap_or_default()
}

pub(crate) fn node_of(pod: &Pod) -> &str {
    pod.spec.as_ref().and_then(|spec| spec.node_name.as_deref()).unwrap_or_default()
}

/// Waits for an Event about an object, and returns the message.
pub(crate) async fn event(client: &Client, object: &str, reason: &str) -> String {
    let events: Api<Event> = api(client);
    eventually(WAIT_LIMIT, || async {
        let all = events.list(&ListParams::default()).await.map_err(|error| error.to_string())?;
        let found = all.items.into_iter().find(|event| {
            event.involved_object.name.as_deref() == Some(object) && event.reason.as_deref() == Some(reason)
        });
        found.and_then(|event| event.message).ok_or_else(|| format!("no event {reason} about {object}"))
    })
    .await
}
