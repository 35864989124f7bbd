//! Computes objects and field managers of updates and applies.

use std::collections::BTreeMap;
use std::fmt;

use serde_json::Value;

use super::conflicts::Conflicts;
use super::filter::FieldFilter;
use super::managers::Managers;
use crate::graph::NodeRef;

/// The versions of a kind. A kind with one version is never converted.
pub trait Convert: Sync {
    /// Returns the schema of a version, or `None` if the version does not exist (any more).
    fn schema(&self, api_version: &str) -> Option<NodeRef<'_>>;

    /// Converts an object to another version. Implementations write `async fn convert`.
    fn convert(
        &self,
        object: &Value,
        api_version: &str,
    ) -> impl Future<Output = Result<Value, ConvertError>> + Send;
}

/// The error of a conversion.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum ConvertError {
    /// The version does not exist: managers that own fields in it are dropped.
    MissingVersion(String),
    /// Any other failure.
    Failed(String),
}

impl fmt::Display for ConvertError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (Self::MissingVersion(text) | Self::Failed(text)) = self;
        f.write_str(text)
    }
}

impl std::error::Error for ConvertError {}

/// The error of an apply or an update.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum ApplyError {
    /// Other managers own fields that the apply changes.
    Conflicts(Conflicts),
    /// The objects do not match their schemas, or a conversion failed.
    Failed(String),
}

impl fmt::Display for ApplyError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Conflicts(conflicts) => conflicts.fmt(f),
            Self::Failed(text) => f.write_str(text),
        }
    }
}

impl std::error::Error for ApplyError {}

/// Computes the field managers of an object after an update, and the object and its managers after an apply.
pub struct Updater<'a, C> {
    convert: &'a C,
    filters: Option<&'a BTreeMap<String, FieldFilter>>,
}

#[expect(unused_variables, clippy::unused_async, reason = "the bodies follow")]
impl<'a, C: Convert> Updater<'a, C> {
    /// Creates an updater that tracks all fields.
    pub fn new(convert: &'a C) -> Self {
        Self { convert, filters: None }
    }

    /// Sets, by API version, the filters of the fields that are tracked.
    #[must_use]
    pub fn with_filters(mut self, filters: &'a BTreeMap<String, FieldFilter>) -> Self {
        self.filters = Some(filters);
        self
    }

    /// Returns the managers after `manager` replaced `live` by `new`. Both objects are of version `api_version` and
    /// have passed [`validate_typed`](super::validate_typed); `live` is empty for a create.
    pub async fn update(
        &self,
        live: &Value,
        new: &Value,
        api_version: &str,
        managers: Managers,
        manager: &str,
    ) -> Result<Managers, ApplyError> {
        Ok(managers)
    }

    /// Applies a configuration: returns the object, or `None` if it equals `live`, and the managers. Both objects are
    /// of version `api_version` and have passed [`validate_typed`](super::validate_typed).
    pub async fn apply(
        &self,
        live: &Value,
        config: &Value,
        api_version: &str,
        managers: Managers,
        manager: &str,
        force: bool,
    ) -> Result<(Option<Value>, Managers), ApplyError> {
        Ok((None, managers))
    }
}
