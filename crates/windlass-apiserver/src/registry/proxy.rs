//! `proxy` of pods and services: HTTP requests that go on to an address in the network of the pods.

pub(crate) mod headers;

use http::{HeaderValue, Method, Request, Response, StatusCode, Uri, header};
use hyper::body::Incoming;
use hyper::client::conn::http1;
use hyper_util::rt::TokioIo;
use serde_json::Value;
use windlass_schema::go_quote;

use super::Call;
use super::connect::{object, text};
use crate::body::{Body, unread_nothing};
use crate::nodes::{Connection, Pod};
use crate::upgrade::Upgrade;
use crate::webhook::{self, Backend, ready_endpoint};
use crate::wire::ApiError;

/// Splits `NAME`, `NAME:PORT` or `SCHEME:NAME:PORT` into the scheme, the name and the port.
fn split(name: &str) -> (&str, &str, &str) {
    let parts: Vec<&str> = name.split(':').collect();
    match parts[..] {
        [name, port] => ("", name, port),
        [scheme, name, port] => (scheme, name, port),
        _ => ("", name, ""),
    }
}

/// Passes a request on to a pod. Without a port in the request, that is the first port of the pod's containers, or 80.
pub(super) async fn to_pod(
    call: &Call<'_>,
    method: &Method,
    options: &Value,
) -> Result<Response<Body>, ApiError> {
    let (scheme, name, port) = split(&call.route.name);
    let pod = object(call, name)?;
    let host = text(&pod, "/status/podIP").to_owned();
    let address: Option<std::net::IpAddr> = host.parse().ok();
    if address.is_none_or(|address| address.is_loopback() || address.is_unspecified()) {
        return Err(ApiError::bad_request("address not allowed"));
    }
    let first = || {
        let containers = pod.pointer("/spec/containers").and_then(Value::as_array).into_iter().flatten();
        let mut ports = containers.filter_map(|container| container.pointer("/ports/0/containerPort"));
        ports.next().and_then(Value::as_u64).and_then(|port| u16::try_from(port).ok())
    };
    let port = match port {
        "" => first().unwrap_or(if scheme == "https" { 443 } else { 80 }),
        port => {
            port.parse().map_err(|_| unreachable(&format!("dial tcp: lookup tcp/{port}: unknown port")))?
        }
    };
    let backend = Backend { host, port, pod: Some(Pod::new(pod)) };
    pass_on(call, method, scheme == "https", &backend, text(options, "/path")).await
}

/// Forwards a request to a ready endpoint of a service.
pub(super) async fn to_service(
    call: &Call<'_>,
    method: &Method,
    options: &Value,
) -> Result<Response<Body>, ApiError> {
    let (scheme, name, port) = split(&call.route.name);
    // Only the number of a port is looked up in the service: a name is the name of a port of the endpoints.
    let port_name = match port.parse::<i64>() {
        Ok(number) => name_of_port(&object(call, name)?, name, number)?,
        Err(_) => port.to_owned(),
    };
    let backend = ready_endpoint(&call.state.store.view(), &call.route.namespace, name, &port_name)
        .ok_or_else(|| {
            ApiError::unavailable(format!("no endpoints available for service {}", go_quote(name)))
        })?;
    pass_on(call, method, scheme == "https", &backend, text(options, "/path")).await
}

/// Returns the name of the port of a service with a number.
fn name_of_port(service: &Value, name: &str, number: i64) -> Result<String, ApiError> {
    let mut ports = service.pointer("/spec/ports").and_then(Value::as_array).into_iter().flatten();
    let found = ports.find(|port| port["port"] == number).map(|port| text(port, "/name").to_owned());
    found.ok_or_else(|| {
        ApiError::unavailable(format!("no service port {number} found for service {}", go_quote(name)))
    })
}

fn unreachable(why: &str) -> ApiError {
    ApiError::unavailable(format!("error trying to reach service: {why}"))
}

/// Sends the request to the backend, and returns the reply.
async fn pass_on(
    call: &Call<'_>,
    method: &Method,
    is_https: bool,
    backend: &Backend,
    subpath: &str,
) -> Result<Response<Body>, ApiError> {
    let path = call.uri.path();
    let upgrades = headers::upgrade(call.headers);
    if subpath.is_empty() && upgrades.is_none() && [Method::GET, Method::HEAD].contains(method) {
        return Ok(redirect_to_root(call.uri));
    }
    let target = headers::target(subpath, path.ends_with('/'), call.uri.query());
    let prefix = headers::prefix(path, subpath);
    let body = call.unread.lock().take();
    let mut request = Request::new(body.unwrap_or_else(unread_nothing));
    *request.method_mut() = method.clone();
    *request.uri_mut() = target.parse().map_err(|_| ApiError::bad_request("invalid path"))?;
    *request.headers_mut() = headers::of_request(call.headers, call.uri, upgrades.as_ref());
    let below = target.split('?').next().unwrap_or_default();
    if let Ok(uri) = HeaderValue::try_from(format!("{prefix}{below}")) {
        request.headers_mut().insert("x-forwarded-uri", uri);
    }
    let connection = connect(call, is_https, backend).await.map_err(|why| unreachable(&why))?;
    let (mut sender, connection) =
        http1::handshake(TokioIo::new(connection)).await.map_err(|error| unreachable(&explain(&error)))?;
    tokio::spawn(async move {
        if let Err(error) = connection.with_upgrades().await {
            tracing::debug!(%error, "a proxied connection ended early");
        }
    });
    let mut reply = sender.send_request(request).await.map_err(|error| unreachable(&explain(&error)))?;
    if reply.status() == StatusCode::SWITCHING_PROTOCOLS {
        return Ok(upgraded(reply));
    }
    if upgrades.is_some() && headers::is_no_upgrade(reply.status()) {
        return Err(ApiError::unexplained(headers::invalid_upgrade(reply.status())));
    }
    headers::clean(reply.headers_mut());
    headers::rewrite_location(reply.headers_mut(), &prefix, &backend.host);
    let (head, body) = reply.into_parts();
    // The sender is kept, because the connection ends without the sender.
    Ok(Response::from_parts(head, Body::passed_on(body).holding(sender)))
}

fn explain(error: &hyper::Error) -> String {
    if error.is_incomplete_message() || error.is_closed() { "EOF".to_owned() } else { error.to_string() }
}

async fn connect(call: &Call<'_>, is_https: bool, backend: &Backend) -> Result<Connection, String> {
    let Backend { host, port, pod } = backend;
    let connection = call.state.network.dial(host, *port, pod.as_ref()).await?;
    if is_https { webhook::connect_unverified(connection, host).await } else { Ok(connection) }
}

/// Redirects a request for the root of a proxy to the path with a final slash: relative links then work.
fn redirect_to_root(uri: &Uri) -> Response<Body> {
    let query = uri.query().map(|query| format!("?{query}")).unwrap_or_default();
    let mut response = Response::new(Body::empty());
    *response.status_mut() = StatusCode::MOVED_PERMANENTLY;
    if let Ok(location) = HeaderValue::try_from(format!("{}/{query}", uri.path())) {
        response.headers_mut().insert(header::LOCATION, location);
    }
    response
}

/// Continues with the protocol that the backend has chosen: bytes pass in both directions.
pub(crate) fn upgraded(mut reply: Response<Incoming>) -> Response<Body> {
    let backend = hyper::upgrade::on(&mut reply);
    let mut response = reply.map(|_| Body::empty());
    Upgrade::add(&mut response, move |mut client, stop| {
        Box::pin(async move {
            let Ok(backend) = backend.await else { return };
            let mut backend = TokioIo::new(backend);
            tokio::select! {
                biased;
                () = stop.cancelled() => {}
                _ = tokio::io::copy_bidirectional(&mut client, &mut backend) => {}
            }
        })
    });
    response
}
