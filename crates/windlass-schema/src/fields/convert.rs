//! Conversion of objects between the versions of a kind.

use std::borrow::Cow;
use std::fmt;

use serde_json::Value;

use super::typed::{Duplicates, validate_typed};
use crate::graph::NodeRef;

/// The versions of a kind, for field managers. Objects of a kind with one version are never converted.
pub trait Convert: Sync {
    /// Returns the schema of a version, or `None` if the version does not exist (any more).
    fn schema(&self, api_version: &str) -> Option<NodeRef<'_>>;

    /// Converts an object from one version to another. Implementations write `async fn convert`.
    fn convert(
        &self,
        object: &Value,
        from: &str,
        to: &str,
    ) -> impl Future<Output = Result<Value, ConvertError>> + Send;
}

/// The error of a conversion.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum ConvertError {
    /// The version does not exist; managers with fields in the version are dropped.
    MissingVersion(String),
    /// The conversion failed.
    Failed(String),
}

impl fmt::Display for ConvertError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (Self::MissingVersion(text) | Self::Failed(text)) = self;
        f.write_str(text)
    }
}

impl std::error::Error for ConvertError {}

/// Converts an object. An object of the right version is not copied. The result has the structure of the
/// schema.
pub(super) async fn converted<'v>(
    convert: &impl Convert,
    object: &'v Value,
    from: &str,
    to: &str,
) -> Result<Cow<'v, Value>, ConvertError> {
    if from == to {
        return Ok(Cow::Borrowed(object));
    }
    let converted = convert.convert(object, from, to).await?;
    if let Some(schema) = convert.schema(to) {
        // A conversion may keep fields that the other version does not have.
        let checked = validate_typed(schema, &converted, Duplicates::Forbid);
        checked.map_err(|errors| ConvertError::Failed(errors.to_string()))?;
    }
    Ok(Cow::Owned(converted))
}

/// Returns the converted object, or `None` if the version does not exist.
pub(super) fn existing<T>(converted: Result<T, ConvertError>) -> Result<Option<T>, ConvertError> {
    match converted {
        Ok(object) => Ok(Some(object)),
        Err(ConvertError::MissingVersion(_)) => Ok(None),
        Err(error) => Err(error),
    }
}
