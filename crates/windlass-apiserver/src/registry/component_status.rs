//! ComponentStatuses: the health of the parts of a control plane, checked at the time of the request.

use std::io;
use std::sync::Arc;
use std::time::Duration;

use futures::future::join_all;
use http::{Response, StatusCode};
use serde_json::{Value, json};
use tokio::net::TcpStream;

use super::options::ListOptions;
use super::{Call, list};
use crate::body::Body;
use crate::store::Stored;
use crate::verb::Verb;
use crate::wire::{ApiError, GroupResource};
use windlass_kinds::kind_names::COMPONENT_STATUS;
use windlass_kinds::resources::COMPONENT_STATUSES;

/// How long a component may take to accept a connection.
const PATIENCE: Duration = Duration::from_secs(1);

/// The components that the real server checks, with the loopback port of each component's health endpoint.
/// The store has no port, because the store is part of this process.
const COMPONENTS: [(&str, Option<u16>); 3] =
    [("controller-manager", Some(10_257)), ("etcd-0", None), ("scheduler", Some(10_259))];

/// Returns whether a request is about ComponentStatuses.
pub(super) fn is_asked(call: &Call<'_>) -> bool {
    call.resource.storage == *COMPONENT_STATUSES
}

/// Answers a request for a ComponentStatus, or for all.
///
/// # Errors
/// 404 for an unknown component, 405 for a watch.
pub(super) async fn answer(call: &Call<'_>) -> Result<Response<Body>, ApiError> {
    match call.route.verb {
        Verb::Get => get(call).await,
        Verb::List => list(call).await,
        verb => Err(ApiError::verb_not_supported(&call.resource.group_resource(), verb.as_str())),
    }
}

async fn get(call: &Call<'_>) -> Result<Response<Body>, ApiError> {
    let name = &call.route.name;
    let found = COMPONENTS.iter().find(|(component, _)| component == name);
    let (component, port) =
        found.ok_or_else(|| ApiError::not_found(&GroupResource::new("", "componentstatus"), name))?;
    call.value(StatusCode::OK, &status(component, *port).await).await
}

async fn list(call: &Call<'_>) -> Result<Response<Body>, ApiError> {
    let negotiated = call.negotiate()?;
    let options = ListOptions::parse(&call.query, &call.resource, false)?;
    let all = join_all(COMPONENTS.map(|(component, port)| status(component, port))).await;
    let labels = &call.state.store.labels();
    let all = all.iter().map(|status| Arc::new(call.resource.dry(status, labels)));
    let selected = all.zip(COMPONENTS).filter(|(status, (name, _))| {
        options.selection.may_match(name, status) && options.selection.matches(name, status)
    });
    let items: Vec<Arc<Stored>> = selected.map(|(status, _)| status).collect();
    list::reply(call, list::Page::of(items), negotiated).await
}

/// Checks a component, and returns the component's health.
async fn status(name: &str, port: Option<u16>) -> Value {
    let health = match port {
        Some(port) => connect(port).await,
        None => Ok(()),
    };
    let (status, message) = match health {
        Ok(()) => ("True", "ok".to_owned()),
        Err(why) => ("False", why),
    };
    json!({
        "kind": COMPONENT_STATUS,
        "apiVersion": "v1",
        "metadata": {"name": name},
        "conditions": [{"type": "Healthy", "status": status, "message": message}],
    })
}

/// Tries to connect to a component. A component that accepts connections counts as healthy.
async fn connect(port: u16) -> Result<(), String> {
    let tried = tokio::time::timeout(PATIENCE, TcpStream::connect(("127.0.0.1", port))).await;
    let why = match tried {
        Ok(Ok(_)) => return Ok(()),
        Ok(Err(error)) if error.kind() == io::ErrorKind::ConnectionRefused => "connection refused".to_owned(),
        Ok(Err(error)) => error.to_string(),
        Err(_) => "i/o timeout".to_owned(),
    };
    let url = format!("https://127.0.0.1:{port}/healthz");
    Err(format!("Get \"{url}\": dial tcp 127.0.0.1:{port}: connect: {why}"))
}
