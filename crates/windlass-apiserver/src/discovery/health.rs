//! `/healthz`, `/livez` and `/readyz`.
//!
//! A server that answers is healthy: the store is in the same process, and the server listens only when
//! ready. Other checks may be added.

use std::borrow::Cow;

use http::header::{CACHE_CONTROL, CONTENT_TYPE, X_CONTENT_TYPE_OPTIONS};
use http::{HeaderValue, Response, StatusCode};

use crate::body::Body;

/// The checks of every server. Clients name checks in requests.
const CHECKS: [&str; 3] = ["ping", "log", "etcd"];

/// A check of the health of a server, by a name in the path: `/readyz/NAME`.
///
/// A check must return at once. A check with the name of an earlier check replaces that check.
pub trait HealthCheck: Send + Sync + 'static {
    /// Returns the name.
    fn name(&self) -> &str;

    /// Returns whether all is well.
    ///
    /// # Errors
    /// The reason why not, for the log of the server.
    fn check(&self) -> Result<(), String>;
}

/// Answers `/ENDPOINT` and `/ENDPOINT/CHECK`; `None` for a check that does not exist.
pub(super) fn respond(
    segments: &[&str],
    added: &[Box<dyn HealthCheck>],
    query: Option<&str>,
) -> Option<Response<Body>> {
    let endpoint = *segments.first()?;
    let results = match segments {
        [_] => all(added),
        [_, name] => all(added).into_iter().filter(|(known, _)| known == name).collect(),
        _ => return None,
    };
    if results.is_empty() {
        return None;
    }
    let failed = results.iter().find_map(|(_, result)| result.as_ref().err());
    let text = match (segments, failed) {
        ([_], None) if asks_verbose(query) => format!("{}{endpoint} check passed\n", listed(&results)),
        (_, None) => "ok".to_owned(),
        ([_], Some(_)) => format!("{}{endpoint} check failed\n", listed(&results)),
        (_, Some(why)) => format!("internal server error: {why}\n"),
    };
    let mut response = Response::new(Body::full(text));
    let headers = response.headers_mut();
    headers.insert(CONTENT_TYPE, HeaderValue::from_static("text/plain; charset=utf-8"));
    headers.insert(CACHE_CONTROL, HeaderValue::from_static("no-cache, private"));
    headers.insert(X_CONTENT_TYPE_OPTIONS, HeaderValue::from_static("nosniff"));
    if failed.is_some() {
        *response.status_mut() = StatusCode::INTERNAL_SERVER_ERROR;
    }
    Some(response)
}

/// Returns the names of all checks.
pub(super) fn names(added: &[Box<dyn HealthCheck>]) -> impl Iterator<Item = &str> {
    let replaced = |name: &str| added.iter().any(|check| check.name() == name);
    let own = CHECKS.into_iter().filter(move |name| !replaced(name));
    own.chain(added.iter().map(|check| check.name()))
}

/// The name and result of a check.
type Checked<'a> = (Cow<'a, str>, Result<(), String>);

/// Runs all checks.
fn all(added: &[Box<dyn HealthCheck>]) -> Vec<Checked<'_>> {
    let replaced = |name: &str| added.iter().any(|check| check.name() == name);
    let own = CHECKS.into_iter().filter(|name| !replaced(name)).map(|name| (Cow::Borrowed(name), Ok(())));
    let added = added.iter().map(|check| {
        let result = check.check();
        if let Err(why) = &result {
            tracing::warn!(check = check.name(), "the health check failed: {why}");
        }
        (Cow::Borrowed(check.name()), result)
    });
    own.chain(added).collect()
}

fn asks_verbose(query: Option<&str>) -> bool {
    query.is_some_and(|query| query.split('&').any(|pair| pair == "verbose" || pair.starts_with("verbose=")))
}

fn listed(results: &[Checked<'_>]) -> String {
    let line = |(name, result): &Checked<'_>| {
        if result.is_ok() {
            format!("[+]{name} ok\n")
        } else {
            format!("[-]{name} failed: reason withheld\n")
        }
    };
    results.iter().map(line).collect()
}
