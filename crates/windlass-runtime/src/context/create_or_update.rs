//! Creates an object, or updates the object to the wanted state.

use std::sync::Arc;

use kube_core::ResourceExt;
use serde::Serialize;
use windlass_cache::ObjectKey;

use super::{Context, OperationResult, WriteResult};
use crate::{
    error::{Error, Result},
    kind::{Object, ObjectKeyExt},
};

impl<K> Context<K> {
    /// Creates an object, or updates the existing object of the same name, until `change` has nothing more to
    /// change.
    ///
    /// `change` gets `object` if there is none of its name, and the existing object otherwise. It sets every field that the
    /// controller is responsible for, owner references included, and leaves the others alone. If it changes nothing, nothing is sent.
    /// The kind must be declared, since the existing object is read from the cache, and the cache must not leave out fields
    /// ([`CacheOptions::transform`](crate::informer::CacheOptions::transform)), which the update would remove on the server.
    ///
    /// ```
    /// # use k8s_openapi::api::core::v1::ConfigMap;
    /// # use kube_core::ObjectMeta;
    /// # use windlass_runtime::{Context, Result};
    /// use windlass_runtime::owner::Owned;
    ///
    /// async fn keep_settings(cx: &Context<ConfigMap>, parent: &ConfigMap) -> Result<()> {
    ///     let metadata = ObjectMeta {
    ///         name: Some("settings".to_owned()),
    ///         namespace: parent.metadata.namespace.clone(),
    ///         ..ObjectMeta::default()
    ///     };
    ///     let settings = ConfigMap { metadata, ..ConfigMap::default() };
    ///     cx.create_or_update(settings, |settings| {
    ///         settings.set_controller(parent)?;
    ///         settings.data.get_or_insert_default().insert("mode".to_owned(), "fast".to_owned());
    ///         Ok(())
    ///     })
    ///     .await?;
    ///     Ok(())
    /// }
    /// ```
    ///
    /// # Errors
    /// `change` failed, the server refused the request, or `C` has only the metadata of objects. A conflict means that the cache was behind: the reconcile is retried.
    pub async fn create_or_update<C>(
        &self,
        object: C,
        change: impl FnOnce(&mut C) -> Result<()>,
    ) -> Result<WriteResult<C>>
    where
        C: Object + Serialize + Clone,
    {
        let key = ObjectKey::of(&object);
        let target = self.target(&object)?;
        target.check_is_whole::<C>()?;
        if object.meta().name.is_none() {
            return Err(Error::setup(format!("{target}: metadata.name is not set")));
        }
        let lister = self.shared.caches.find_lister::<C>(target.resource(), None, false)?;
        if lister.leaves_out_fields() {
            return Err(Error::setup(format!(
                "{target}: its watch leaves out fields by a transform, and an update would remove them; use `patch` or `apply`"
            )));
        }
        let Some(existing) = lister.get(&key)? else {
            let mut object = object;
            change(&mut object)?;
            let object = Arc::new(self.create(object).await?);
            return Ok(WriteResult { object, operation: OperationResult::Created });
        };
        let mut changed = C::clone(&existing);
        change(&mut changed)?;
        if changed.name_any() != existing.name_any() || changed.namespace() != existing.namespace() {
            return Err(Error::setup(format!(
                "{target}: the change moved the object to another name or namespace"
            )));
        }
        if serde_json::to_value(&changed)? == serde_json::to_value(existing.as_ref())? {
            return Ok(WriteResult { object: existing, operation: OperationResult::Unchanged });
        }
        let object = Arc::new(self.update(&changed).await?);
        Ok(WriteResult { object, operation: OperationResult::Updated })
    }
}
