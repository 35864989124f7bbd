//! `exec`, `attach`, `port-forward` and `proxy`: requests that the real server passes on to a kubelet or to an address.
//!
//! This server checks them as the real one does. Then it refuses them, because it has no connection to nodes and pods.

use http::{Response, header};
use serde_json::Value;

use super::{Call, connect_options, log};
use crate::auth::Attributes;
use crate::body::Body;
use crate::store::ResourceId;
use crate::wire::{ApiError, GroupResource};

/// Checks a request that is to be passed on.
///
/// # Errors
/// Always: the checks fail, or there is no other end.
pub(super) async fn connect(call: &mut Call<'_>) -> Result<Response<Body>, ApiError> {
    if call.query.get("dryRun").is_some() {
        return Err(ApiError::bad_request("dryRun is not supported"));
    }
    let mut options = connect_options::read(call)?;
    call.admit_connection(&mut options).await?;
    match (&*call.resource.plural, &*call.route.subresource) {
        ("pods", "proxy") => proxy_to_pod(call)?,
        ("pods", subresource) => stream(call, subresource, &options)?,
        ("services", _) => proxy_to_service(call)?,
        _ => {
            object(call, &call.route.name)?;
        }
    }
    Err(ApiError::unexplained(
        "error dialing backend: the nodes of this server are simulated, and their pods run no processes",
    ))
}

/// Returns the object that the request names. Its name may be part of the last segment of the path.
fn object(call: &Call<'_>, name: &str) -> Result<Value, ApiError> {
    let view = call.state.store.view();
    let found = view.get(&call.resource.storage, &call.resource.key(&call.route.namespace, name));
    let found = found.ok_or_else(|| ApiError::not_found(&call.resource.group_resource(), name))?;
    Ok(found.value())
}

fn text<'a>(object: &'a Value, pointer: &str) -> &'a str {
    object.pointer(pointer).and_then(Value::as_str).unwrap_or_default()
}

/// Checks that the user may create the subresource, as clients that stream over `POST` need. WebSockets begin with `GET`.
fn confirm_create(call: &Call<'_>) -> Result<(), ApiError> {
    let route = &call.route;
    let attributes = Attributes {
        verb: "create",
        group: &route.group,
        resource: &route.resource,
        subresource: &route.subresource,
        namespace: &route.namespace,
        name: &route.name,
        path: None,
    };
    let decision = call.state.authorizer.decide(&call.state.store, call.identity, &attributes);
    if decision.allowed {
        return Ok(());
    }
    Err(ApiError::forbidden(&call.resource.group_resource(), &route.name, decision.reason))
}

/// Checks a request for the streams of a container, or for the ports of a pod.
fn stream(call: &Call<'_>, subresource: &str, options: &Value) -> Result<(), ApiError> {
    confirm_create(call)?;
    let name = &call.route.name;
    let pod = object(call, name)?;
    if subresource != "portforward" {
        log::container(name, text(options, "/container"), &pod)?;
    }
    let node = text(&pod, "/spec/nodeName");
    if node.is_empty() {
        return Err(ApiError::bad_request(format!("pod {name} does not have a host assigned")));
    }
    let view = call.state.store.view();
    // The real server names the resource of the request here.
    let host = view.get(&ResourceId::new("", "nodes"), node);
    let host = host.ok_or_else(|| ApiError::not_found(&call.resource.group_resource(), node))?.value();
    let addresses = host.pointer("/status/addresses").and_then(Value::as_array);
    if addresses.is_none_or(Vec::is_empty) {
        return Err(ApiError::unexplained("no preferred addresses found; known addresses: []"));
    }
    let upgrades = call.header(header::UPGRADE).is_some();
    if upgrades { Ok(()) } else { Err(ApiError::bad_request("Upgrade request required")) }
}

/// Splits `NAME`, `NAME:PORT` or `SCHEME:NAME:PORT` into the name and the port.
fn split(name: &str) -> (&str, &str) {
    let parts: Vec<&str> = name.split(':').collect();
    match parts[..] {
        [name, port] | [_, name, port] => (name, port),
        _ => (name, ""),
    }
}

fn proxy_to_pod(call: &Call<'_>) -> Result<(), ApiError> {
    let pod = object(call, split(&call.route.name).0)?;
    let has_address = !text(&pod, "/status/podIP").is_empty();
    if has_address { Ok(()) } else { Err(ApiError::bad_request("address not allowed")) }
}

/// Checks a request to a service: no service here has endpoints that can be reached.
fn proxy_to_service(call: &Call<'_>) -> Result<(), ApiError> {
    let (name, port) = split(&call.route.name);
    let service = object(call, name)?;
    let quoted = windlass_schema::go_quote(name);
    let ports = service.pointer("/spec/ports").and_then(Value::as_array).into_iter().flatten();
    let mut known = ports.map(|known| (text(known, "/name"), known["port"].to_string()));
    if !port.is_empty() && !known.any(|(name, number)| name == port || number == port) {
        return Err(ApiError::unavailable(format!("no service port {port} found for service {quoted}")));
    }
    let view = call.state.store.view();
    let key = format!("{}/{name}", call.route.namespace);
    if view.get(&ResourceId::new("", "endpoints"), &key).is_none() {
        return Err(ApiError::not_found(&GroupResource::new("", "services"), name));
    }
    Err(ApiError::unavailable(format!("no endpoints available for service {quoted}")))
}
