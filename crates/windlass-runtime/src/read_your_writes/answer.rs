//! The parts of a write's answer that are recorded.

use serde::Deserialize;
use windlass_cache::ObjectKey;

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
pub(super) struct Answer {
    #[serde(default)]
    pub(super) api_version: String,
    #[serde(default)]
    pub(super) kind: String,
    #[serde(default)]
    pub(super) metadata: Metadata,
    #[serde(default)]
    spec: Spec,
    details: Option<Details>,
}

#[derive(Default, Deserialize)]
#[serde(rename_all = "camelCase")]
pub(super) struct Metadata {
    name: Option<String>,
    namespace: Option<String>,
    pub(super) uid: Option<String>,
    resource_version: Option<String>,
    deletion_timestamp: Option<String>,
    deletion_grace_period_seconds: Option<i64>,
    #[serde(default)]
    finalizers: Vec<serde::de::IgnoredAny>,
}

impl Metadata {
    pub(super) fn key(&self) -> Option<ObjectKey> {
        Some(ObjectKey::new(self.namespace.as_deref(), self.name.as_deref()?))
    }

    /// Returns the resource version. Only numeric resource versions can be compared.
    pub(super) fn revision(&self) -> Option<u64> {
        self.resource_version.as_deref()?.parse().ok()
    }

    pub(super) fn is_terminating(&self) -> bool {
        self.deletion_timestamp.is_some()
    }
}

/// The spec of a Namespace. The finalizers in the spec delay the end of the namespace.
#[derive(Default, Deserialize)]
struct Spec {
    #[serde(default)]
    finalizers: serde_json::Value,
}

#[derive(Deserialize)]
struct Details {
    uid: Option<String>,
}

impl Answer {
    pub(super) fn parse(body: &[u8]) -> Option<Self> {
        serde_json::from_slice(body).ok()
    }

    /// Returns the uid of an object that a DELETE removed at once. The server answers such a DELETE with a
    /// `Status`.
    pub(super) fn deleted_uid(&self) -> Option<&str> {
        if self.kind != "Status" {
            return None;
        }
        self.details.as_ref()?.uid.as_deref()
    }

    /// Returns whether the write ended the object: an immediate deletion, or the removal of the last
    /// finalizer.
    pub(super) fn is_gone(&self, delete: bool) -> bool {
        let Metadata { finalizers, deletion_timestamp, deletion_grace_period_seconds, .. } = &self.metadata;
        let held_by_spec = self.spec.finalizers.as_array().is_some_and(|finalizers| !finalizers.is_empty());
        let held = !finalizers.is_empty() || held_by_spec || deletion_grace_period_seconds.unwrap_or(0) > 0;
        !held && (delete || deletion_timestamp.is_some())
    }
}
