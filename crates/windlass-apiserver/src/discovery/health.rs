//! `/healthz`, `/livez` and `/readyz`.
//!
//! A server that answers is healthy: its store is in the same process, and it listens only when it can serve.

use http::header::{CACHE_CONTROL, CONTENT_TYPE};
use http::{HeaderValue, Response};

use crate::body::Body;

/// The checks that clients ask for by name.
const CHECKS: &[&str] = &["ping", "log", "etcd"];

/// Answers `/ENDPOINT` and `/ENDPOINT/CHECK`; `None` for a check that does not exist.
pub(super) fn respond(segments: &[&str], query: Option<&str>) -> Option<Response<Body>> {
    let text = match *segments {
        [endpoint] if asks_verbose(query) => verbose(endpoint),
        [_] => "ok".to_owned(),
        [_, check] if CHECKS.contains(&check) => "ok".to_owned(),
        _ => return None,
    };
    let mut response = Response::new(Body::full(text));
    let headers = response.headers_mut();
    headers.insert(CONTENT_TYPE, HeaderValue::from_static("text/plain; charset=utf-8"));
    headers.insert(CACHE_CONTROL, HeaderValue::from_static("no-cache, private"));
    Some(response)
}

fn asks_verbose(query: Option<&str>) -> bool {
    query.is_some_and(|query| query.split('&').any(|pair| pair == "verbose" || pair.starts_with("verbose=")))
}

fn verbose(endpoint: &str) -> String {
    let checks: Vec<String> = CHECKS.iter().map(|check| format!("[+]{check} ok\n")).collect();
    let checks = checks.concat();
    format!("{checks}{endpoint} check passed\n")
}
