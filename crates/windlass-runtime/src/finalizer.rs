//! The finalizer guard: what was made outside the cluster is taken away again.

use std::sync::Arc;

use http::Request;
use kube_core::{Resource, ResourceExt};
use serde::{Serialize, de::DeserializeOwned};
use serde_json::{Value, json};

use crate::{
    client::request,
    context::{Context, Target},
    error::{BoxError, Error, Result},
    reconcile::Action,
};

/// What is to be done with an object that has a finalizer of ours.
#[derive(Clone, Debug)]
pub enum Finalize<K> {
    /// It lives, and the finalizer is in place: external effects are safe now.
    Apply(Arc<K>),
    /// It is being deleted: undo the external effects. When that went well the finalizer is removed, and the object goes.
    Cleanup(Arc<K>),
}

/// Runs `reconcile` behind a finalizer: it is added before anything is applied, and removed after the clean-up.
///
/// `name` is qualified by a domain: `network.example.com/cleanup`. The guard writes with a condition on what it read, so it never
/// takes away another's finalizer, and touches no object that was created again under the name.
///
/// ```
/// # use k8s_openapi::api::core::v1::ConfigMap;
/// use windlass_runtime::{Action, Context, ObjectKey, Result, finalizer::{self, Finalize}};
///
/// async fn reconcile(key: ObjectKey, cx: Context<ConfigMap>) -> Result<Action> {
///     let Some(config) = cx.get(&key)? else { return Ok(Action::done()) };
///     finalizer::guard(&cx, config, "example.com/bucket", async |event| match event {
///         Finalize::Apply(_config) => Ok::<_, std::io::Error>(Action::done()),
///         Finalize::Cleanup(_config) => Ok(Action::done()),
///     })
///     .await
/// }
/// ```
pub async fn guard<K, C, F, Fut, E>(
    cx: &Context<C>,
    object: Arc<K>,
    name: &str,
    reconcile: F,
) -> Result<Action>
where
    K: Resource<DynamicType = ()> + Serialize + DeserializeOwned + 'static,
    F: FnOnce(Finalize<K>) -> Fut,
    Fut: Future<Output = Result<Action, E>>,
    E: Into<BoxError>,
{
    let position = object.finalizers().iter().position(|finalizer| finalizer == name);
    match (object.meta().deletion_timestamp.is_some(), position) {
        (false, Some(_)) => reconcile(Finalize::Apply(object)).await.map_err(Error::other),
        (false, None) => {
            let object = Arc::new(add(cx, object.as_ref(), name).await?);
            reconcile(Finalize::Apply(object)).await.map_err(Error::other)
        }
        (true, Some(position)) => {
            let action = reconcile(Finalize::Cleanup(object.clone())).await.map_err(Error::other)?;
            if action.requeues_after().is_some() {
                // Not through yet.
                return Ok(action);
            }
            remove(cx, object.as_ref(), name, position).await?;
            Ok(action)
        }
        // Others still hold it.
        (true, None) => Ok(Action::done()),
    }
}

async fn add<K, C>(cx: &Context<C>, object: &K, name: &str) -> Result<K>
where
    K: Resource<DynamicType = ()> + DeserializeOwned + 'static,
{
    let add = match object.finalizers() {
        [] => json!({ "op": "add", "path": "/metadata/finalizers", "value": [name] }),
        _ => json!({ "op": "add", "path": "/metadata/finalizers/-", "value": name }),
    };
    // With the resourceVersion: an empty list that is not empty any more would be overwritten.
    let test =
        json!({ "op": "test", "path": "/metadata/resourceVersion", "value": object.resource_version() });
    let target = Target::of(object);
    let added = patch::<K, C>(cx, &target, &[test, add]).await;
    added.map_err(|error| told(error, format_args!("adding finalizer {name} to {target}")))
}

async fn remove<K, C>(cx: &Context<C>, object: &K, name: &str, position: usize) -> Result<()>
where
    K: Resource<DynamicType = ()> + 'static,
{
    let path = format!("/metadata/finalizers/{position}");
    let steps = [
        json!({ "op": "test", "path": "/metadata/uid", "value": object.uid() }),
        json!({ "op": "test", "path": path, "value": name }),
        json!({ "op": "remove", "path": path }),
    ];
    let target = Target::of(object);
    match patch::<Value, C>(cx, &target, &steps).await {
        Ok(_) => Ok(()),
        Err(error) if error.is_not_found() => Ok(()),
        Err(error) => Err(told(error, format_args!("removing finalizer {name} from {target}"))),
    }
}

fn told(error: Error, doing: std::fmt::Arguments<'_>) -> Error {
    if error.is_failed_test() {
        return error.while_doing(format_args!("{doing}, which is not any more as it was read"));
    }
    error.while_doing(doing)
}

async fn patch<T: DeserializeOwned, C>(cx: &Context<C>, target: &Target, steps: &[Value]) -> Result<T> {
    let path = format!("{}?fieldManager={}", target.path()?, cx.controller());
    request::exchange(cx.client(), Request::patch(path), "application/json-patch+json", &steps).await
}
