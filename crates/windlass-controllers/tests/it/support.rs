//! Functions that create objects and wait for objects.

use std::fmt::Debug;
use std::time::Duration;

use k8s_openapi::NamespaceResourceScope;
use k8s_openapi::api::core::v1::{ConfigMap, Pod};
use kube_client::Client;
use kube_client::api::{Api, DeleteParams, PostParams};
use kube_core::{Resource, ResourceExt};
use serde::Serialize;
use serde::de::DeserializeOwned;
use serde_json::{Value, json};
use windlass_test::eventually;

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
