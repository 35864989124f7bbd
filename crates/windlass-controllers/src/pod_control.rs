//! Creates and deletes the pods of a controller, with an Event for each.

use k8s_openapi::api::core::v1::Pod;
use kube_core::{Resource, ResourceExt};
use windlass_runtime::{Context, Error, Object, Result};

/// Creates a pod of `owner` and records an Event. Returns `None` if the namespace is terminating: no pod can be created there.
pub(crate) async fn create<K>(cx: &Context<K>, owner: &K, pod: Pod) -> Result<Option<Pod>>
where
    K: Object + Resource<DynamicType = ()>,
{
    match cx.create(pod).await {
        Ok(pod) => {
            cx.recorder().normal(owner, "SuccessfulCreate", format!("Created pod: {}", pod.name_any()));
            Ok(Some(pod))
        }
        Err(error) if error.is_namespace_terminating() => Ok(None),
        Err(error) => {
            let message = format!("Error creating: {}", message_of(&error));
            cx.recorder().warning(owner, "FailedCreate", message);
            Err(error)
        }
    }
}

/// Deletes a pod of `owner` and records an Event.
pub(crate) async fn delete<K>(cx: &Context<K>, owner: &K, pod: &Pod) -> Result<()>
where
    K: Object + Resource<DynamicType = ()>,
{
    match cx.delete(pod).await {
        Ok(()) => {
            cx.recorder().normal(owner, "SuccessfulDelete", format!("Deleted pod: {}", pod.name_any()));
            Ok(())
        }
        Err(error) => {
            let message = format!("Error deleting: {}", message_of(&error));
            cx.recorder().warning(owner, "FailedDelete", message);
            Err(error)
        }
    }
}

/// Returns the server's words for an error, without the operation of this process.
pub(crate) fn message_of(error: &Error) -> String {
    error.status().map_or_else(|| error.to_string(), |status| status.message.clone())
}
