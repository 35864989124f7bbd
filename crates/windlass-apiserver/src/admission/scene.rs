//! The values of the variables in expressions: the request, its namespace, and the rights of its user.

use std::sync::Arc;
use std::time::{Duration, Instant};

use serde_json::{Map, Value, json};
use windlass_cel::admission::Input;
use windlass_cel::{AccessRequest, Authorize, Check, Decision};

use super::attributes::{Attributes, kind_of, resource_of};
use super::{Objects, Surroundings, request};
use crate::auth::{self, Authorizer, Identity};
use crate::resource::Resource;
use crate::store::Store;
use crate::wire::ApiError;
use windlass_kinds::resources::NAMESPACES;

/// The time that the expressions of a request may take together.
const MAX_TIME: Duration = Duration::from_secs(10);

/// The end of the time for the expressions of a request.
#[derive(Clone, Copy)]
pub(super) struct Deadline(Instant);

impl Deadline {
    /// Returns the deadline of a request that begins now.
    pub(super) fn start() -> Self {
        Self(Instant::now() + MAX_TIME)
    }

    pub(super) fn is_over(self) -> bool {
        Instant::now() >= self.0
    }
}

static NOTHING: Value = Value::Null;

/// The fields of a namespace's metadata that expressions see.
const NAMESPACE_FIELDS: [&str; 12] = [
    "name",
    "generateName",
    "namespace",
    "uid",
    "resourceVersion",
    "generation",
    "creationTimestamp",
    "deletionTimestamp",
    "deletionGracePeriodSeconds",
    "labels",
    "annotations",
    "finalizers",
];

/// The values of variables, besides the objects and the parameters.
pub(super) struct Scene {
    request: Value,
    /// The request in match conditions. `None` if the request is the same.
    request_of_conditions: Option<Value>,
    namespace: Value,
    authorizer: Arc<dyn Authorize>,
    /// The object of the request, as a question to the authorizer.
    access: AccessRequest,
}

impl Scene {
    /// Returns the scene of match conditions of a webhook. `shown` is the version of the objects.
    pub(super) fn of_conditions(
        request: &Attributes<'_>,
        shown: &Resource,
        around: Surroundings<'_>,
    ) -> Self {
        let kind = kind_of(shown, request.subresource);
        Self {
            request: request::fields(request, kind, request.group_version_resource()).into(),
            request_of_conditions: None,
            namespace: Value::Null,
            authorizer: Arc::new(Rights::of(request, around)),
            access: access(request),
        }
    }

    /// Returns the scene of a policy. `shown` is the version of the objects.
    ///
    /// # Errors
    /// 404 if the namespace of the request does not exist.
    pub(super) fn of_policy(
        request: &Attributes<'_>,
        shown: &Resource,
        around: Surroundings<'_>,
    ) -> Result<Self, ApiError> {
        let of_conditions = Self::of_conditions(request, shown, around);
        let namespace = namespace(request, around)?;
        if resource_of(shown) == request.group_version_resource() {
            return Ok(Self { namespace, ..of_conditions });
        }
        let kind = kind_of(shown, request.subresource);
        Ok(Self {
            request: request::fields(request, kind, resource_of(shown)).into(),
            request_of_conditions: Some(of_conditions.request),
            namespace,
            authorizer: of_conditions.authorizer,
            access: of_conditions.access,
        })
    }

    /// Returns the variables of match conditions.
    pub(super) fn conditions<'a>(&'a self, objects: Objects<'a>, params: &'a Value) -> Input<'a> {
        let request = self.request_of_conditions.as_ref().unwrap_or(&self.request);
        Input { request, namespace: &NOTHING, ..self.input(objects, params) }
    }

    /// Returns the variables of all other expressions.
    pub(super) fn input<'a>(&'a self, objects: Objects<'a>, params: &'a Value) -> Input<'a> {
        let authorizer = Check::new(Arc::clone(&self.authorizer)).into_value();
        let resource = Check::of_resource(Arc::clone(&self.authorizer), self.access.clone()).into_value();
        Input {
            object: objects.new.unwrap_or(&NOTHING),
            old_object: objects.old.unwrap_or(&NOTHING),
            namespace: &self.namespace,
            request: &self.request,
            params,
            authorizer: Some((authorizer, resource)),
        }
    }
}

/// Returns the namespace of a request as expressions see the namespace; null for cluster-scoped objects and namespaces.
fn namespace(request: &Attributes<'_>, around: Surroundings<'_>) -> Result<Value, ApiError> {
    let is_namespace = request.resource.storage == *NAMESPACES && request.is_of_resource();
    if is_namespace || request.namespace.is_empty() {
        return Ok(Value::Null);
    }
    let Some(stored) = around.view.get(&NAMESPACES, request.namespace) else {
        return Err(ApiError::not_found(&NAMESPACES.group_resource(), request.namespace));
    };
    let object = stored.value();
    let fields = object["metadata"].as_object().into_iter().flatten();
    let fields = fields.filter(|(name, _)| NAMESPACE_FIELDS.contains(&name.as_str()));
    let metadata: Map<String, Value> = fields.map(|(name, value)| (name.clone(), value.clone())).collect();
    let part = |name: &str| object.get(name).cloned().unwrap_or_else(|| json!({}));
    Ok(json!({"metadata": metadata, "spec": part("spec"), "status": part("status")}))
}

/// Returns the object of a request as a question to the authorizer.
fn access(request: &Attributes<'_>) -> AccessRequest {
    AccessRequest {
        group: request.resource.group.clone(),
        resource: request.resource.plural.clone(),
        subresource: request.subresource.to_owned(),
        namespace: request.namespace.to_owned(),
        name: request.name.to_owned(),
        ..AccessRequest::default()
    }
}

/// The rights of a user, for expressions.
struct Rights {
    authorizer: Arc<Authorizer>,
    store: Arc<Store>,
    user: Identity,
}

impl Rights {
    fn of(request: &Attributes<'_>, around: Surroundings<'_>) -> Self {
        Self {
            authorizer: Arc::clone(around.authorizer),
            store: Arc::clone(around.store),
            user: request.user.clone(),
        }
    }
}

impl Authorize for Rights {
    fn authorize(&self, request: &AccessRequest) -> Decision {
        let account = request.service_account.as_ref();
        let account = account.map(|(namespace, name)| Identity::service_account(namespace, name));
        let attributes = auth::Attributes {
            verb: &request.verb,
            group: &request.group,
            resource: &request.resource,
            subresource: &request.subresource,
            namespace: &request.namespace,
            name: &request.name,
            path: request.path.as_deref(),
        };
        let user = account.as_ref().unwrap_or(&self.user);
        let decision = self.authorizer.decide(&self.store, user, &attributes);
        Decision { allowed: decision.allowed, reason: decision.reason, error: None }
    }
}
