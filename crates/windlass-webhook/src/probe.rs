//! Requests for unit tests of webhooks, without a server.

use std::{marker::PhantomData, sync::Arc};

use base64::{Engine as _, engine::general_purpose::STANDARD};
use http::Extensions;
use kube_core::{Resource, admission::Operation, response::Status};
use serde::{Serialize, de::DeserializeOwned};
use serde_json::{Value, json};

use crate::{
    AdmissionDenial,
    admission::review,
    call::Deadline,
    declaration::{AdmissionDeclaration, AdmissionKind, AdmissionWebhook, Rule},
    decode::{NEW, decode},
    metrics::WebhookMetrics,
    webhooks::Webhooks,
};

/// A request to create, update or delete an object, in the API server's form. See [`Webhooks::admit`].
#[derive(Clone, Debug)]
pub struct Admission<K> {
    operation: Operation,
    object: Value,
    old: Value,
    subresource: String,
    user: Value,
    dry_run: bool,
    kind: PhantomData<fn() -> K>,
}

impl<K: Resource<DynamicType = ()> + Serialize> Admission<K> {
    /// Creates an object.
    pub fn create(object: &K) -> Self {
        Self::new(Operation::Create, json(object), Value::Null)
    }

    /// Updates an object.
    pub fn update(old: &K, new: &K) -> Self {
        Self::new(Operation::Update, json(new), json(old))
    }

    /// Deletes an object.
    pub fn delete(old: &K) -> Self {
        Self::new(Operation::Delete, Value::Null, json(old))
    }

    fn new(operation: Operation, object: Value, old: Value) -> Self {
        let (user, subresource) = (json!({"username": "test"}), String::new());
        Self { operation, object, old, subresource, user, dry_run: false, kind: PhantomData }
    }

    /// Sets a field of the new object by a JSON pointer, for example a field that `K` does not have. Parents
    /// must exist.
    pub fn with_field(mut self, pointer: &str, value: Value) -> Self {
        let (parent, field) = pointer.rsplit_once('/').unwrap_or(("", pointer));
        if let Some(parent) = self.object.pointer_mut(parent).and_then(Value::as_object_mut) {
            parent.insert(field.to_owned(), value);
        }
        self
    }

    /// Sets the user and the user's groups. Default: `test`, in no group.
    pub fn user(mut self, name: &str, groups: &[&str]) -> Self {
        self.user = json!({"username": name, "groups": groups});
        self
    }

    /// Makes the request a dry run.
    pub fn dry_run(mut self) -> Self {
        self.dry_run = true;
        self
    }

    /// Requests a subresource, such as `status`.
    pub fn subresource(mut self, name: impl Into<String>) -> Self {
        self.subresource = name.into();
        self
    }

    fn selected_by(&self, rule: &Rule) -> bool {
        let has = |list: &[String], wanted: &str| list.iter().any(|one| one == "*" || one == wanted);
        let plural = K::plural(&());
        let resource = match &*self.subresource {
            "" => plural.into_owned(),
            name => format!("{plural}/{name}"),
        };
        has(&rule.groups, &K::group(&()))
            && has(&rule.versions, &K::version(&()))
            && (has(&rule.resources, &resource) || rule.resources.iter().any(|one| one == "*/*"))
            && rule.operations.contains(&self.operation)
    }

    fn review(&self, object: &Value) -> Vec<u8> {
        let kind = json!({"group": K::group(&()), "version": K::version(&()), "kind": K::kind(&())});
        let resource =
            json!({"group": K::group(&()), "version": K::version(&()), "resource": K::plural(&())});
        let metadata = if object.is_null() { &self.old["metadata"] } else { &object["metadata"] };
        json!({
            "apiVersion": "admission.k8s.io/v1",
            "kind": "AdmissionReview",
            "request": {
                "uid": "00000000-0000-4000-8000-000000000000",
                "kind": kind, "requestKind": kind,
                "resource": resource, "requestResource": resource,
                "subResource": self.subresource,
                "name": metadata["name"].as_str().unwrap_or_default(),
                "namespace": metadata["namespace"].as_str(),
                "operation": self.operation,
                "userInfo": self.user,
                "object": object,
                "oldObject": self.old,
                "dryRun": self.dry_run,
            }
        })
        .to_string()
        .into_bytes()
    }
}

fn json(object: &impl Serialize) -> Value {
    serde_json::to_value(object).unwrap_or_default()
}

/// The decision of all webhooks about an [`Admission`].
#[derive(Clone, Debug)]
pub struct AdmissionResult<K> {
    allowed: bool,
    status: Status,
    object: Value,
    warnings: Vec<String>,
    kind: PhantomData<fn() -> K>,
}

impl<K: DeserializeOwned> AdmissionResult<K> {
    /// Returns whether the request is allowed.
    pub fn is_allowed(&self) -> bool {
        self.allowed
    }

    /// Returns the object after the changes of the defaulters.
    ///
    /// # Errors
    ///
    /// The denial.
    pub fn object(&self) -> Result<K, AdmissionDenial> {
        if !self.allowed {
            return Err(AdmissionDenial::from_status(self.status.clone()));
        }
        decode(NEW, &self.object).map_err(AdmissionDenial::new)
    }

    /// Returns the object as JSON, with fields that `K` does not have; `null` for a deletion.
    pub fn json(&self) -> &Value {
        &self.object
    }

    /// Returns the status of the denial, or of the last response if the request is allowed.
    pub fn status(&self) -> &Status {
        &self.status
    }

    /// Returns the warnings of all webhooks that were called.
    pub fn warnings(&self) -> &[String] {
        &self.warnings
    }
}

impl Webhooks {
    /// Passes a request through the webhooks in the API server's order: mutating webhooks first, in order of
    /// addition, then validating webhooks. Only webhooks whose rules select the request are called; selectors
    /// and match conditions are ignored.
    ///
    /// The request goes through the same bytes as over HTTPS: a panic is a denial.
    pub async fn admit<K>(&self, admission: Admission<K>) -> AdmissionResult<K>
    where
        K: Resource<DynamicType = ()> + Serialize,
    {
        let object = admission.object.clone();
        let mut admitted = AdmissionResult {
            allowed: true,
            status: Status::default(),
            object,
            warnings: Vec::new(),
            kind: PhantomData,
        };
        for kind in [AdmissionKind::Mutating, AdmissionKind::Validating] {
            let is_called = |webhook: &AdmissionDeclaration| {
                webhook.kind == kind && webhook.rules.iter().any(|rule| admission.selected_by(rule))
            };
            for webhook in self.of(is_called) {
                call(webhook, &admission, self.extensions(), &mut admitted).await;
                if !admitted.allowed {
                    return admitted;
                }
            }
        }
        admitted
    }
}

async fn call<K>(
    webhook: &AdmissionWebhook,
    admission: &Admission<K>,
    extensions: &Arc<Extensions>,
    admitted: &mut AdmissionResult<K>,
) where
    K: Resource<DynamicType = ()> + Serialize,
{
    let request = admission.review(&admitted.object).into();
    let (deadline, metrics) = (Deadline::from_query(None), WebhookMetrics::default());
    let reply = review(&webhook.admit, request, extensions, deadline, &metrics).await;
    let mut reply: Value = serde_json::from_slice(&reply).unwrap_or_default();
    let response = &mut reply["response"];
    admitted.allowed = response["allowed"] == true;
    admitted.status = serde_json::from_value(response["status"].take()).unwrap_or_default();
    let warnings = response["warnings"].as_array().into_iter().flatten();
    admitted.warnings.extend(warnings.filter_map(|warning| warning.as_str().map(ToOwned::to_owned)));
    if let Some(patch) = response["patch"].as_str() {
        let patch = STANDARD.decode(patch).unwrap_or_default();
        let patched =
            serde_json::from_slice::<json_patch::Patch>(&patch).map_err(|error| error.to_string()).and_then(
                |patch| json_patch::patch(&mut admitted.object, &patch).map_err(|error| error.to_string()),
            );
        if let Err(error) = patched {
            admitted.allowed = false;
            admitted.status = Status::failure(&format!("the patch does not apply: {error}"), "InternalError");
        }
    }
}
