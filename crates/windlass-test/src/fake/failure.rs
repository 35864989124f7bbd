//! Requests that the fake API server refuses on demand.

use kube_core::{ApiResource, Resource, response::Status};

use super::{
    request::ApiRequest,
    status::{self, failure_of},
    write::Verb,
};
use windlass_runtime::{Object, detached::GroupResource};

/// A failure, and the failing requests: all writes, unless narrowed by verb, kind, name or subresource.
///
/// ```
/// use k8s_openapi::api::core::v1::Pod;
/// use windlass_test::fake::Failure;
///
/// let create = Failure::already_exists().on_create::<Pod>();
/// let status = Failure::conflict().on_patch::<Pod>().named("a").subresource("status");
/// # let _ = (create, status);
/// ```
#[derive(Clone, Debug)]
#[must_use]
pub struct Failure {
    answer: Answer,
    verb: Option<Verb>,
    resource: Option<GroupResource>,
    name: Option<String>,
    subresource: Option<String>,
}

#[derive(Clone, Debug)]
enum Answer {
    NotFound,
    AlreadyExists,
    Conflict,
    Forbidden,
    Other { code: u16, reason: String, message: String },
}

impl Failure {
    fn new(answer: Answer) -> Self {
        Self { answer, verb: None, resource: None, name: None, subresource: None }
    }

    /// Returns 404: the object does not exist.
    pub fn not_found() -> Self {
        Self::new(Answer::NotFound)
    }

    /// Returns 409: an object of this name exists already.
    pub fn already_exists() -> Self {
        Self::new(Answer::AlreadyExists)
    }

    /// Returns 409: the object has changed since the read.
    pub fn conflict() -> Self {
        Self::new(Answer::Conflict)
    }

    /// Returns 403: RBAC or admission does not allow the request.
    pub fn forbidden() -> Self {
        Self::new(Answer::Forbidden)
    }

    /// Returns 422: the object breaks a rule. The fake does not validate objects.
    pub fn invalid(message: impl Into<String>) -> Self {
        Self::status(422, "Invalid", message)
    }

    /// Returns 429: the server asks to slow down.
    pub fn too_many_requests() -> Self {
        Self::status(429, "TooManyRequests", "too many requests, please try again later")
    }

    /// Returns 500: an internal error of the server.
    pub fn server_error() -> Self {
        Self::status(500, "InternalError", "Internal error occurred: injected by the test")
    }

    /// Returns 504: the server did not complete the request in time.
    pub fn timeout() -> Self {
        Self::status(504, "Timeout", "Timeout: request did not complete within the allotted timeout")
    }

    /// Returns a failure with any status.
    pub fn status(code: u16, reason: impl Into<String>, message: impl Into<String>) -> Self {
        Self::new(Answer::Other { code, reason: reason.into(), message: message.into() })
    }

    /// Fails only requests with this verb.
    pub fn on(mut self, verb: Verb) -> Self {
        self.verb = Some(verb);
        self
    }

    /// Fails only requests for kind `K`.
    pub fn on_kind<K: Object + Resource<DynamicType = ()>>(self) -> Self {
        self.on_resource(&ApiResource::erase::<K>(&()))
    }

    /// Works like [`on_kind`](Self::on_kind), for a kind that is known only at run time.
    pub fn on_resource(mut self, resource: &ApiResource) -> Self {
        self.resource = Some(GroupResource::of(resource));
        self
    }

    /// Fails only creations of objects of kind `K`.
    pub fn on_create<K: Object + Resource<DynamicType = ()>>(self) -> Self {
        self.on(Verb::Create).on_kind::<K>()
    }

    /// Fails only updates (PUT) of objects of kind `K`.
    pub fn on_update<K: Object + Resource<DynamicType = ()>>(self) -> Self {
        self.on(Verb::Update).on_kind::<K>()
    }

    /// Fails only patches of objects of kind `K`, which include [`update_status`](windlass_runtime::Context::update_status).
    pub fn on_patch<K: Object + Resource<DynamicType = ()>>(self) -> Self {
        self.on(Verb::Patch).on_kind::<K>()
    }

    /// Fails only server-side apply of objects of kind `K`.
    pub fn on_apply<K: Object + Resource<DynamicType = ()>>(self) -> Self {
        self.on(Verb::Apply).on_kind::<K>()
    }

    /// Fails only deletions of objects of kind `K`.
    pub fn on_delete<K: Object + Resource<DynamicType = ()>>(self) -> Self {
        self.on(Verb::Delete).on_kind::<K>()
    }

    /// Fails only requests for objects of this name. An object with a generated name has no name yet.
    pub fn named(mut self, name: impl Into<String>) -> Self {
        self.name = Some(name.into());
        self
    }

    /// Fails only requests for this subresource, such as `status`.
    pub fn subresource(mut self, subresource: impl Into<String>) -> Self {
        self.subresource = Some(subresource.into());
        self
    }

    pub(super) fn matches(&self, request: &ApiRequest) -> bool {
        let verb = self.verb.map_or_else(|| request.verb.is_write(), |verb| verb == request.verb);
        verb && self.resource.as_ref().is_none_or(|resource| *resource == request.resource)
            && self.name.as_ref().is_none_or(|name| request.object_name() == Some(name))
            && self.subresource.as_ref().is_none_or(|wanted| request.subresource.as_ref() == Some(wanted))
    }

    /// Returns the answer to a request that fails.
    pub(super) fn answer(&self, request: &ApiRequest) -> Box<Status> {
        let (resource, name) = (&request.resource, request.object_name().unwrap_or_default());
        match &self.answer {
            Answer::NotFound => status::not_found(resource, name),
            Answer::AlreadyExists => status::already_exists(resource, name),
            Answer::Conflict => status::modified(resource, name),
            Answer::Forbidden => status::forbidden(resource, name, "injected by the test"),
            Answer::Other { code, reason, message } => failure_of(*code, reason, message, resource, name),
        }
    }
}
