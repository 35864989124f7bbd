//! The context of an admission request.

use std::{collections::BTreeMap, sync::Arc};

use http::Extensions;
use k8s_openapi::api::authentication::v1::UserInfo;
use kube_core::{
    DynamicObject,
    admission::{AdmissionRequest, Operation},
};
use parking_lot::Mutex;
use serde::de::DeserializeOwned;
use serde_json::Value;

use crate::denial::BoxError;

/// The request that a [`Defaulter`](crate::Defaulter) or [`Validator`](crate::Validator) decides about. Cheap to clone.
#[derive(Clone)]
pub struct AdmissionContext(Arc<Inner>);

struct Inner {
    request: AdmissionRequest<DynamicObject>,
    old: Value,
    extensions: Arc<Extensions>,
    notes: Mutex<Notes>,
}

/// What the response says beside the decision.
#[derive(Default)]
pub(crate) struct Notes {
    pub(crate) warnings: Vec<String>,
    pub(crate) audit_annotations: BTreeMap<String, String>,
}

impl AdmissionContext {
    pub(crate) fn new(
        request: AdmissionRequest<DynamicObject>,
        old: Value,
        extensions: Arc<Extensions>,
    ) -> Self {
        Self(Arc::new(Inner { request, old, extensions, notes: Mutex::default() }))
    }

    /// Returns the values of [`Webhooks::extension`](crate::Webhooks::extension). The runtime adds the client and the caches.
    pub fn extensions(&self) -> &Extensions {
        &self.0.extensions
    }

    /// Returns the request: kind, resource, subresource, options and so on. Its `object` and `old_object` are `None`: they are
    /// passed as typed objects.
    pub fn request(&self) -> &AdmissionRequest<DynamicObject> {
        &self.0.request
    }

    /// Returns the operation: create, update, delete or connect.
    pub fn operation(&self) -> &Operation {
        &self.0.request.operation
    }

    /// Returns the name of the object. It is empty while the server has not generated it yet, when an object with
    /// `generateName` is created.
    pub fn name(&self) -> &str {
        &self.0.request.name
    }

    /// Returns the namespace of the object, or `None` for a cluster-scoped object.
    pub fn namespace(&self) -> Option<&str> {
        self.0.request.namespace.as_deref()
    }

    /// Returns the user who sent the request to the API server.
    pub fn user(&self) -> &UserInfo {
        &self.0.request.user_info
    }

    /// Returns whether the request is a dry run: it must have no side effects.
    pub fn is_dry_run(&self) -> bool {
        self.0.request.dry_run
    }

    /// Returns the subresource, such as `status`, or `None` for the object itself.
    pub fn subresource(&self) -> Option<&str> {
        self.0.request.sub_resource.as_deref().filter(|name| !name.is_empty())
    }

    /// Decodes the object as it is before an update or a deletion. Returns `None` for other operations.
    pub fn old<K: DeserializeOwned>(&self) -> Result<Option<K>, BoxError> {
        match &self.0.old {
            Value::Null => Ok(None),
            old => Ok(Some(K::deserialize(old)?)),
        }
    }

    /// Adds a warning to the response, which kubectl prints to the user whether the request is allowed or denied.
    ///
    /// The API server cuts a warning at 256 characters, and all warnings of a request at 4096.
    pub fn warn(&self, warning: impl Into<String>) {
        self.0.notes.lock().warnings.push(warning.into());
    }

    /// Adds an annotation to the audit event of the request. The API server puts the webhook's name before the key.
    pub fn annotate_audit(&self, key: impl Into<String>, value: impl Into<String>) {
        self.0.notes.lock().audit_annotations.insert(key.into(), value.into());
    }

    pub(crate) fn take_notes(&self) -> Notes {
        std::mem::take(&mut self.0.notes.lock())
    }
}

impl std::fmt::Debug for AdmissionContext {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("AdmissionContext")
            .field("uid", &self.0.request.uid)
            .field("operation", &self.0.request.operation)
            .finish_non_exhaustive()
    }
}
