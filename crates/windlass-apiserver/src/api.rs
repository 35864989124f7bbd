//! A server, and the handler chain of all requests.

mod documents;

use std::panic::AssertUnwindSafe;
use std::sync::Arc;
use std::time::{Duration, Instant};

use bytes::Bytes;
use futures::FutureExt;
use futures::future::BoxFuture;
use http::{HeaderValue, Method, Request, Response, header, request};
use parking_lot::Mutex;
use serde::de::IgnoredAny;

use crate::apart::poll_apart;
use crate::auth::{Attributes, AuthenticationResult, Identity};
use crate::body::Body;
use crate::discovery::HealthCheck;
use crate::intercept::Intercept;
use crate::metrics::{Labels, Metrics};
use crate::openapi::Documents;
use crate::registry::Call;
use crate::resource::Resource;
use crate::route::{Query, Route, percent_decode};
use crate::serve::{Deadline, Handle, ReceiveMemory, RequestBody};
use crate::state::State;
use crate::upgrade::Upgrade;
use crate::verb::Verb;
use crate::wire::{ApiError, FieldOperator, FieldRequirement, FieldSelector, LabelSelector, names};
use crate::{housekeeping, registry, respond};

/// One server.
pub(crate) struct Api {
    pub(crate) state: Arc<State>,
    /// OpenAPI documents that were asked for lately.
    pub(crate) documents: Documents,
    /// Sees requests before the server does.
    pub(crate) intercept: Option<Arc<dyn Intercept>>,
    /// Checks besides the checks of every server.
    pub(crate) health_checks: Vec<Box<dyn HealthCheck>>,
    /// How long a request may take.
    pub(crate) request_timeout: Duration,
    pub(crate) metrics: Arc<Metrics>,
    /// Limits the memory of bodies that are being received.
    pub(crate) receive_memory: ReceiveMemory,
}

impl Handle for Api {
    fn handle(
        self: Arc<Self>,
        request: Request<RequestBody>,
        identity: Identity,
    ) -> BoxFuture<'static, Response<Body>> {
        Box::pin(async move {
            let audit_id = self.state.env.uid();
            let (head, body) = request.into_parts();
            if Route::is_unclear(&percent_decode(head.uri.path(), false)) {
                return finish(respond::unclear_path(&head.uri), &head.method, &audit_id);
            }
            let accepted = or_internal(&head.uri, self.accept(&head, body, &identity)).await;
            let (accepted, body) = match accepted {
                Ok(accepted) => accepted,
                Err(error) => {
                    let response = respond::error(&error, &head.headers, head.uri.query());
                    return finish(response, &head.method, &audit_id);
                }
            };
            let identity = accepted.identity.clone();
            let request = Request::from_parts(head, body);
            if let Some(reply) = self.intercept.as_ref().and_then(|by| by.before(&request, &identity)) {
                return reply;
            }
            let work = accepted.deadline.within(self.route_apart(&request, &identity, accepted));
            let response = match Box::pin(or_internal(request.uri(), work)).await {
                Ok(response) => response,
                Err(error) => respond::error(&error, request.headers(), request.uri().query()),
            };
            let response = finish(response, request.method(), &audit_id);
            match &self.intercept {
                Some(by) => by.after(&request, response),
                None => response,
            }
        })
    }

    fn authenticated(&self, result: &AuthenticationResult<'_>, took: Duration) {
        self.metrics.authenticated(result, took);
    }

    fn identity_of(&self, token: &str) -> Option<Identity> {
        self.state.identity_of(token)
    }
}

/// Returns whether a request has a body in YAML: a small text may describe a large value. JSON in a body that is called YAML is not YAML,
/// because most clients that apply send JSON.
fn is_yaml(request: &Request<Bytes>) -> bool {
    let content_type = request.headers().get(header::CONTENT_TYPE).map_or(&b""[..], HeaderValue::as_bytes);
    let first = request.body().iter().find(|byte| !byte.is_ascii_whitespace());
    let essence = content_type.split(|byte| *byte == b';').next().unwrap_or_default().trim_ascii();
    let is_json = || first == Some(&b'{') && serde_json::from_slice::<IgnoredAny>(request.body()).is_ok();
    essence.ends_with(b"yaml") && first.is_some() && !is_json()
}

/// A request with an authorised head.
struct Accepted {
    /// The user of the request, or the impersonated user.
    identity: Identity,
    /// `None` if the path is not that of a resource.
    route: Option<Route>,
    query: Query,
    deadline: Deadline,
    /// True for a request for objects with a single name.
    is_for_one: bool,
    /// The body of a request that is passed on: the body is not received here.
    unread: Option<RequestBody>,
    since: Instant,
}

impl Api {
    /// Authorises a request by the head alone, and only then receives the body. The order is the real server's. The body of a request to a
    /// `proxy` stays unread: the backend decides which bodies are too large.
    async fn accept(
        &self,
        head: &request::Parts,
        body: RequestBody,
        identity: &Identity,
    ) -> Result<(Accepted, Bytes), ApiError> {
        let since = Instant::now();
        let query = Query::parse(head.uri.query());
        let path = percent_decode(head.uri.path(), false);
        let route = Route::parse(&head.method, &path, &query);
        let deadline = Deadline::new(self.request_timeout, route.as_ref(), &query)?;
        let verb = head.method.as_str().to_lowercase();
        let name = route.as_ref().and_then(|route| selected_name(route, &query));
        let request = match &route {
            Some(route) => attributes(route, name.as_deref()),
            None => Attributes { verb: &verb, path: Some(&path), ..Attributes::default() },
        };
        let State { authorizer, store, impersonation, .. } = &*self.state;
        let identity = impersonation.user_of(authorizer, store, identity, &head.headers, &request)?;
        authorizer.authorize(store, &identity, &request)?;
        let has_body = matches!(head.method, Method::POST | Method::PUT | Method::PATCH | Method::DELETE);
        let is_passed_on = route.as_ref().is_some_and(|route| route.subresource == "proxy");
        let (body, unread) = if is_passed_on {
            (Bytes::new(), Some(body))
        } else if route.is_some() && has_body {
            (deadline.within(body.read(&self.receive_memory)).await?, None)
        } else {
            (Bytes::new(), None)
        };
        let is_for_one = !request.name.is_empty() || request.verb == Verb::Create.as_str();
        Ok((Accepted { identity, route, query, deadline, is_for_one, unread, since }, body))
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
        const SMALL: usize = 16 << 10;
        const LARGE: usize = 128 << 10;
        let size = request.body().len();
        let is_apart = accepted.route.as_ref().is_none_or(|route| {
            matches!(route.verb, Verb::List | Verb::Watch | Verb::Delete | Verb::DeleteCollection)
        });
        let runtime = tokio::runtime::Handle::try_current().ok();
        let is_large = size > LARGE
            || is_yaml(request)
            || accepted.route.as_ref().is_some_and(|route| self.object_size(route) > LARGE);
        let Some(runtime) = runtime.filter(|_| is_apart || is_large || size > SMALL) else {
            return self.route(request, identity, accepted).await;
        };
        let (api, request, identity) = (Arc::clone(self), request.clone(), identity.clone());
        // The panic is caught inside: the message of the panic may quote the object, and is not for the
        // client.
        let work = async move { or_internal(request.uri(), api.route(&request, &identity, accepted)).await };
        let done = if is_large { poll_apart(work).await } else { runtime.spawn(work).await };
        done.map_err(|_ended| ApiError::internal("the request handler was stopped"))?
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
        let Accepted { route, query, is_for_one, unread, since, .. } = accepted;
        let Some(route) = route else {
            let response = self.document(request)?;
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
        Ok(self.counted(&labels(&call, request, is_for_one), response, since))
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
fn finish(mut response: Response<Body>, method: &Method, audit_id: &str) -> Response<Body> {
    if let Ok(mut value) = HeaderValue::from_str(audit_id) {
        // No value occurs twice: outside of HTTP/2's table, the value does not evict values that repeat.
        value.set_sensitive(true);
        response.headers_mut().insert("audit-id", value);
    }
    if !response.headers().contains_key(header::CACHE_CONTROL) {
        response.headers_mut().insert(header::CACHE_CONTROL, HeaderValue::from_static("no-cache, private"));
    }
    if method == Method::HEAD {
        *response.body_mut() = Body::empty();
    }
    response
}

/// Returns the labels that a request to a resource is counted by.
fn labels<'a>(call: &'a Call<'_>, request: &'a Request<Bytes>, is_for_one: bool) -> Labels<'a> {
    let route = &call.route;
    let content_type = call.header(header::CONTENT_TYPE).unwrap_or_default();
    let verb = match (route.subresource.as_str(), route.verb) {
        ("exec" | "attach" | "portforward" | "proxy" | "log", _) => "CONNECT",
        (_, Verb::List) => "LIST",
        (_, Verb::Watch) => "WATCH",
        (_, Verb::Get) => "GET",
        (_, Verb::Patch) if content_type.starts_with("application/apply-patch") => "APPLY",
        _ => request.method().as_str(),
    };
    let scope = match (is_for_one, route.namespace.is_empty()) {
        (true, _) => "resource",
        (false, false) => "namespace",
        (false, true) => "cluster",
    };
    Labels {
        component: "apiserver",
        verb,
        group: &route.group,
        version: &route.version,
        resource: &route.resource,
        subresource: &route.subresource,
        scope,
        dry_run: if call.query.text("dryRun") == "All" { "All" } else { "" },
    }
}

fn attributes<'a>(route: &'a Route, selected: Option<&'a str>) -> Attributes<'a> {
    // The authoriser treats a Namespace object as inside of the namespace.
    let is_namespace = route.resource == "namespaces" && route.group.is_empty();
    Attributes {
        verb: route.verb.as_str(),
        group: &route.group,
        resource: &route.resource,
        subresource: &route.subresource,
        namespace: if is_namespace && !route.name.is_empty() { &route.name } else { &route.namespace },
        name: selected.unwrap_or(&route.name),
        path: None,
    }
}

/// Returns the single name that a list or a watch selects by `metadata.name`: rules for named objects apply
/// to the name.
fn selected_name(route: &Route, query: &Query) -> Option<String> {
    if !matches!(route.verb, Verb::List | Verb::Watch) || !route.name.is_empty() {
        return None;
    }
    // Malformed options select no name.
    LabelSelector::parse(query.text("labelSelector")).ok()?;
    if query.get("limit").is_some_and(|limit| limit.parse::<i64>().is_err() && !limit.is_empty()) {
        return None;
    }
    let selector = FieldSelector::parse(query.text("fieldSelector")).ok()?;
    let is_name = |requirement: &&FieldRequirement| {
        requirement.field == "metadata.name" && requirement.operator == FieldOperator::Equals
    };
    let name = &selector.requirements().iter().find(is_name)?.value;
    names::path_segment_name(name, false).is_empty().then(|| name.clone())
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
