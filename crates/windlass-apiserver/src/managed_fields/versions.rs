//! The versions of a resource, for field managers.

use serde_json::Value;
use windlass_schema::NodeRef;
use windlass_schema::fields::{Convert, ConvertError};

use crate::resource::{Resource, ServedResources};
use crate::wire::ApiError;

/// The versions of a resource.
pub(super) struct Versions<'a> {
    pub(super) resource: &'a Resource,
    pub(super) served: &'a ServedResources,
}

impl Versions<'_> {
    fn resource(&self, api_version: &str) -> Option<&Resource> {
        if api_version == self.resource.api_version() {
            return Some(self.resource);
        }
        let (group, version) = api_version.split_once('/').unwrap_or(("", api_version));
        let served = self.served.kind(group, version, &self.resource.kind).map(|resource| &**resource);
        served.or_else(|| {
            let unserved = &self.resource.custom.as_ref()?.unserved;
            unserved.iter().find(|resource| resource.api_version() == api_version)
        })
    }
}

impl Convert for Versions<'_> {
    fn schema(&self, api_version: &str) -> Option<NodeRef<'_>> {
        self.resource(api_version).map(|resource| resource.schema.get().root())
    }

    async fn convert(&self, object: &Value, from: &str, to: &str) -> Result<Value, ConvertError> {
        let (Some(from), Some(to)) = (self.resource(from), self.resource(to)) else {
            return Err(if self.resource.is_custom() {
                // A built-in kind, in contrast, forgets the managers of a removed version.
                ConvertError::Failed(format!("request to convert CR to an invalid group/version: {to}"))
            } else {
                ConvertError::MissingVersion(format!("{to} is not served"))
            });
        };
        let mut object = object.clone();
        let converted = to.convert_from(from, &mut object).await;
        converted.map_err(|error: ApiError| ConvertError::Failed(error.to_string()))?;
        Ok(object)
    }
}
