//! Paths that belong to no resource: discovery, OpenAPI, health, metrics, and unknown paths.

use std::sync::Arc;
use std::time::Instant;

use bytes::Bytes;
use http::{Method, Request, Response, header};

use super::Api;
use crate::auth::Identity;
use crate::body::{Body, unread_nothing};
use crate::metrics::Labels;
use crate::route::percent_decode;
use crate::state::State;
use crate::wire::{self, ApiError, Target};
use crate::{discovery, metrics, openapi, openid, respond, zpages};

impl Api {
    /// Answers a request for a document.
    pub(super) async fn document(
        self: &Arc<Self>,
        request: &Request<Bytes>,
        identity: &Identity,
    ) -> Result<Response<Body>, ApiError> {
        let path = &*percent_decode(request.uri().path(), false);
        let served = self.state.served.load_full();
        if let Some(remote) = path.strip_prefix("/openapi/v3")
            && let Some(remote) = self.aggregator.find(&self.state, &served, remote)
        {
            return Ok(self.aggregator.pass_on(&remote, identity, request, unread_nothing()).await);
        }
        let merged = self.aggregator.merged(&self.state, &served);
        let (query, headers) = (request.uri().query(), request.headers());
        let (state, documents) = (&self.state, &self.documents);
        if let Some(reply) =
            openapi::respond(state, &served, &merged, documents, path, (request.method(), query, headers))
                .await?
        {
            return Ok(reply);
        }
        let reply = discovery::respond(
            &merged,
            &self.state.catalog,
            self.state.listeners.address(),
            &self.health,
            path,
            query,
            headers,
        )
        .or_else(|| openid::respond(&self.state.issuer, path, request).map(Ok))
        .or_else(|| zpages::respond(&self.facts(), path, request).map(Ok))
        .or_else(|| {
            metrics::respond(&self.metrics, &self.state, &self.health, path, request.method()).map(Ok)
        });
        let Some(reply) = reply else { return self.nothing_there(path) };
        self.expect_route(path, request)?;
        reply
    }

    /// Returns the facts about the server for `/statusz` and `/flagz`.
    fn facts(&self) -> zpages::Facts<'_> {
        let State { catalog, env, .. } = &*self.state;
        zpages::Facts { catalog, started: self.started, now: env.now(), flags: &self.flags }
    }

    /// Checks the method and the `Accept` header of a request for a document. The router of the real server
    /// checks only some documents, and serves all others to any method.
    fn expect_route(&self, path: &str, request: &Request<Bytes>) -> Result<(), ApiError> {
        let accept = request.headers().get(header::ACCEPT).and_then(|value| value.to_str().ok());
        let segments: Vec<&str> = path.trim_matches('/').split('/').collect();
        let only: &[&str] = match segments[..] {
            ["version"] | [".well-known", _] => &["application/json"],
            ["openid", ..] => &["application/jwk-set+json"],
            ["api", ..] => &[],
            ["apis", group, _] if self.state.builtin.group(group).is_some() => &[],
            _ => return Ok(()),
        };
        if request.method() != Method::GET {
            return Err(ApiError::method_not_allowed());
        }
        if only.is_empty() {
            return wire::expect_produced(accept, Target::Document, &[]);
        }
        wire::expect_one_of(accept, only)
    }

    /// Returns the reply for an unknown path: the router of built-in groups sends a `Status`.
    pub(super) fn nothing_there(&self, path: &str) -> Result<Response<Body>, ApiError> {
        let is_built_in = match path.strip_prefix("/apis/") {
            Some(rest) => {
                let group = rest.split('/').next().unwrap_or_default();
                !group.is_empty() && self.state.builtin.group(group).is_some()
            }
            None => path.starts_with("/api/") || path.starts_with("/version/"),
        };
        if is_built_in { Err(ApiError::no_such_resource()) } else { Ok(respond::page_not_found()) }
    }

    /// Counts a request for health or OpenAPI.
    pub(super) fn count_document(&self, request: &Request<Bytes>, response: &Response<Body>, since: Instant) {
        let path = match request.uri().path() {
            path @ ("/healthz" | "/livez" | "/readyz") => path,
            "/openapi/v3" => "openapi/v3",
            path if path.starts_with("/openapi/v3/") => "openapi/v3/",
            _ => return,
        };
        let labels = Labels { verb: "GET", subresource: path, ..Labels::default() };
        self.metrics.finish(&labels, response.status().as_u16(), since);
    }
}
