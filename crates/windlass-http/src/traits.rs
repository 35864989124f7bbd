//! The properties of a request that decide how the request is sent.

use http::{Method, Request, header, uri::PathAndQuery};

/// How a request is sent.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Traits {
    /// The request upgrades its connection, which only HTTP/1.1 can do.
    pub(crate) upgrades: bool,
    /// The response goes on for as long as the caller reads: a watch or a log.
    pub(crate) streams: bool,
    /// The request changes the state of the server, and runs to its end once the request was sent.
    pub(crate) writes: bool,
}

impl Traits {
    pub(crate) fn of<B>(request: &Request<B>) -> Self {
        let upgrades = request.headers().contains_key(header::UPGRADE);
        let root = PathAndQuery::from_static("/");
        let traits = Self::new(request.method(), request.uri().path_and_query().unwrap_or(&root));
        Self { upgrades, writes: traits.writes && !upgrades, ..traits }
    }

    /// Returns the traits of a request without an upgrade.
    pub(crate) fn new(method: &Method, path: &PathAndQuery) -> Self {
        Self {
            upgrades: false,
            streams: is_stream(path),
            writes: matches!(*method, Method::POST | Method::PUT | Method::PATCH | Method::DELETE),
        }
    }
}

/// Returns true for watches, logs that are followed, and requests that the API server passes on to pods, services and nodes.
fn is_stream(uri: &PathAndQuery) -> bool {
    let follows = uri.query().unwrap_or_default().split('&').any(|pair| {
        pair.split_once('=').is_some_and(|(name, value)| {
            matches!(name, "watch" | "follow") && matches!(value, "1" | "t" | "T" | "true" | "True" | "TRUE")
        })
    });
    follows || uri.path().split('/').any(|segment| segment == "proxy")
}

#[cfg(test)]
mod tests {
    use super::*;

    fn streams(uri: &str) -> bool {
        Traits::of(&Request::get(uri).body(()).expect("a request")).streams
    }

    #[test]
    fn watches_logs_and_proxies_are_streams() {
        assert!(streams("/api/v1/pods?limit=1&watch=true"));
        assert!(streams("/api/v1/namespaces/a/pods/b/log?follow=1"));
        assert!(streams("/api/v1/namespaces/a/services/b/proxy/index.html"));
        assert!(!streams("/api/v1/pods?watch=false"));
        assert!(!streams("/api/v1/pods?unwatch=true"));
        assert!(!streams("/api/v1/namespaces/watch/pods"));
    }

    #[test]
    fn an_upgrade_is_no_write() {
        let exec = Request::post("/api/v1/namespaces/a/pods/b/exec").header("upgrade", "websocket");
        let traits = Traits::of(&exec.body(()).expect("a request"));
        assert!(traits.upgrades && !traits.writes);
        assert!(Traits::of(&Request::patch("/api/v1/nodes/a").body(()).expect("a request")).writes);
        assert!(!Traits::of(&Request::get("/api/v1/nodes/a").body(()).expect("a request")).writes);
    }
}
