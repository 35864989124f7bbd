//! A server, and the handler chain of all requests.

mod documents;
mod labels;
mod recognised;
mod work;

use std::collections::BTreeMap;
use std::panic::AssertUnwindSafe;
use std::sync::Arc;
use std::time::{Duration, Instant};

use bytes::Bytes;
use futures::FutureExt;
use futures::future::BoxFuture;
use http::{HeaderMap, HeaderValue, Method, Request, Response, header, request};
use jiff::Timestamp;
use parking_lot::Mutex;
use tokio_util::task::AbortOnDropHandle;
use windlass_kinds::Subresource;

use self::labels::{is_counted, labels, labels_of, scope, shown_verb};
use self::recognised::Recognised;
use self::work::Work;
use crate::aggregate::{Aggregator, Remote};
use crate::auth::{AuthenticationResult, Identity};
use crate::body::{Body, unread_nothing};
use crate::discovery::Health;
use crate::flow_control::Seat;
use crate::intercept::RequestInterceptor;
use crate::metrics::{Labels, Metrics};
use crate::openapi::Documents;
use crate::registry::Call;
use crate::resource::Resource;
use crate::route::{Query, Route, percent_decode};
use crate::serve::{AUDIT_ID, BodyMemory, Handle, RequestBody, Reservation};
use crate::state::State;
use crate::upgrade::Upgrade;
use crate::verb::Verb;
use crate::wire::ApiError;
use crate::work_memory::WorkMemory;
use crate::{housekeeping, registry, respond};

/// One server.
pub(crate) struct Api {
    pub(crate) state: Arc<State>,
    /// OpenAPI documents that were asked for lately.
    pub(crate) documents: Documents,
    /// The extension servers behind this server.
    pub(crate) aggregator: Arc<Aggregator>,
    /// The certificate of the authority that names the server to extension servers, PEM; `None` before the first listener.
    pub(crate) front_proxy: Mutex<Option<String>>,
    /// Sees requests before the server does.
    pub(crate) intercept: Option<Arc<dyn RequestInterceptor>>,
    /// The checks of the server's health.
    pub(crate) health: Health,
    /// The flags that `/flagz` shows.
    pub(crate) flags: BTreeMap<String, String>,
    /// The start of the server.
    pub(crate) started: Timestamp,
    /// How long a request may take.
    pub(crate) request_timeout: Duration,
    pub(crate) metrics: Arc<Metrics>,
    /// Limits the memory of bodies.
    pub(crate) body_memory: Arc<BodyMemory>,
    /// Limits the memory of the objects in large bodies.
    pub(crate) work_memory: WorkMemory,
}

impl Handle for Api {
    fn handle(
        self: Arc<Self>,
        request: Request<RequestBody>,
        identity: Identity,
    ) -> BoxFuture<'static, Response<Body>> {
        Box::pin(async move {
            let audit_id = self.audit_id(request.headers());
            let (head, body) = request.into_parts();
            if Route::is_unclear(&percent_decode(head.uri.path(), false)) {
                let mut response = finish(respond::unclear_path(&head.uri), &head.method, audit_id);
                // The real server fails before the header is set.
                response.headers_mut().remove(header::CACHE_CONTROL);
                return response;
            }
            let recognised = async { Recognised::new(&head, &identity, &self.state, self.request_timeout) };
            let recognised = match or_internal(&head.uri, recognised).await {
                Ok(recognised) => recognised,
                Err(error) => {
                    let response = respond::error(&error, &head.headers, head.uri.query());
                    return finish(response, &head.method, audit_id);
                }
            };
            let Some(flow) = recognised.flow(&self.state) else {
                return self.answer(head, body, recognised, None, audit_id).await;
            };
            let limit = recognised.deadline.of_wait(self.request_timeout);
            let mut response = match flow.enter(limit).await {
                Ok(seat) => self.answer(head, body, recognised, Some(seat), audit_id).await,
                Err(_refused) => {
                    self.refused(&recognised, &head.method);
                    finish(respond::too_many_requests(), &head.method, audit_id)
                }
            };
            flow.label(response.headers_mut());
            response
        })
    }

    fn authenticated(&self, result: &AuthenticationResult<'_>, took: Duration) {
        self.metrics.authenticated(result, took);
    }

    fn now(&self) -> Timestamp {
        self.state.env.now()
    }

    fn audit_id(&self, headers: &HeaderMap) -> Option<HeaderValue> {
        let given = headers.get(AUDIT_ID).filter(|id| !id.is_empty()).cloned();
        let mut id = given.or_else(|| HeaderValue::try_from(self.state.env.uid()).ok())?;
        // No value occurs twice: outside of HTTP/2's table, the value does not evict values that repeat.
        id.set_sensitive(true);
        Some(id)
    }

    fn identity_of(&self, token: &str) -> Option<Identity> {
        self.state.identity_of(token)
    }
}

/// A request that may run.
struct Accepted {
    route: Option<Route>,
    query: Query,
    /// True for a request for objects with a single name.
    is_for_one: bool,
    /// The body of a request that is passed on: the body is not received here.
    unread: Option<RequestBody>,
    /// The right to run, until the end of the request or the start of a watch.
    seat: Option<Seat>,
    /// The share of the received body in the limit of all bodies.
    reserved: Option<Reservation>,
    /// The extension server that answers the request.
    remote: Option<Arc<Remote>>,
    since: Instant,
}

impl Api {
    /// Answers a request that has a seat or needs no seat.
    async fn answer(
        self: &Arc<Self>,
        head: request::Parts,
        body: RequestBody,
        recognised: Recognised,
        seat: Option<Seat>,
        audit_id: Option<HeaderValue>,
    ) -> Response<Body> {
        let (identity, deadline) = (recognised.identity.clone(), recognised.deadline);
        let accepted = or_internal(&head.uri, self.accept(&head, body, recognised, seat)).await;
        let (accepted, body) = match accepted {
            Ok(accepted) => accepted,
            Err(error) => {
                let response = respond::error(&error, &head.headers, head.uri.query());
                return finish(response, &head.method, audit_id);
            }
        };
        let request = Request::from_parts(head, body);
        if let Some(reply) = self.intercept.as_ref().and_then(|by| by.before(&request, &identity)) {
            return reply;
        }
        let work = deadline.within(self.route_apart(&request, &identity, accepted));
        let response = match or_internal(request.uri(), work).await {
            Ok(response) => response,
            Err(error) => respond::error(&error, request.headers(), request.uri().query()),
        };
        let response = finish(response, request.method(), audit_id);
        match &self.intercept {
            Some(by) => by.after(&request, response),
            None => response,
        }
    }

    /// Authorises a request by the head alone, and only then receives the body. The order is the real server's. The body of a request to a
    /// `proxy` stays unread: the backend decides which bodies are too large.
    async fn accept(
        &self,
        head: &request::Parts,
        body: RequestBody,
        recognised: Recognised,
        seat: Option<Seat>,
    ) -> Result<(Accepted, Bytes), ApiError> {
        let State { authorizer, store, .. } = &*self.state;
        authorizer.authorize(store, &recognised.identity, &recognised.attributes())?;
        let is_for_one = recognised.is_for_one();
        let remote = self.aggregator.find(&self.state, &self.state.served.load(), &recognised.path);
        let Recognised { route, query, deadline, since, .. } = recognised;
        let has_body = matches!(head.method, Method::POST | Method::PUT | Method::PATCH | Method::DELETE);
        let is_proxy = route.as_ref().is_some_and(|route| route.subresource == Subresource::Proxy);
        let is_passed_on = is_proxy || remote.is_some();
        let mut accepted =
            Accepted { route, query, is_for_one, unread: None, remote, seat, reserved: None, since };
        let mut received = Bytes::new();
        if is_passed_on {
            accepted.unread = Some(body);
        } else if accepted.route.is_some() && has_body {
            let (bytes, reserved) = deadline.within(self.receive(body)).await?;
            (received, accepted.reserved) = (bytes, Some(reserved));
        }
        Ok((accepted, received))
    }

    /// Receives a body. A body has a time limit although the request may have none.
    async fn receive(&self, body: RequestBody) -> Result<(Bytes, Reservation), ApiError> {
        let received = tokio::time::timeout(self.request_timeout, body.read(&self.body_memory)).await;
        let too_slow = "request did not complete within the allotted timeout";
        received.unwrap_or_else(|_| Err(ApiError::timeout(too_slow, 0)))
    }

    /// Routes a request. A long request does not keep other requests of the connection waiting: a request
    /// with a large body or a body in YAML, or a write of a large object, runs on separate threads, because the
    /// work may take a tenth of a second; a request for a whole collection, or with a body that is not small,
    /// runs in a separate task. A deletion too: the deletion goes on if the client leaves between the mark and
    /// the removal.
    async fn route_apart(
        self: &Arc<Self>,
        request: &Request<Bytes>,
        identity: &Identity,
        accepted: Accepted,
    ) -> Result<Response<Body>, ApiError> {
        let verb = accepted.route.as_ref().map(|route| route.verb);
        let is_deletion = matches!(verb, Some(Verb::Delete | Verb::DeleteCollection));
        let is_apart = is_deletion || matches!(verb, None | Some(Verb::List | Verb::Watch));
        let mut work = Work::of(request);
        if let Some(route) = &accepted.route {
            work.add_object(self.object_size(route));
        }
        let runtime = tokio::runtime::Handle::try_current().ok();
        let Some(runtime) = runtime.filter(|_| is_apart || !work.is_small()) else {
            // Boxed here, because the future is large, and each further layer would move the whole future.
            return Box::pin(self.route(request, identity, accepted)).await;
        };
        let memory = if work.is_long() { Some(self.work_memory.reserve(work.memory()).await) } else { None };
        let (api, request, identity) = (Arc::clone(self), request.clone(), identity.clone());
        let apart = work.is_long().then(|| self.state.apart.clone());
        // The panic is caught inside: the message of the panic may quote the object, and is not for the
        // client.
        let routed = async move {
            let routed = or_internal(request.uri(), Box::pin(api.route(&request, &identity, accepted)));
            match memory {
                Some(memory) => memory.during(routed).await,
                None => routed.await,
            }
        };
        let stopped = |_ended| ApiError::internal("the request handler was stopped");
        let Some(apart) = apart else {
            let task = runtime.spawn(routed);
            let done = if is_deletion { task.await } else { AbortOnDropHandle::new(task).await };
            return done.map_err(stopped)?;
        };
        if is_deletion {
            return runtime.spawn(async move { apart.run(routed).await }).await.flatten().map_err(stopped)?;
        }
        apart.run(routed).await.map_err(stopped)?
    }

    /// Returns the size in bytes of the stored object that a write is for; 0 if there is none.
    fn object_size(&self, route: &Route) -> usize {
        if route.name.is_empty()
            || !matches!(route.verb, Verb::Update | Verb::Patch | Verb::Delete | Verb::Create)
        {
            return 0;
        }
        let served = self.state.served.load();
        let Some(resource) = served.resource(&route.group, &route.version, &route.resource) else { return 0 };
        let key = resource.key(&route.namespace, &route.name);
        self.state.store.view().get(&resource.storage, &key).map_or(0, |stored| stored.json().len())
    }

    async fn route(
        self: &Arc<Self>,
        request: &Request<Bytes>,
        identity: &Identity,
        accepted: Accepted,
    ) -> Result<Response<Body>, ApiError> {
        let Accepted { route, query, is_for_one, unread, remote, seat, reserved: _reserved, since } =
            accepted;
        let is_watch = route.as_ref().is_some_and(|route| route.verb == Verb::Watch);
        // An extension server may take any time for the head of a watch.
        let _seat = seat.filter(|_| remote.is_none() || !is_watch);
        if let Some(remote) = remote {
            let body = unread.map_or_else(unread_nothing, RequestBody::stream);
            return Ok(self.aggregator.pass_on(&remote, identity, request, body).await);
        }
        let Some(route) = route else {
            let response = self.document(request, identity).await?;
            self.count_document(request, &response, since);
            return Ok(response);
        };
        let path = percent_decode(request.uri().path(), false);
        housekeeping::run(&self.state).await;
        let served = self.state.served.load();
        let resource = served.resource(&route.group, &route.version, &route.resource);
        let Some(resource) = resource.filter(|_| !path.starts_with("//")) else {
            return self.nothing_there(&path);
        };
        let resource = Arc::clone(resource);
        drop(served);
        if let Err(error) = check_scope(&route, &resource) {
            return if resource.is_custom() { Ok(respond::page_not_found()) } else { Err(error) };
        }
        let warnings = resource.custom.iter().filter_map(|custom| custom.deprecation.clone()).collect();
        let mut call = Call {
            state: &self.state,
            identity,
            route,
            resource,
            query,
            uri: request.uri(),
            headers: request.headers(),
            body: request.body(),
            unread: Mutex::new(unread.map(RequestBody::stream)),
            warnings,
        };
        let is_write = !call.route.verb.is_read();
        let in_flight = self.metrics.begin(is_write);
        let response = registry::dispatch(&mut call, request.method()).await.unwrap_or_else(|error| {
            let mut response = respond::error(&error, request.headers(), request.uri().query());
            if !error.is_of_router() {
                respond::warn(response.headers_mut(), &call.warnings);
            }
            response
        });
        drop(in_flight);
        if !is_counted(&call.route, &call.resource) {
            return Ok(response);
        }
        Ok(self.counted(&labels(&call, request, is_for_one), response, since))
    }

    /// Counts a request to a served resource that is refused because too many requests are in flight.
    fn refused(&self, recognised: &Recognised, method: &Method) {
        let Some(route) = &recognised.route else { return };
        let served = self.state.served.load();
        let resource = served.resource(&route.group, &route.version, &route.resource);
        if !resource.is_some_and(|resource| is_counted(route, resource)) {
            return;
        }
        let verb = shown_verb(route, method, false);
        let labels = Labels { verb, scope: scope(route, recognised.is_for_one()), ..labels_of(route) };
        self.metrics.finish(&labels, 429, recognised.since);
    }

    /// Counts a request to a resource.
    fn counted(&self, labels: &Labels<'_>, response: Response<Body>, since: Instant) -> Response<Body> {
        let code = response.status().as_u16();
        if labels.verb == "WATCH" && code == 200 {
            return response.map(|body| self.metrics.follow(labels, code, body));
        }
        if let Some(upgrade) = response.extensions().get::<Upgrade>() {
            upgrade.hold(self.metrics.begin_long(labels, code));
            return response;
        }
        self.metrics.finish(labels, code, since);
        response
    }
}

/// Waits for `work`. A panic becomes an internal error of this request alone.
async fn or_internal<T>(
    uri: &http::Uri,
    work: impl Future<Output = Result<T, ApiError>>,
) -> Result<T, ApiError> {
    AssertUnwindSafe(work).catch_unwind().await.unwrap_or_else(|_panic| {
        tracing::error!(path = uri.path(), "a request handler panicked");
        Err(ApiError::internal("the request handler failed"))
    })
}

/// Adds the headers that every response has.
fn finish(mut response: Response<Body>, method: &Method, audit_id: Option<HeaderValue>) -> Response<Body> {
    if let Some(id) = audit_id {
        response.headers_mut().insert(AUDIT_ID, id);
    }
    if !response.headers().contains_key(header::CACHE_CONTROL) {
        response.headers_mut().insert(header::CACHE_CONTROL, HeaderValue::from_static("no-cache, private"));
    }
    if method == Method::HEAD {
        *response.body_mut() = Body::empty();
    }
    response
}

/// Checks the scope: a namespaced resource needs a namespace for all verbs except list; a cluster-scoped
/// resource must have none.
fn check_scope(route: &Route, resource: &Resource) -> Result<(), ApiError> {
    if !resource.namespaced && !route.namespace.is_empty() {
        return Err(ApiError::no_such_resource());
    }
    if resource.namespaced && route.namespace.is_empty() {
        if !route.name.is_empty() {
            return Err(ApiError::no_such_resource());
        }
        if !matches!(route.verb, Verb::List | Verb::Watch) {
            let has_path = resource.allows(Verb::List) || resource.is_custom();
            return Err(if has_path { ApiError::method_not_allowed() } else { ApiError::no_such_resource() });
        }
    }
    Ok(())
}
