//! The fake API server: from a request to the response.

use std::sync::Arc;

use futures::future::BoxFuture;
use http::{Request, Response, StatusCode, header};
use http_body_util::BodyExt;
use kube_client::client::Body;
use kube_core::response::Status;
use parking_lot::Mutex;
use serde_json::Value;
use windlass_runtime::{BoxError, ObjectKey, permission::Access};

use super::{
    collection::{list_object, select},
    fault, metadata,
    operation::{Deletion, Operation, Part, is_custom},
    owners, patch,
    request::{ApiRequest, PatchFormat},
    scale,
    status::{self, StatusResult, bad_request, details, failure, status_object},
    storage::Storage,
    write::{Verb, Write},
};
use crate::{
    Fault,
    faults::{FaultRules, RequestFacts},
};
use windlass_runtime::env::Env;

/// An API server in memory.
pub(super) struct Server {
    pub(super) env: Env,
    pub(super) collects_garbage: bool,
    pub(super) state: Mutex<State>,
}

pub(super) struct State {
    pub(super) storage: Storage,
    pub(super) rules: FaultRules,
    pub(super) writes: Vec<Write>,
}

/// The answer to a request that succeeded.
struct Reply {
    code: StatusCode,
    body: Value,
    /// The key of the object that was written.
    key: ObjectKey,
}

impl Server {
    /// Returns the service under the client.
    pub(super) fn service(
        self: &Arc<Self>,
    ) -> impl tower::Service<
        Request<Body>,
        Response = Response<Body>,
        Error = BoxError,
        Future = BoxFuture<'static, Result<Response<Body>, BoxError>>,
    > + Send
    + use<> {
        let server = self.clone();
        tower::service_fn(move |request: Request<Body>| -> BoxFuture<'static, _> {
            let server = server.clone();
            Box::pin(async move { server.answer(request).await })
        })
    }

    async fn answer(&self, request: Request<Body>) -> Result<Response<Body>, BoxError> {
        let (parts, body) = request.into_parts();
        let request = match body.collect().await {
            Ok(body) => ApiRequest::parse(&parts, &body.to_bytes()),
            Err(error) => Err(bad_request(format!("the body of the request broke off: {error}"))),
        };
        let answer = match request {
            Ok(request) => self.handle(&request, Access::of(&parts.method, &parts.uri))?,
            Err(status) => Err(status),
        };
        let (code, body) = match answer {
            Ok(reply) => (reply.code, reply.body),
            Err(status) => {
                let code = StatusCode::from_u16(status.code).unwrap_or(StatusCode::INTERNAL_SERVER_ERROR);
                (code, status_object(&status))
            }
        };
        let mut response = Response::new(Body::from(body.to_string().into_bytes()));
        *response.status_mut() = code;
        response
            .headers_mut()
            .insert(header::CONTENT_TYPE, header::HeaderValue::from_static("application/json"));
        Ok(response)
    }

    /// Carries a request out, unless a fault strikes the request.
    ///
    /// # Errors
    /// The connection breaks.
    fn handle(&self, request: &ApiRequest, access: Option<Access>) -> Result<StatusResult<Reply>, BoxError> {
        let mut state = self.state.lock();
        learn_kind(&mut state.storage, request);
        let Some(fault) = access.and_then(|access| state.strike(&access, request)) else {
            return Ok(self.carry_out(&mut state, request));
        };
        if fault.is_committed() {
            drop(self.carry_out(&mut state, request));
        }
        drop(state);
        fault::answer(&fault, request).map(Err)
    }

    fn carry_out(&self, state: &mut State, request: &ApiRequest) -> StatusResult<Reply> {
        let reply = match request.verb {
            Verb::Get => get(&state.storage, request),
            Verb::List => list(&state.storage, request),
            Verb::Create => self.create(&mut state.storage, request),
            Verb::Update => self.update(&mut state.storage, request),
            Verb::Patch | Verb::Apply => self.patch(&mut state.storage, request),
            Verb::Delete => self.delete(&mut state.storage, &request.key(), request),
            Verb::DeleteCollection => self.delete_collection(&mut state.storage, request),
        }?;
        if request.verb.is_write() && !request.dry_run {
            state.writes.push(Write {
                verb: request.verb,
                resource: state.storage.kind_of(&request.resource),
                key: reply.key.clone(),
                subresource: request.subresource.clone(),
                field_manager: request.parameter("fieldManager").map(str::to_owned),
                body: request.body.clone(),
            });
        }
        Ok(reply)
    }

    fn operation<'a>(&'a self, storage: &'a mut Storage, request: &'a ApiRequest) -> Operation<'a> {
        Operation {
            manager: &request.manager,
            storage,
            env: &self.env,
            resource: &request.resource,
            dry_run: request.dry_run,
            collects_garbage: self.collects_garbage,
        }
    }

    fn create(&self, storage: &mut Storage, request: &ApiRequest) -> StatusResult<Reply> {
        if request.subresource.is_some() {
            return Err(not_served(request));
        }
        let object = self.operation(storage, request).create(request.namespace.as_deref(), &request.body)?;
        Ok(Reply::of(StatusCode::CREATED, object))
    }

    fn update(&self, storage: &mut Storage, request: &ApiRequest) -> StatusResult<Reply> {
        self.replace(storage, request, &request.body)
    }

    /// Writes the new state of the object or subresource that the request names.
    fn replace(&self, storage: &mut Storage, request: &ApiRequest, new: &Value) -> StatusResult<Reply> {
        let (key, part) = (request.key(), part_of(request)?);
        if request.subresource.as_deref() == Some("scale") {
            let scaled = scale::applied(current(storage, request)?, new);
            let object = self.operation(storage, request).replace(&key, part, &scaled)?;
            return Ok(Reply { code: StatusCode::OK, body: scale::of(&object), key });
        }
        let object = self.operation(storage, request).replace(&key, part, new)?;
        Ok(Reply::of(StatusCode::OK, object))
    }

    fn patch(&self, storage: &mut Storage, request: &ApiRequest) -> StatusResult<Reply> {
        let Some(format) = request.patch else { return Err(not_served(request)) };
        if format == PatchFormat::Strategic && is_custom(&request.resource) {
            return Err(status::unsupported_media_type("application/strategic-merge-patch+json"));
        }
        if format == PatchFormat::Apply
            && request.subresource.is_none()
            && storage.get(&request.resource, &request.key()).is_none()
        {
            return self.apply_new(storage, request);
        }
        let live = current(storage, request)?.clone();
        let mut object =
            if request.subresource.as_deref() == Some("scale") { scale::of(&live) } else { live.clone() };
        if format != PatchFormat::Apply {
            patch::patch(&mut object, format, &request.body)?;
            return self.replace(storage, request, &object);
        }
        let uid = metadata::text(&live, "uid").to_owned();
        let mut owners = storage.owners(&uid);
        let dropped = owners.apply(&request.manager, &request.body, &live, request.is_forced())?;
        dropped.iter().for_each(|path| owners::remove(&mut object, path));
        patch::patch(&mut object, format, &request.body)?;
        let reply = self.replace(storage, request, &object)?;
        if !request.dry_run {
            storage.set_owners(&uid, owners);
        }
        Ok(reply)
    }

    /// Creates the object that is applied.
    fn apply_new(&self, storage: &mut Storage, request: &ApiRequest) -> StatusResult<Reply> {
        let mut object = Value::Null;
        patch::patch(&mut object, PatchFormat::Apply, &request.body)?;
        let wanted = metadata::text(&object, "uid");
        if !wanted.is_empty() {
            let why = format!(
                "uid mismatch: the provided object specified uid {wanted}, and no existing object was found"
            );
            let name = request.name.as_deref().unwrap_or_default();
            return Err(status::conflict(&request.resource, name, &why));
        }
        metadata::set(&mut object, "name", request.name.clone())?;
        metadata::set(&mut object, "resourceVersion", Value::Null)?;
        let object = self.operation(storage, request).create(request.namespace.as_deref(), &object)?;
        Ok(Reply::of(StatusCode::CREATED, object))
    }

    fn delete(&self, storage: &mut Storage, key: &ObjectKey, request: &ApiRequest) -> StatusResult<Reply> {
        if request.subresource.is_some() {
            return Err(not_served(request));
        }
        let body = match self.operation(storage, request).delete(key, &request.body)? {
            Deletion::Held(object) => object,
            Deletion::Gone(last) => {
                let details = details(&request.resource, key.name(), metadata::text(&last, "uid"));
                status_object(&Status::success().with_details(details))
            }
        };
        Ok(Reply { code: StatusCode::OK, body, key: key.clone() })
    }

    fn delete_collection(&self, storage: &mut Storage, request: &ApiRequest) -> StatusResult<Reply> {
        let selected = select(storage, request)?;
        for object in &selected {
            // A dependent of another object of the collection may be gone already.
            let _ = self.operation(storage, request).delete(&metadata::key_of(object), &request.body);
        }
        let body = list_object(&storage.kind_of(&request.resource), storage.revision(), selected);
        Ok(Reply { code: StatusCode::OK, body, key: request.key() })
    }
}

impl State {
    /// Returns the fault that strikes a request.
    fn strike(&mut self, access: &Access, request: &ApiRequest) -> Option<Fault> {
        self.rules.strike(access, request.object_name(), RequestFacts::default())
    }
}

impl Reply {
    fn of(code: StatusCode, object: Value) -> Self {
        Self { code, key: metadata::key_of(&object), body: object }
    }
}

fn get(storage: &Storage, request: &ApiRequest) -> StatusResult<Reply> {
    let object = current(storage, request)?;
    let body = match request.subresource.as_deref() {
        None | Some("status") => object.clone(),
        Some("scale") => scale::of(object),
        Some(_) => return Err(not_served(request)),
    };
    Ok(Reply { code: StatusCode::OK, body, key: request.key() })
}

fn list(storage: &Storage, request: &ApiRequest) -> StatusResult<Reply> {
    let body =
        list_object(&storage.kind_of(&request.resource), storage.revision(), select(storage, request)?);
    Ok(Reply { code: StatusCode::OK, body, key: request.key() })
}

fn current<'a>(storage: &'a Storage, request: &ApiRequest) -> StatusResult<&'a Value> {
    let object = storage.get(&request.resource, &request.key());
    object.ok_or_else(|| status::not_found(&request.resource, request.name.as_deref().unwrap_or_default()))
}

fn part_of(request: &ApiRequest) -> StatusResult<Part> {
    match request.subresource.as_deref() {
        None | Some("scale") => Ok(Part::Main),
        Some("status") => Ok(Part::Status),
        Some("finalize") => Ok(Part::Finalize),
        Some(_) => Err(not_served(request)),
    }
}

fn not_served(request: &ApiRequest) -> Box<Status> {
    let (resource, subresource) = (&request.resource, request.subresource.as_deref().unwrap_or_default());
    failure(
        404,
        "NotFound",
        format!("the fake API server does not serve the subresource {subresource:?} of {resource}"),
    )
}

/// Registers the kind of the object that a request writes.
fn learn_kind(storage: &mut Storage, request: &ApiRequest) {
    let (Some(api_version), Some(kind)) =
        (request.body["apiVersion"].as_str(), request.body["kind"].as_str())
    else {
        return;
    };
    let names_object = matches!(request.verb, Verb::Create | Verb::Update | Verb::Apply);
    if !names_object || request.subresource.is_some() {
        return;
    }
    let mut resource = storage.resource_of(api_version, kind);
    if resource.group == request.resource.group {
        resource.plural.clone_from(&request.resource.resource);
        storage.learn(&resource);
    }
}
