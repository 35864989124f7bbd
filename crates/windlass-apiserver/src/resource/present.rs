//! Stored objects as one version of their resource shows them.

use std::sync::Arc;

use serde_json::Value;

use super::Resource;
use crate::store::Stored;
use crate::wire::ApiError;

/// After this many objects were converted, other requests are let in between.
const CONVERSIONS_IN_A_ROW: usize = 64;

impl Resource {
    /// Converts stored objects to this version. They are defaulted by the schema of the stored version, and pruned by
    /// that and by the schema of this version. The results are kept with the
    /// objects, so that each is converted once.
    ///
    /// # Errors
    ///
    /// If a conversion webhook has to convert: this server does not call them yet.
    pub(crate) async fn present(&self, objects: &[Arc<Stored>]) -> Result<Vec<Arc<Stored>>, ApiError> {
        let mut presented = Vec::with_capacity(objects.len());
        for (index, object) in objects.iter().enumerate() {
            if index % CONVERSIONS_IN_A_ROW == 0 && index > 0 && object.layout() != &self.layout {
                tokio::task::yield_now().await;
            }
            presented.push(self.present_now(object)?);
        }
        Ok(presented)
    }

    /// Converts one stored object to this version, as [`Resource::present`] does.
    #[expect(clippy::unused_async, reason = "the call of a conversion webhook will be awaited")]
    pub(crate) async fn present_one(&self, object: &Arc<Stored>) -> Result<Arc<Stored>, ApiError> {
        self.present_now(object)
    }

    fn present_now(&self, object: &Arc<Stored>) -> Result<Arc<Stored>, ApiError> {
        if *object.layout() == self.layout {
            return Ok(Arc::clone(object));
        }
        let same_version = object.layout().api_version == self.layout.api_version;
        if !same_version && self.custom.as_ref().is_some_and(|custom| custom.converted_by_webhook) {
            return Err(ApiError::internal(format!(
                "conversion webhook for {}, Kind={} failed: this server does not call conversion webhooks yet",
                object.layout().api_version,
                self.kind
            )));
        }
        Ok(object.representation(&self.layout, || Arc::new(self.convert(object))))
    }

    fn convert(&self, object: &Stored) -> Stored {
        if self.is_custom() && object.layout().schema == self.layout.schema {
            return object.relabelled(&self.layout, &self.kind);
        }
        let mut value = object.value();
        if self.is_custom() {
            self.default_and_prune_stored(&mut value);
        }
        self.to_this_version(&mut value);
        if self.stored_schema.is_some() {
            windlass_schema::prune(self.schema.get(), &mut value);
        }
        object.converted(&value, self.layout.clone(), self.facets(&value))
    }

    fn to_this_version(&self, value: &mut Value) {
        if value.get("apiVersion").and_then(Value::as_str) == Some(self.api_version()) {
            return;
        }
        self.strategy.convert(value, &self.version);
        if let Some(fields) = value.as_object_mut() {
            fields.insert("apiVersion".into(), self.api_version().into());
            fields.insert("kind".into(), self.kind.clone().into());
        }
    }

    /// Converts an object of another version of the resource to this one. Nothing is defaulted or dropped: field
    /// management would take what is filled in for a field that somebody owns.
    ///
    /// # Errors
    ///
    /// If a conversion webhook has to convert: this server does not call them yet.
    #[expect(clippy::unused_async, reason = "the call of a conversion webhook will be awaited")]
    pub(crate) async fn convert_from(&self, from: &Self, object: &mut Value) -> Result<(), ApiError> {
        if self.api_version() != from.api_version()
            && self.custom.as_ref().is_some_and(|custom| custom.converted_by_webhook)
        {
            return Err(ApiError::internal(format!(
                "conversion webhook for {}, Kind={} failed: this server does not call conversion webhooks yet",
                from.api_version(),
                self.kind
            )));
        }
        self.to_this_version(object);
        Ok(())
    }

    /// Converts an object of this version to the one that is stored.
    ///
    /// # Errors
    ///
    /// If a conversion webhook has to convert: this server does not call them yet.
    #[expect(clippy::unused_async, reason = "the call of a conversion webhook will be awaited")]
    pub(crate) async fn to_storage(&self, object: &mut Value) -> Result<(), ApiError> {
        if *self.storage_version == *self.api_version() {
            return Ok(());
        }
        if self.custom.as_ref().is_some_and(|custom| custom.converted_by_webhook) {
            return Err(ApiError::internal(format!(
                "conversion webhook for {}, Kind={} failed: this server does not call conversion webhooks yet",
                self.api_version(),
                self.kind
            )));
        }
        let version = self.storage_version.rsplit('/').next().unwrap_or_default();
        self.strategy.convert(object, version);
        if let Some(fields) = object.as_object_mut() {
            fields.insert("apiVersion".into(), (*self.storage_version).into());
        }
        if self.is_custom() {
            self.default_and_prune_stored(object);
        }
        Ok(())
    }
}
