//! One server, and the chain that every request goes through.

use std::panic::AssertUnwindSafe;
use std::sync::Arc;

use bytes::Bytes;
use futures::FutureExt;
use futures::future::BoxFuture;
use http::{HeaderValue, Method, Request, Response, header};

use crate::auth::{Attributes, Identity, authorize};
use crate::openapi::Documents;
use crate::registry::Call;
use crate::resource::Resource;
use crate::route::{Query, Route};
use crate::serve::{Body, Handle};
use crate::state::State;
use crate::wire::ApiError;
use crate::{definitions, discovery, openapi, registry, respond};

/// One server.
pub(crate) struct Api {
    pub(crate) state: Arc<State>,
    /// OpenAPI documents that were asked for lately.
    pub(crate) documents: Documents,
    /// Sees requests before the server does.
    pub(crate) intercept: Option<Arc<dyn Intercept>>,
}

/// Sees requests before the server does, and replies before the client does: for injecting faults.
///
/// ```
/// use windlass_apiserver::{Body, Identity, Intercept, Server};
///
/// /// Lets nobody write.
/// struct ReadOnly;
///
/// impl Intercept for ReadOnly {
///     fn before(
///         &self,
///         request: &http::Request<bytes::Bytes>,
///         _: &Identity,
///     ) -> Option<http::Response<Body>> {
///         let reads = *request.method() == http::Method::GET;
///         (!reads).then(|| {
///             let mut response = http::Response::new(Body::empty());
///             *response.status_mut() = http::StatusCode::SERVICE_UNAVAILABLE;
///             response
///         })
///     }
/// }
///
/// Server::builder().intercept(ReadOnly).build()?;
/// # Ok::<(), windlass_apiserver::BuildError>(())
/// ```
pub trait Intercept: Send + Sync {
    /// Called with each request. A response given here is the reply, and the server does nothing.
    fn before(&self, _request: &Request<Bytes>, _identity: &Identity) -> Option<Response<Body>> {
        None
    }

    /// Called with each reply, after its effects: what is returned is sent instead.
    fn after(&self, _request: &Request<Bytes>, response: Response<Body>) -> Response<Body> {
        response
    }
}

impl Handle for Api {
    fn handle(
        self: Arc<Self>,
        request: Request<Bytes>,
        identity: Identity,
    ) -> BoxFuture<'static, Response<Body>> {
        Box::pin(async move {
            if let Some(reply) = self.intercept.as_ref().and_then(|by| by.before(&request, &identity)) {
                return reply;
            }
            let audit_id = self.state.env.uid();
            let pretty = respond::wants_pretty(request.headers(), request.uri().query());
            let reply = AssertUnwindSafe(self.route(&request, &identity)).catch_unwind().await;
            let mut response = match reply {
                Ok(Ok(response)) => response,
                Ok(Err(error)) => respond::error(&error, pretty),
                Err(_panic) => {
                    tracing::error!(path = request.uri().path(), "a request handler panicked");
                    respond::error(&ApiError::internal("the request handler failed"), pretty)
                }
            };
            if let Ok(value) = HeaderValue::from_str(&audit_id) {
                response.headers_mut().insert("audit-id", value);
            }
            if !response.headers().contains_key(header::CACHE_CONTROL) {
                response
                    .headers_mut()
                    .insert(header::CACHE_CONTROL, HeaderValue::from_static("no-cache, private"));
            }
            if request.method() == Method::HEAD {
                *response.body_mut() = Body::empty();
            }
            match &self.intercept {
                Some(by) => by.after(&request, response),
                None => response,
            }
        })
    }

    fn identity_of(&self, token: &str) -> Option<Identity> {
        self.state.identity_of(token)
    }
}

impl Api {
    async fn route(
        self: &Arc<Self>,
        request: &Request<Bytes>,
        identity: &Identity,
    ) -> Result<Response<Body>, ApiError> {
        let path = request.uri().path();
        let query = Query::parse(request.uri().query());
        let Some(route) = Route::parse(request.method(), path, &query) else {
            return self.other_path(request, identity);
        };
        authorize(identity, &attributes(&route))?;
        definitions::resume(&self.state).await;
        self.state.remove_expired().await;
        let served = self.state.served.load();
        if served.version(&route.group, &route.version).is_none() {
            return self.nothing_there(&route);
        }
        let Some(resource) = served.resource(&route.group, &route.version, &route.resource) else {
            return self.nothing_there(&route);
        };
        let resource = Arc::clone(resource);
        drop(served);
        if let Err(error) = check_scope(&route, &resource) {
            return if resource.is_custom() { Ok(respond::page_not_found()) } else { Err(error) };
        }
        if route.verb.is_empty() {
            return Err(ApiError::method_not_allowed());
        }
        let warnings = resource.custom.iter().filter_map(|custom| custom.deprecation.clone()).collect();
        let call = Call {
            state: &self.state,
            identity,
            route,
            resource,
            query,
            headers: request.headers(),
            body: request.body(),
            warnings,
        };
        registry::dispatch(call).await
    }

    /// The reply where no resource is: built-in groups say so with a `Status`, others know no such path.
    fn nothing_there(&self, route: &Route) -> Result<Response<Body>, ApiError> {
        if self.state.builtin.group(&route.group).is_some() {
            Err(ApiError::no_such_resource())
        } else {
            Ok(respond::page_not_found())
        }
    }

    fn other_path(
        self: &Arc<Self>,
        request: &Request<Bytes>,
        identity: &Identity,
    ) -> Result<Response<Body>, ApiError> {
        let path = request.uri().path();
        let verb = request.method().as_str().to_lowercase();
        authorize(identity, &Attributes { verb: &verb, path, ..Attributes::default() })?;
        {
            let served = self.state.served.load();
            let (query, headers) = (request.uri().query(), request.headers());
            let reply = discovery::respond(&served, path, query, headers)
                .or_else(|| openapi::respond(&self.state, &self.documents, path, query, headers));
            if let Some(reply) = reply {
                if request.method() != Method::GET && request.method() != Method::HEAD {
                    return Err(ApiError::method_not_allowed());
                }
                return reply;
            }
        }
        let mut segments = path.split('/').filter(|segment| !segment.is_empty());
        let group = match (segments.next(), segments.next()) {
            (Some("api"), _) => "",
            (Some("apis"), Some(group)) => group,
            _ => return Ok(respond::page_not_found()),
        };
        self.nothing_there(&Route { group: group.to_owned(), ..Route::default() })
    }
}

fn attributes(route: &Route) -> Attributes<'_> {
    // The authoriser sees a namespace as something inside itself.
    let is_namespace = route.resource == "namespaces" && route.group.is_empty();
    Attributes {
        verb: route.verb,
        group: &route.group,
        resource: &route.resource,
        subresource: &route.subresource,
        namespace: if is_namespace { &route.name } else { &route.namespace },
        name: &route.name,
        path: "",
    }
}

/// A namespaced resource needs a namespace for all but lists; a cluster-scoped one must have none.
fn check_scope(route: &Route, resource: &Resource) -> Result<(), ApiError> {
    if !resource.namespaced && !route.namespace.is_empty() {
        return Err(ApiError::no_such_resource());
    }
    if resource.namespaced && route.namespace.is_empty() {
        if !route.name.is_empty() {
            return Err(ApiError::no_such_resource());
        }
        if !matches!(route.verb, "list" | "watch") {
            return Err(ApiError::method_not_allowed());
        }
    }
    Ok(())
}
