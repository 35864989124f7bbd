//! Stored objects in a version of the resource.

use std::sync::Arc;

use futures::future::join_all;
use serde_json::Value;
use windlass_kinds::Subresource;

use super::Resource;
use crate::conversion::Converter;
use crate::store::Stored;
use crate::wire::ApiError;

/// After this many objects were converted, other requests are let in between.
const CONVERSIONS_IN_A_ROW: usize = 64;
/// The number of webhook calls at the same time after a call for several objects failed.
const SEPARATE_CONVERSIONS: usize = 10;

/// A stored object that a webhook does not convert.
pub(crate) struct Unconverted {
    pub(crate) object: Arc<Stored>,
    pub(crate) error: ApiError,
}

impl Resource {
    /// Converts stored objects to this version. The schema of the storage version defaults and prunes the
    /// objects, and the schema of this version then prunes the objects. The results are kept with the
    /// objects: each object is converted once.
    ///
    /// # Errors
    ///
    /// A conversion webhook fails. The webhook gets all objects in one call.
    pub(crate) async fn present(&self, objects: &[Arc<Stored>]) -> Result<Vec<Arc<Stored>>, ApiError> {
        let mut presented = Vec::with_capacity(objects.len());
        let mut unconverted = Vec::new();
        for (index, object) in objects.iter().enumerate() {
            if index % CONVERSIONS_IN_A_ROW == 0 && index > 0 && object.layout() != &self.layout {
                tokio::task::yield_now().await;
            }
            if self.converter_of(object).is_some() && object.known_representation(&self.layout).is_none() {
                unconverted.push(index);
                presented.push(Arc::clone(object));
            } else {
                presented.push(object.representation(&self.layout, || Arc::new(self.convert(object))));
            }
        }
        if let [only] = unconverted.as_slice() {
            presented[*only] = Box::pin(self.present_by_webhook(&objects[*only])).await?;
        } else if !unconverted.is_empty() {
            Box::pin(self.convert_together(objects, &unconverted, &mut presented)).await?;
        }
        Ok(presented)
    }

    /// Works like [`Resource::present`], and finds the objects that a webhook does not convert.
    ///
    /// # Errors
    ///
    /// The objects that cannot be converted, at most [`ApiError::MAX_UNREADABLE`].
    pub(crate) async fn present_list(
        &self,
        objects: &[Arc<Stored>],
    ) -> Result<Vec<Arc<Stored>>, Vec<Unconverted>> {
        match self.present(objects).await {
            Ok(presented) => Ok(presented),
            Err(error) => match objects {
                [only] => Err(vec![Unconverted { object: Arc::clone(only), error }]),
                _ => Box::pin(self.present_separately(objects)).await,
            },
        }
    }

    /// Converts objects with a call for each object: the error of a common call does not name an object.
    async fn present_separately(
        &self,
        objects: &[Arc<Stored>],
    ) -> Result<Vec<Arc<Stored>>, Vec<Unconverted>> {
        let (mut presented, mut unconverted) = (Vec::new(), Vec::new());
        for together in objects.chunks(SEPARATE_CONVERSIONS) {
            let shown = join_all(together.iter().map(|object| self.present_one(object))).await;
            for (object, shown) in together.iter().zip(shown) {
                match shown {
                    Ok(shown) => presented.push(shown),
                    Err(error) => unconverted.push(Unconverted { object: Arc::clone(object), error }),
                }
            }
            if unconverted.len() >= ApiError::MAX_UNREADABLE {
                unconverted.truncate(ApiError::MAX_UNREADABLE);
                break;
            }
        }
        if unconverted.is_empty() { Ok(presented) } else { Err(unconverted) }
    }

    /// Converts a stored object to this version, like [`Resource::present`].
    pub(crate) async fn present_one(&self, object: &Arc<Stored>) -> Result<Arc<Stored>, ApiError> {
        if self.converter_of(object).is_some() && object.known_representation(&self.layout).is_none() {
            return Box::pin(self.present_by_webhook(object)).await;
        }
        Ok(object.representation(&self.layout, || Arc::new(self.convert(object))))
    }

    /// Returns the webhook that converts an object of this layout, if a webhook is needed.
    fn converter_of(&self, object: &Stored) -> Option<&Arc<Converter>> {
        let converter = self.custom.as_ref()?.converter.as_ref()?;
        (object.layout().api_version != self.layout.api_version).then_some(converter)
    }

    /// Returns whether objects of other versions are converted by a webhook.
    pub(crate) fn is_converted_by_webhook(&self) -> bool {
        self.custom.as_ref().is_some_and(|custom| custom.converter.is_some())
    }

    async fn present_by_webhook(&self, object: &Arc<Stored>) -> Result<Arc<Stored>, ApiError> {
        let Some(converter) = self.converter_of(object) else { return Ok(Arc::clone(object)) };
        let (from, to) = (&object.layout().api_version, &self.layout.api_version);
        let converted = if object.rv == 0 {
            // The object was not stored, and has no identity.
            let converted = converter.convert(vec![self.as_stored(object)], from, to).await?;
            converted.into_iter().next().map(Arc::new).unwrap_or_default()
        } else {
            converter.convert_shared((object.uid(), object.rv), || self.as_stored(object), from, to).await?
        };
        Ok(self.converted(object, Value::clone(&converted)))
    }

    /// Converts the objects at these indexes, with a call for each stored version.
    async fn convert_together(
        &self,
        objects: &[Arc<Stored>],
        indexes: &[usize],
        presented: &mut [Arc<Stored>],
    ) -> Result<(), ApiError> {
        let mut left: Vec<usize> = indexes.to_vec();
        while let Some(first) = left.first() {
            let from = Arc::clone(&objects[*first].layout().api_version);
            let Some(converter) = self.converter_of(&objects[*first]) else { return Ok(()) };
            let (same, others): (Vec<usize>, Vec<usize>) =
                left.into_iter().partition(|index| objects[*index].layout().api_version == from);
            let values = same.iter().map(|index| self.as_stored(&objects[*index])).collect();
            let converted = converter.convert(values, &from, &self.layout.api_version).await?;
            for (index, converted) in same.into_iter().zip(converted) {
                presented[index] = self.converted(&objects[index], converted);
            }
            left = others;
        }
        Ok(())
    }

    /// Returns the object in the stored version, defaulted and pruned by that version.
    fn as_stored(&self, object: &Stored) -> Value {
        let mut value = object.value();
        if self.is_custom() {
            self.default_and_prune_as(&object.layout().api_version, &mut value);
        }
        value
    }

    /// Returns an object of this version, and keeps the result with the stored object.
    fn converted(&self, object: &Arc<Stored>, mut value: Value) -> Arc<Stored> {
        object.representation(&self.layout, || {
            windlass_schema::prune(self.schema.get(), &mut value);
            Arc::new(object.converted(&value, self.layout.clone(), self.attrs(&value)))
        })
    }

    fn convert(&self, object: &Stored) -> Stored {
        if self.is_custom() && object.layout().schema == self.layout.schema {
            return object.relabelled(&self.layout, &self.kind);
        }
        let mut value = self.as_stored(object);
        if !self.is_custom() && object.layout().schema != self.layout.schema {
            self.default_and_prune(&mut value);
        }
        self.to_this_version(&mut value);
        // The definition may have had another storage version when the object was written.
        if self.is_custom() {
            windlass_schema::prune(self.schema.get(), &mut value);
        }
        object.converted(&value, self.layout.clone(), self.attrs(&value))
    }

    fn to_this_version(&self, value: &mut Value) {
        if value.get("apiVersion").and_then(Value::as_str) == Some(self.api_version()) {
            return;
        }
        (self.strategy.convert)(value, &self.version);
        if let Some(fields) = value.as_object_mut() {
            fields.insert("apiVersion".into(), self.api_version().into());
            fields.insert("kind".into(), self.kind.clone().into());
        }
    }

    /// Converts an object of another version of the resource to this version, without defaults and without
    /// pruning: field management would take a default for a field that a manager owns.
    ///
    /// # Errors
    ///
    /// If a conversion webhook fails.
    pub(crate) async fn convert_from(&self, from: &Self, object: &mut Value) -> Result<(), ApiError> {
        if self.api_version() == from.api_version() {
            return Ok(());
        }
        if let Some(converter) = self.custom.as_ref().and_then(|custom| custom.converter.as_ref()) {
            return convert_value(converter, object, from.api_version(), self.api_version()).await;
        }
        self.to_this_version(object);
        Ok(())
    }

    /// Returns `object` as a write in this API version would store the object. `object` is an edited copy of
    /// `stored` and was never decoded in this version. Returns `None` if the object stays in the layout of
    /// `stored`: the layout is this version's present layout, or a webhook does not convert the object.
    pub(crate) async fn renewed(&self, stored: &Stored, object: &Value) -> Option<Value> {
        let found = &stored.layout().api_version;
        let is_stored_version = *self.storage_version == *self.api_version();
        if !self.is_custom() || is_stored_version && *stored.layout() == self.storage_layout() {
            return None;
        }
        let mut value = object.clone();
        self.default_and_prune_as(found, &mut value);
        if **found != *self.api_version() {
            match self.custom.as_ref().and_then(|custom| custom.converter.as_ref()) {
                Some(converter) => {
                    convert_value(converter, &mut value, found, self.api_version()).await.ok()?;
                }
                None => value["apiVersion"] = self.api_version().into(),
            }
            windlass_schema::prune(self.schema.get(), &mut value);
        }
        self.to_storage(&mut value).await.ok()?;
        Some(value)
    }

    /// Works like [`Resource::to_storage`], for a write to `subresource` over `stored`. The part that the write cannot change is
    /// copied from `stored`, because another version may be less exact, such as version 1 of an autoscaler.
    ///
    /// # Errors
    ///
    /// If a conversion webhook fails.
    pub(crate) async fn to_storage_over(
        &self,
        object: &mut Value,
        stored: &Stored,
        subresource: &Subresource,
    ) -> Result<(), ApiError> {
        self.to_storage(object).await?;
        if self.is_custom() || *self.storage_version == *self.api_version() {
            return Ok(());
        }
        let unwritten = match subresource {
            Subresource::None if self.has_status() => "status",
            Subresource::Status => "spec",
            _ => return Ok(()),
        };
        if let Some(old) = stored.value().get_mut(unwritten) {
            object[unwritten] = old.take();
        }
        Ok(())
    }

    /// Converts an object of this version to the storage version.
    ///
    /// # Errors
    ///
    /// If a conversion webhook fails.
    pub(crate) async fn to_storage(&self, object: &mut Value) -> Result<(), ApiError> {
        if *self.storage_version == *self.api_version() {
            return Ok(());
        }
        if let Some(converter) = self.custom.as_ref().and_then(|custom| custom.converter.as_ref()) {
            convert_value(converter, object, self.api_version(), &self.storage_version).await?;
        } else {
            let version = self.storage_version.rsplit('/').next().unwrap_or_default();
            (self.strategy.convert)(object, version);
            if let Some(fields) = object.as_object_mut() {
                fields.insert("apiVersion".into(), (*self.storage_version).into());
            }
        }
        if self.is_custom() {
            self.default_and_prune_as(&self.storage_version, object);
        }
        Ok(())
    }
}

/// Converts an object that is not stored with a webhook. Calls of webhooks are boxed, to keep the futures of
/// other requests small.
async fn convert_value(
    converter: &Converter,
    object: &mut Value,
    from: &str,
    to: &str,
) -> Result<(), ApiError> {
    let mut converted = Box::pin(converter.convert(vec![object.take()], from, to)).await?;
    *object = converted.pop().unwrap_or_default();
    Ok(())
}
