//! Common parts of the controllers that keep an object in every namespace.

use k8s_openapi::api::core::v1::Namespace;
use kube_core::{NamespaceResourceScope, Resource, ResourceExt};
use serde::Serialize;
use windlass_runtime::{Action, Context, Object, ObjectKey, Result};

/// Returns whether the namespace exists and is not terminating.
pub(crate) fn is_active(key: &ObjectKey, cx: &Context<Namespace>) -> Result<bool> {
    Ok(cx.get(key)?.is_some_and(|namespace| namespace.metadata.deletion_timestamp.is_none()))
}

/// Returns the key of the object's namespace if the object has this name.
pub(crate) fn key_of_namespace<K: Resource>(object: &K, name: &str) -> Vec<ObjectKey> {
    let namespace = object.meta().namespace.as_deref().filter(|_| object.name_any() == name);
    namespace.map(ObjectKey::cluster).into_iter().collect()
}

/// Creates the object. An existing object or a terminating namespace is not an error.
pub(crate) async fn create_if_absent<K>(cx: &Context<Namespace>, object: K) -> Result<Action>
where
    K: Object + Resource<DynamicType = (), Scope = NamespaceResourceScope> + Serialize,
{
    match cx.create(object).await {
        Err(error) if !(error.is_already_exists() || error.is_not_found() || error.is_forbidden()) => {
            Err(error)
        }
        _ => Ok(Action::done()),
    }
}
