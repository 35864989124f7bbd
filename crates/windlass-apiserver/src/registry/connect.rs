//! `exec`, `attach`, `port-forward` and `proxy`: requests that the server passes on to a node or to an address.

use std::sync::Arc;

use http::{Method, Response, StatusCode, header};
use serde_json::Value;
use windlass_kinds::Subresource;

use super::{Call, connect_options, log, proxy};
use crate::auth::Attributes;
use crate::body::Body;
use crate::nodes::{Attach, Command, Container, NodeError, Nodes, Pod};
use crate::streams;
use crate::upgrade::Upgrade;
use crate::wire::ApiError;
use windlass_kinds::resources;

/// The largest number of ports of a connection: a port has two channels, and the number of a channel is a
/// byte.
const MAX_PORTS: usize = 127;

/// Checks a request, and forwards the request to the node.
///
/// # Errors
/// The checks fail, or there is no other end.
pub(super) async fn connect(call: &mut Call<'_>, method: &Method) -> Result<Response<Body>, ApiError> {
    if call.query.get("dryRun").is_some() {
        return Err(ApiError::bad_request("dryRun is not supported"));
    }
    let mut options = connect_options::read(call)?;
    call.admit_connection(&mut options).await?;
    let (resource, subresource) = (&call.resource.storage, call.route.subresource.clone());
    if *resource == *resources::SERVICES {
        proxy::to_service(call, method, &options).await
    } else if *resource != *resources::PODS {
        object(call, &call.route.name)?;
        Err(no_nodes())
    } else if subresource == Subresource::Proxy {
        proxy::to_pod(call, method, &options).await
    } else {
        stream(call, &subresource, &options).await
    }
}

/// Returns the error of a request to a server without nodes.
fn no_nodes() -> ApiError {
    ApiError::unexplained(
        "error dialing backend: the nodes of this server are simulated, and their pods run no processes",
    )
}

/// Returns the object that the request names. The name may be part of the last segment of the path.
pub(super) fn object(call: &Call<'_>, name: &str) -> Result<Value, ApiError> {
    let view = call.state.store.view();
    let found = view.get(&call.resource.storage, &call.resource.key(&call.route.namespace, name));
    let found = found.ok_or_else(|| ApiError::not_found(&call.resource.group_resource(), name))?;
    Ok(found.value())
}

pub(super) fn text<'a>(object: &'a Value, pointer: &str) -> &'a str {
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

/// Forwards a request for the streams of a container, or for the ports of a pod, to the pod's node.
async fn stream(
    call: &Call<'_>,
    subresource: &Subresource,
    options: &Value,
) -> Result<Response<Body>, ApiError> {
    confirm_create(call)?;
    let name = &call.route.name;
    let pod = object(call, name)?;
    let container = match subresource {
        Subresource::PortForward => String::new(),
        _ => log::container(name, text(options, "/container"), &pod)?,
    };
    expect_node(call, &pod)?;
    if call.header(header::UPGRADE).is_none() {
        return Err(ApiError::bad_request("Upgrade request required"));
    }
    let nodes = call.state.network.nodes().ok_or_else(no_nodes)?;
    let pod = Pod::new(pod);
    if *subresource == Subresource::PortForward {
        return Ok(forward(call, nodes, pod, options));
    }
    remote(call, nodes, Container { pod, name: container }, options).await
}

/// Checks that the pod is on a node with an address.
fn expect_node(call: &Call<'_>, pod: &Value) -> Result<(), ApiError> {
    let node = text(pod, "/spec/nodeName");
    if node.is_empty() {
        let name = &call.route.name;
        return Err(ApiError::bad_request(format!("pod {name} does not have a host assigned")));
    }
    let view = call.state.store.view();
    // The real server names the resource of the request here.
    let host = view.get(&resources::NODES, node);
    let host = host.ok_or_else(|| ApiError::not_found(&call.resource.group_resource(), node))?.value();
    let addresses = host.pointer("/status/addresses").and_then(Value::as_array);
    if addresses.is_none_or(Vec::is_empty) {
        return Err(ApiError::unexplained("no preferred addresses found; known addresses: []"));
    }
    Ok(())
}

/// Runs a command, or attaches to a container.
async fn remote(
    call: &Call<'_>,
    nodes: &Arc<dyn Nodes>,
    container: Container,
    options: &Value,
) -> Result<Response<Body>, ApiError> {
    let is_set = |name: &str| options[name] == true;
    let terminal = is_set("tty");
    let (stdin, stdout) = (is_set("stdin"), is_set("stdout"));
    // A terminal has a single output.
    let stderr = is_set("stderr") && !terminal;
    if !stdin && !stdout && !stderr {
        let why = "you must specify at least 1 of stdin, stdout, stderr";
        return Ok(streams::refuse(StatusCode::BAD_REQUEST, why));
    }
    let (protocol, mut response) = match streams::remote(call.headers) {
        Ok(chosen) => chosen,
        Err(refused) => return Ok(*refused),
    };
    let streams = Attach { stdin, stdout, stderr, terminal };
    let command = (call.route.subresource == Subresource::Exec).then(|| {
        let words = options["command"].as_array().into_iter().flatten();
        words.filter_map(Value::as_str).map(str::to_owned).collect::<Vec<_>>()
    });
    let session = match &command {
        Some(words) => nodes.exec(&container, Command { words: words.clone(), streams }).await,
        None => nodes.attach(&container, streams).await,
    };
    if let Err(NodeError::Refused(why)) = &session
        && !protocol.is_translated()
    {
        return Ok(streams::refuse(StatusCode::INTERNAL_SERVER_ERROR, why));
    }
    let program = streams::Program { session, streams, command };
    Upgrade::add(&mut response, move |connection, stop| {
        Box::pin(streams::run(connection, protocol, program, stop))
    });
    Ok(response)
}

/// Forwards connections to the ports of a pod.
fn forward(call: &Call<'_>, nodes: &Arc<dyn Nodes>, pod: Pod, options: &Value) -> Response<Body> {
    let (protocol, mut response) = match streams::port_forward(call.headers) {
        Ok(chosen) => chosen,
        Err(refused) => return *refused,
    };
    let ports = options["ports"].as_array().into_iter().flatten();
    let ports: Vec<u16> =
        ports.filter_map(Value::as_u64).filter_map(|port| u16::try_from(port).ok()).collect();
    let why = match protocol {
        streams::Forward::Channels(_) if ports.is_empty() => "query parameter \"port\" is required",
        streams::Forward::Channels(_) if ports.contains(&0) => "port \"0\" must be > 0",
        streams::Forward::Channels(_) if ports.len() > MAX_PORTS => "too many ports",
        _ => "",
    };
    if !why.is_empty() {
        return streams::refuse(StatusCode::BAD_REQUEST, why);
    }
    let pod = streams::Ports { nodes: Arc::clone(nodes), pod };
    Upgrade::add(&mut response, move |connection, stop| {
        Box::pin(streams::forward(connection, protocol, pod, ports, stop))
    });
    response
}
