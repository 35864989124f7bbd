//! `/healthz`, `/livez` and `/readyz`.
//!
//! A server that answers is healthy: the store is in the same process, and the server listens only when
//! ready. Other checks may be added.

use std::borrow::Cow;
use std::collections::{BTreeMap, BTreeSet};
use std::fmt::Write;

use http::header::{CACHE_CONTROL, CONTENT_TYPE, X_CONTENT_TYPE_OPTIONS};
use http::{HeaderValue, Response, StatusCode};
use parking_lot::Mutex;
use windlass_schema::go_quote;

use crate::body::Body;
use crate::route::Query;

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

/// The checks of a server besides the checks of every server, and the results so far.
#[derive(Default)]
pub(crate) struct Health {
    checks: Vec<Box<dyn HealthCheck>>,
    /// The results by the name of the check and the endpoint.
    results: Mutex<BTreeMap<(String, &'static str), Tally>>,
}

/// The results of a check at an endpoint.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Tally {
    /// True if the check succeeded the last time.
    pub(crate) is_well: bool,
    pub(crate) successes: u64,
    pub(crate) failures: u64,
}

impl Health {
    pub(crate) fn new(checks: Vec<Box<dyn HealthCheck>>) -> Self {
        Self { checks, ..Self::default() }
    }

    /// Returns the results of all checks so far, by the name of the check and the endpoint.
    pub(crate) fn results(&self) -> Vec<((String, &'static str), Tally)> {
        self.results.lock().iter().map(|(key, tally)| (key.clone(), *tally)).collect()
    }

    fn count<'a>(&self, endpoint: &str, results: impl Iterator<Item = &'a Checked<'a>>) {
        let Some(endpoint) = ENDPOINTS.into_iter().find(|known| *known == endpoint) else { return };
        let mut tallies = self.results.lock();
        for (name, result) in results {
            let tally = tallies.entry((name.to_string(), endpoint)).or_default();
            tally.is_well = result.is_ok();
            *if result.is_ok() { &mut tally.successes } else { &mut tally.failures } += 1;
        }
    }
}

/// The endpoints that run all checks.
const ENDPOINTS: [&str; 3] = ["healthz", "livez", "readyz"];

/// Answers `/ENDPOINT` and `/ENDPOINT/CHECK`; `None` for a check that does not exist.
pub(super) fn respond(segments: &[&str], health: &Health, query: Option<&str>) -> Option<Response<Body>> {
    let endpoint = *segments.first()?;
    let query = Query::parse(query);
    let is_single = segments.len() > 1;
    let excluded: BTreeSet<&str> = if is_single { BTreeSet::new() } else { query.all("exclude").collect() };
    let results = match segments {
        [_] => run(&health.checks, |name| !excluded.contains(name)),
        [_, wanted] => {
            let results = run(&health.checks, |name| name == *wanted);
            results.into_iter().filter(|(name, _)| name == wanted).collect()
        }
        _ => return None,
    };
    if results.is_empty() {
        return None;
    }
    let mut counted = results.iter().filter(|(name, _)| !excluded.contains(&**name));
    if !is_single {
        health.count(endpoint, counted.clone());
    }
    let failed = counted.find_map(|(_, result)| result.as_ref().err());
    let text = match (is_single, failed) {
        (false, None) if query.get("verbose").is_some() => {
            format!("{}{endpoint} check passed\n", listed(&results, &excluded))
        }
        (_, None) => "ok".to_owned(),
        (false, Some(_)) => format!("{}{endpoint} check failed\n", listed(&results, &excluded)),
        (true, Some(why)) => format!("internal server error: {why}\n"),
    };
    let mut response = Response::new(Body::full(text));
    let headers = response.headers_mut();
    headers.insert(CONTENT_TYPE, HeaderValue::from_static("text/plain; charset=utf-8"));
    headers.insert(CACHE_CONTROL, HeaderValue::from_static("no-cache, private"));
    if !is_single || failed.is_some() {
        headers.insert(X_CONTENT_TYPE_OPTIONS, HeaderValue::from_static("nosniff"));
    }
    if failed.is_some() {
        *response.status_mut() = StatusCode::INTERNAL_SERVER_ERROR;
    }
    Some(response)
}

/// Returns the names of all checks.
pub(super) fn names(health: &Health) -> impl Iterator<Item = &str> {
    let added = &health.checks;
    let replaced = |name: &str| added.iter().any(|check| check.name() == name);
    let own = CHECKS.into_iter().filter(move |name| !replaced(name));
    own.chain(added.iter().map(|check| check.name()))
}

/// The name and result of a check.
type Checked<'a> = (Cow<'a, str>, Result<(), String>);

/// Runs the wanted checks. The other checks have a good result.
fn run(added: &[Box<dyn HealthCheck>], is_wanted: impl Fn(&str) -> bool) -> Vec<Checked<'_>> {
    let replaced = |name: &str| added.iter().any(|check| check.name() == name);
    let own = CHECKS.into_iter().filter(|name| !replaced(name)).map(|name| (Cow::Borrowed(name), Ok(())));
    let added = added.iter().map(|check| {
        let result = if is_wanted(check.name()) { check.check() } else { Ok(()) };
        if let Err(why) = &result {
            tracing::warn!(check = check.name(), "the health check failed: {why}");
        }
        (Cow::Borrowed(check.name()), result)
    });
    own.chain(added).collect()
}

/// Writes a line for each check, and a warning about the names in `excluded` that no check has.
fn listed(results: &[Checked<'_>], excluded: &BTreeSet<&str>) -> String {
    let line = |(name, result): &Checked<'_>| match result {
        _ if excluded.contains(&**name) => format!("[+]{name} excluded: ok\n"),
        Ok(()) => format!("[+]{name} ok\n"),
        Err(_) => format!("[-]{name} failed: reason withheld\n"),
    };
    let mut text: String = results.iter().map(line).collect();
    let is_known = |name: &str| results.iter().any(|(known, _)| known == name);
    let unknown: Vec<String> =
        excluded.iter().filter(|name| !is_known(name)).map(|name| go_quote(name)).collect();
    if !unknown.is_empty() {
        let unknown = unknown.join(",");
        let _ = writeln!(text, "warn: some health checks cannot be excluded: no matches for {unknown}");
    }
    text
}
