//! The finalizer guard: cleans up resources outside of the cluster before an object is deleted.

use std::sync::Arc;

use kube_core::ResourceExt;
use serde::{Serialize, de::DeserializeOwned};
use serde_json::{Value, json};

use crate::{
    client::JSON_PATCH,
    context::{Context, Target},
    error::{Error, Result},
    kind::Object,
    read_your_writes::note_own_write,
    reconcile::Action,
};

/// The action for an object with the finalizer.
#[derive(Clone, Debug)]
pub enum Finalize<K> {
    /// The object lives and has the finalizer: external effects are safe.
    Apply(Arc<K>),
    /// The object is being deleted: undo the external effects. On success, the finalizer is removed.
    Cleanup(Arc<K>),
}

/// Runs `reconcile` under a finalizer. The guard adds the finalizer before [`Finalize::Apply`], and removes
/// the finalizer after [`Finalize::Cleanup`].
///
/// `name` is qualified by a domain: `network.example.com/cleanup`. Each write has a condition on the state
/// that was read, and the guard therefore never removes another finalizer and never touches a newer object of
/// the same name.
///
/// A clean-up that returns [`Action::requeue_after`] has not completed: the finalizer stays, and the clean-up is called again.
///
/// ```
/// # use k8s_openapi::api::core::v1::ConfigMap;
/// use windlass_runtime::{Action, Context, ObjectKey, Result, finalizer::{self, Finalize}};
///
/// async fn reconcile(key: ObjectKey, cx: Context<ConfigMap>) -> Result<Action> {
///     let Some(config) = cx.get(&key)? else { return Ok(Action::done()) };
///     finalizer::guard(&cx, config, "example.com/bucket", async |event| match event {
///         Finalize::Apply(_config) => Ok(Action::done()),
///         Finalize::Cleanup(_config) => Ok(Action::done()),
///     })
///     .await
/// }
/// ```
///
/// `reconcile` fails with an [`Error`]; [`Error::other`] wraps an error of another type.
///
/// # Errors
/// `reconcile` failed, and the finalizers are as before; or the server refused to add or to remove the
/// finalizer, for instance because the object has changed since the read.
pub async fn guard<K, C, F, Fut>(cx: &Context<C>, object: Arc<K>, name: &str, reconcile: F) -> Result<Action>
where
    K: Object + Serialize,
    F: FnOnce(Finalize<K>) -> Fut,
    Fut: Future<Output = Result<Action>>,
{
    let position = object.finalizers().iter().position(|finalizer| finalizer == name);
    match (object.meta().deletion_timestamp.is_some(), position) {
        (false, Some(_)) => reconcile(Finalize::Apply(object)).await,
        (false, None) => {
            let object = Arc::new(add(cx, object.as_ref(), name).await?);
            reconcile(Finalize::Apply(object)).await
        }
        (true, Some(position)) => {
            let action = reconcile(Finalize::Cleanup(object.clone())).await?;
            if action.requeues_after().is_some() {
                // The clean-up has not completed.
                return Ok(action);
            }
            remove(cx, object.as_ref(), name, position).await?;
            Ok(action)
        }
        // Other finalizers still hold the object.
        (true, None) => Ok(Action::done()),
    }
}

async fn add<K, C>(cx: &Context<C>, object: &K, name: &str) -> Result<K>
where
    K: Object,
{
    let add = match object.finalizers() {
        [] => json!({ "op": "add", "path": "/metadata/finalizers", "value": [name] }),
        _ => json!({ "op": "add", "path": "/metadata/finalizers/-", "value": name }),
    };
    // Test the resource version: a list that was empty at the read must not be overwritten.
    let test =
        json!({ "op": "test", "path": "/metadata/resourceVersion", "value": object.resource_version() });
    let target = cx.target(object)?;
    let added = patch::<K, C>(cx, &target, &[test, add]).await;
    let added = added.map_err(|error| explain(error, format_args!("adding finalizer {name} to {target}")))?;
    if let Some(uid) = &added.meta().uid {
        let (read, written) = (object.resource_version(), added.resource_version());
        note_own_write(uid, read.as_deref(), written.as_deref());
    }
    Ok(added)
}

async fn remove<K, C>(cx: &Context<C>, object: &K, name: &str, position: usize) -> Result<()>
where
    K: Object,
{
    let path = format!("/metadata/finalizers/{position}");
    let steps = [
        json!({ "op": "test", "path": "/metadata/uid", "value": object.uid() }),
        json!({ "op": "test", "path": path, "value": name }),
        json!({ "op": "remove", "path": path }),
    ];
    let target = cx.target(object)?;
    match patch::<Value, C>(cx, &target, &steps).await {
        Ok(_) => Ok(()),
        Err(error) if error.is_not_found() => Ok(()),
        Err(error) => Err(explain(error, format_args!("removing finalizer {name} from {target}"))),
    }
}

fn explain(error: Error, doing: std::fmt::Arguments<'_>) -> Error {
    if error.is_failed_test() {
        return Error::conflict(format!("{doing}: the object changed since it was read"));
    }
    error.while_doing(doing)
}

async fn patch<T: DeserializeOwned, C>(cx: &Context<C>, target: &Target, steps: &[Value]) -> Result<T> {
    cx.api().exchange(target.patch("", &[cx.field_manager()], JSON_PATCH, &steps)?).await
}
