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

use crate::{
    decode::{OLD, decode},
    denial::BoxError,
};

/// The request that a [`Defaulter`](crate::Defaulter) or [`Validator`](crate::Validator) decides about. Cheap to clone.
#[derive(Clone)]
pub struct AdmissionContext(Arc<Inner>);

struct Inner {
    request: AdmissionRequest<DynamicObject>,
    old: Value,
    extensions: Arc<Extensions>,
    notes: Mutex<Notes>,
}

/// The parts of a response beside the decision.
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

    /// Returns the request: kind, resource, subresource, options and so on. `object` and `old_object` are
    /// `None`, because handlers get typed objects.
    pub fn request(&self) -> &AdmissionRequest<DynamicObject> {
        &self.0.request
    }

    /// Returns the operation: create, update, delete or connect.
    pub fn operation(&self) -> &Operation {
        &self.0.request.operation
    }

    /// Returns the name of the object. The name is empty for the creation of an object with `generateName`,
    /// until the server has generated the name.
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

    /// Returns whether the request is a dry run. A dry run must have no side effects.
    pub fn is_dry_run(&self) -> bool {
        self.0.request.dry_run
    }

    /// Returns the subresource, such as `status`, or `None` for the object itself.
    pub fn subresource(&self) -> Option<&str> {
        self.0.request.sub_resource.as_deref().filter(|name| !name.is_empty())
    }

    /// Decodes the object before an update or a deletion. Returns `None` for other operations.
    pub fn old<K: DeserializeOwned>(&self) -> Result<Option<K>, BoxError> {
        match &self.0.old {
            Value::Null => Ok(None),
            old => Ok(Some(decode(OLD, old)?)),
        }
    }

    /// Adds a warning to the response. kubectl prints the warning to the user, even if the request is denied.
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
