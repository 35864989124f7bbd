//! The built-in admission plugins that look at other objects: `LimitRanger`,
//! `PersistentVolumeClaimResize`, `PodTopologyLabels` and `ServiceAccount`. Checks of a single kind are in the strategy of the kind.

mod claim_resize;
mod limit_ranger;
mod pod_topology;
mod service_account;

use std::time::Duration;

use serde_json::Value;

use crate::meta;
use crate::store::Env;
use crate::store::{ResourceId, Store};
use crate::wire::ApiError;
use windlass_kinds::kind_names::NODE;
use windlass_kinds::resources::{PERSISTENT_VOLUME_CLAIMS, PODS};
use windlass_kinds::{AdmissionPlugin, AdmissionPlugins, Subresource};

/// A write that the plugins look at.
pub(crate) struct Write<'a> {
    pub(crate) plugins: AdmissionPlugins,
    pub(crate) store: &'a Store,
    pub(crate) env: &'a Env,
    pub(crate) resource: &'a ResourceId,
    pub(crate) subresource: &'a Subresource,
    pub(crate) namespace: &'a str,
}

impl Write<'_> {
    /// Returns whether a plugin handles writes of the resource.
    pub(crate) fn concerns(resource: &crate::resource::Resource) -> bool {
        [&*PODS, &*PERSISTENT_VOLUME_CLAIMS].contains(&&resource.storage)
    }

    /// Runs mutating admission. `old` is `None` for a new object.
    pub(crate) async fn mutate(&self, object: &mut Value, old: Option<&Value>) -> Result<(), ApiError> {
        let is_new_pod = *self.resource == *PODS && self.subresource.is_empty() && old.is_none();
        if !is_new_pod {
            return Ok(());
        }
        if self.plugins.has(AdmissionPlugin::LimitRanger) {
            limit_ranger::set_defaults(self, object);
        }
        if self.plugins.has(AdmissionPlugin::ServiceAccount) {
            service_account::admit(self, object).await?;
        }
        if self.plugins.has(AdmissionPlugin::PodTopologyLabels) {
            let node = object["spec"]["nodeName"].as_str().unwrap_or_default().to_owned();
            pod_topology::copy_labels(self.store, &node, object);
        }
        Ok(())
    }

    /// Runs mutating admission of the binding of a pod.
    pub(crate) fn mutate_binding(&self, binding: &mut Value) {
        let is_concerned =
            self.plugins.has(AdmissionPlugin::PodTopologyLabels) && *self.subresource == Subresource::Binding;
        if is_concerned && binding["target"]["kind"] == NODE {
            let node = binding["target"]["name"].as_str().unwrap_or_default().to_owned();
            pod_topology::copy_labels(self.store, &node, binding);
        }
    }

    /// Runs validating admission. `old` is `None` for a new object.
    pub(crate) fn validate(&self, object: &Value, old: Option<&Value>) -> Result<(), ApiError> {
        if self.plugins.has(AdmissionPlugin::LimitRanger) {
            limit_ranger::validate(self, object, old)?;
        }
        if let Some(old) = old.filter(|_| self.plugins.has(AdmissionPlugin::PersistentVolumeClaimResize)) {
            claim_resize::validate(self, object, old)?;
        }
        Ok(())
    }

    /// Returns 403 for the object.
    fn forbidden(&self, object: &Value, why: impl std::fmt::Display) -> ApiError {
        let name = match meta::name(object) {
            "" => meta::text(object, "generateName"),
            name => name,
        };
        ApiError::forbidden(&self.resource.group_resource(), name, why)
    }

    /// Returns an object of the namespace. Waits a little for a missing object.
    async fn wait_for(&self, id: &ResourceId, name: &str, wait: Duration) -> Option<Value> {
        let key = format!("{}/{name}", self.namespace);
        let log = self.store.log(id);
        let deadline = tokio::time::Instant::now() + wait;
        loop {
            let changed = log.changed();
            if let Some(found) = self.store.view().get(id, &key) {
                return Some(found.value());
            }
            if tokio::time::timeout_at(deadline, changed).await.is_err() {
                return None;
            }
        }
    }
}
