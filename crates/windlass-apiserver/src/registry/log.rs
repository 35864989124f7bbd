//! `GET …/log` of a pod. The log of a simulated pod is the text in the annotations.

mod options;
mod simulated_log;

use std::sync::Arc;

use bytes::Bytes;
use futures::{StreamExt, stream};
use http::{HeaderValue, Response, StatusCode, header};
use serde_json::Value;

use self::options::LogOptions;
use super::Call;
use crate::body::{Body, Messages};
use crate::nodes::{Container, Pod};
use crate::state::State;
use crate::store::{ResourceId, Stored, Watched};
use crate::wire::ApiError;

/// Answers a request for a log: 204 for a pod that is on no node.
///
/// # Errors
/// 404 for a missing pod, 400 for a missing container or a container that has not started, and 422 for
/// options out of range.
pub(super) async fn read(call: &Call<'_>) -> Result<Response<Body>, ApiError> {
    let options = LogOptions::parse(&call.query, &call.route.name)?;
    let log = call.state.store.log(&call.resource.storage).watched();
    let view = call.state.store.view();
    let stored = view.get(&call.resource.storage, &call.key()).ok_or_else(|| call.not_found())?.clone();
    drop(view);
    let pod = stored.value();
    let container = container(&call.route.name, call.query.text("container"), &pod)?;
    let node = pod.pointer("/spec/nodeName").and_then(Value::as_str);
    if node.is_none_or(str::is_empty) {
        let mut response = Response::new(Body::empty());
        *response.status_mut() = StatusCode::NO_CONTENT;
        return Ok(response);
    }
    let text = simulated_log::log(&pod, &container, options.previous).map_err(ApiError::bad_request)?;
    if let Some(nodes) = call.state.network.nodes() {
        let asked = Container { pod: Pod::new(pod.clone()), name: container.clone() };
        if let Some(log) = nodes.logs(&asked, &options.request(call.state.env.now())).await {
            let log = log.map_err(|error| ApiError::bad_request(error.to_string()))?;
            return Ok(respond(Body::stream(log)));
        }
    }
    let started = simulated_log::started(&pod, &container, options.previous);
    let shown = if simulated_log::is_scripted(&pod, &container) {
        text.clone()
    } else {
        simulated_log::simulated(&pod, &container)
    };
    let first = options.first(&shown, started, call.state.env.now());
    let body = if options.follow && simulated_log::is_running(&pod, &container) {
        let sent = first.len();
        let follower = Follower {
            state: Arc::clone(call.state),
            log,
            storage: call.resource.storage.clone(),
            key: call.key(),
            container,
            last: stored,
            text,
            options,
            sent,
            is_last: false,
        };
        let rest = stream::unfold(follower, |mut follower| async move {
            let added = follower.next().await?;
            Some((added, follower))
        });
        let first = Some(Bytes::from(first)).filter(|first| !first.is_empty());
        Body::stream(stream::iter(first).chain(rest))
    } else {
        Body::full(first)
    };
    Ok(respond(body))
}

fn respond(body: Body) -> Response<Body> {
    let mut response = Response::new(body);
    response.headers_mut().insert(header::CONTENT_TYPE, HeaderValue::from_static("text/plain"));
    response.extensions_mut().insert(Messages::Bytes);
    response
}

/// Follows a log until the container ends.
struct Follower {
    state: Arc<State>,
    log: Watched,
    storage: ResourceId,
    key: String,
    container: String,
    /// The last seen pod.
    last: Arc<Stored>,
    /// The last seen log.
    text: String,
    options: LogOptions,
    /// The bytes that were sent.
    sent: usize,
    /// True if the container has ended. No further lines follow.
    is_last: bool,
}

impl Follower {
    /// Waits for the next lines; `None` at the end.
    async fn next(&mut self) -> Option<Bytes> {
        loop {
            let log = Arc::clone(self.log.log());
            let changed = log.changed();
            let view = self.state.store.view();
            let stored = view.get(&self.storage, &self.key)?;
            if !Arc::ptr_eq(stored, &self.last) {
                let (old, pod) = (self.last.value(), stored.value());
                self.last = Arc::clone(stored);
                if old.pointer("/metadata/uid") != pod.pointer("/metadata/uid") {
                    return None;
                }
                let text = simulated_log::text(&pod, &self.container);
                let started = simulated_log::started(&pod, &self.container, false);
                let added = text.strip_prefix(&self.text).unwrap_or_default();
                let added = self.options.next(added, started, self.sent);
                self.text = text;
                self.is_last = !simulated_log::is_running(&pod, &self.container);
                if !added.is_empty() {
                    self.sent += added.len();
                    return Some(added.into());
                }
            }
            if self.is_last {
                return None;
            }
            changed.await;
        }
    }
}

/// Returns the container `wanted` of the pod `name`, or the only container if `wanted` is empty.
pub(super) fn container(name: &str, wanted: &str, pod: &Value) -> Result<String, ApiError> {
    let names = |field: &str| -> Vec<String> {
        let list = pod.pointer(&format!("/spec/{field}")).and_then(Value::as_array);
        let names = list.into_iter().flatten().filter_map(|container| container["name"].as_str());
        names.map(str::to_owned).collect()
    };
    let (plain, initial, debug) =
        (names("containers"), names("initContainers"), names("ephemeralContainers"));
    if wanted.is_empty() {
        if let [only] = plain.as_slice() {
            return Ok(only.clone());
        }
        let others = if initial.is_empty() {
            String::new()
        } else {
            format!(" or one of the init containers: [{}]", initial.join(" "))
        };
        return Err(ApiError::bad_request(format!(
            "a container name must be specified for pod {name}, choose one of: [{}]{others}",
            plain.join(" ")
        )));
    }
    if [&plain, &initial, &debug].iter().any(|names| names.iter().any(|name| name == wanted)) {
        Ok(wanted.to_owned())
    } else {
        Err(ApiError::bad_request(format!("container {wanted} is not valid for pod {name}")))
    }
}
