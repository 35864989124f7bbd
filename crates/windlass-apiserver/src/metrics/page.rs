//! `GET /metrics`: the text format of Prometheus.

use std::collections::BTreeSet;
use std::fmt::Write;

use http::header::CONTENT_TYPE;
use http::{HeaderValue, Method, Response};

use super::series::BUCKETS;
use super::{Metrics, process};
use crate::admission::Calls;
use crate::body::Body;
use crate::counters::{Counters, Histograms};
use crate::discovery::Health;
use crate::flow_control::Counts;
use crate::state::State;
use crate::verb::Verb;

const TEXT: &str = "text/plain; version=0.0.4; charset=utf-8; escaping=underscores";

/// Answers a request for `/metrics` or `/metrics/slis`; `None` for any other path. A DELETE of the former sets the metrics of requests
/// back.
pub(crate) fn respond(
    metrics: &Metrics,
    state: &State,
    health: &Health,
    path: &str,
    method: &Method,
) -> Option<Response<Body>> {
    let text = match path {
        "/metrics" if method == Method::DELETE => {
            metrics.series.clear();
            return Some(response("metrics reset\n".to_owned(), "text/plain; charset=utf-8"));
        }
        "/metrics" => page(metrics, state),
        "/metrics/slis" => service_levels(health),
        _ => return None,
    };
    let mut response = response(text, TEXT);
    if let Some(start) = process::start() {
        response.headers_mut().insert("process-start-time-unix", HeaderValue::from(start));
    }
    Some(response)
}

fn response(text: String, content_type: &'static str) -> Response<Body> {
    let mut response = Response::new(Body::full(text));
    response.headers_mut().insert(CONTENT_TYPE, HeaderValue::from_static(content_type));
    response
}

/// Writes the indicators of the service level: the results of the health checks.
fn service_levels(health: &Health) -> String {
    let mut page = Page::default();
    let results = health.results();
    if !results.is_empty() {
        let name = "kubernetes_healthcheck";
        page.metric(name, "gauge", "[STABLE] This metric records the result of a single healthcheck.");
        for ((check, endpoint), tally) in &results {
            let labels = format!("name=\"{check}\",type=\"{endpoint}\"");
            page.sample(name, &labels, u8::from(tally.is_well));
        }
        let name = "kubernetes_healthchecks_total";
        page.metric(name, "counter", "[STABLE] This metric records the results of all healthcheck.");
        for ((check, endpoint), tally) in &results {
            for (status, count) in [("error", tally.failures), ("success", tally.successes)] {
                if count > 0 {
                    let labels = format!("name=\"{check}\",status=\"{status}\",type=\"{endpoint}\"");
                    page.sample(name, &labels, count);
                }
            }
        }
    }
    for (name, kind, value) in process::numbers() {
        if name == "process_start_time_seconds" {
            page.metric(name, kind, "[ALPHA] Start time of the process since unix epoch in seconds.");
            page.sample(name, "", value);
        }
    }
    page.0
}

/// A page under construction. Writing to a string does not fail.
#[derive(Default)]
struct Page(String);

impl Page {
    fn metric(&mut self, name: &str, kind: &str, help: &str) {
        let _ = writeln!(self.0, "# HELP {name} {help}\n# TYPE {name} {kind}");
    }

    /// Writes a family of counters, unless there is none yet.
    fn counters(&mut self, name: &str, help: &str, counters: &Counters) {
        let all = counters.all();
        if all.is_empty() {
            return;
        }
        self.metric(name, "counter", help);
        for (labels, count) in all {
            self.sample(name, &labels, count);
        }
    }

    /// Writes a family of histograms, unless there is none yet.
    fn histograms<const N: usize>(&mut self, name: &str, help: &str, histograms: &Histograms<N>) {
        let all = histograms.all();
        if all.is_empty() {
            return;
        }
        self.metric(name, "histogram", help);
        for (labels, durations) in all {
            let mut sum = 0;
            for (bound, count) in histograms.bounds.iter().zip(durations.buckets) {
                sum += count;
                self.sample(&format!("{name}_bucket"), &format!("{labels},le=\"{bound}\""), sum);
            }
            self.sample(&format!("{name}_bucket"), &format!("{labels},le=\"+Inf\""), durations.count);
            self.sample(&format!("{name}_sum"), &labels, durations.seconds);
            self.sample(&format!("{name}_count"), &labels, durations.count);
        }
    }

    fn sample(&mut self, name: &str, labels: &str, value: impl std::fmt::Display) {
        let _ = if labels.is_empty() {
            writeln!(self.0, "{name} {value}")
        } else {
            writeln!(self.0, "{name}{{{labels}}} {value}")
        };
    }
}

fn page(metrics: &Metrics, state: &State) -> String {
    let mut page = Page::default();
    requests(&mut page, metrics);
    objects(&mut page, state);
    authentication(&mut page, metrics);
    webhooks(&mut page, state.webhooks.calls());
    let decisions = state.policies.decisions();
    let help = "Mutations of admission policies.";
    page.counters("apiserver_mutating_admission_policy_check_total", help, &decisions.mutating);
    let help = "Violations and failures of validating admission policies.";
    page.counters("apiserver_validating_admission_policy_check_total", help, &decisions.validating);
    flow_control(&mut page, state);
    let name = "apiserver_authorization_decisions_total";
    page.metric(name, "counter", "Requests that RBAC has allowed.");
    let labels = r#"decision="allowed",name="rbac",type="RBAC""#;
    page.sample(name, labels, state.authorizer.allowed_by_rbac());
    page.metric("kubernetes_build_info", "gauge", "The version of the server, as labels of the value 1.");
    let version = crate::discovery::version_labels(&state.catalog);
    page.sample("kubernetes_build_info", &version, 1);
    for (name, kind, value) in process::numbers() {
        page.metric(name, kind, "As the kernel reports it for this process.");
        page.sample(name, "", value);
    }
    page.0
}

fn requests(page: &mut Page, metrics: &Metrics) {
    let all = metrics.series.sorted();
    let name = "apiserver_current_inflight_requests";
    page.metric(name, "gauge", "Requests that are being answered, watches left out.");
    for (kind, is_write) in [("mutating", true), ("readOnly", false)] {
        let count = metrics.in_flight(is_write).load(std::sync::atomic::Ordering::Relaxed);
        page.sample(name, &format!("request_kind=\"{kind}\""), count);
    }
    page.metric("apiserver_longrunning_requests", "gauge", "Watches and the like that are open.");
    for series in all.iter().filter(|series| is_long_running(&series.shown.all())) {
        page.sample("apiserver_longrunning_requests", &series.shown.without_dry_run(), series.long_running());
    }
    let name = "apiserver_request_duration_seconds";
    page.metric(name, "histogram", "The time from the head of a request to its reply, watches left out.");
    for series in &all {
        let (labels, numbers) = (series.shown.all(), series.numbers());
        if numbers.timed == 0 {
            continue;
        }
        let mut sum = 0;
        for (bound, count) in BUCKETS.iter().zip(numbers.buckets) {
            sum += count;
            page.sample(&format!("{name}_bucket"), &format!("{labels},le=\"{bound}\""), sum);
        }
        page.sample(&format!("{name}_bucket"), &format!("{labels},le=\"+Inf\""), numbers.timed);
        page.sample(&format!("{name}_sum"), &labels, numbers.seconds);
        page.sample(&format!("{name}_count"), &labels, numbers.timed);
    }
    page.metric(
        "apiserver_request_total",
        "counter",
        "Authorised requests to resources, and to health and OpenAPI.",
    );
    for series in &all {
        let labels = series.shown.all();
        for (code, count) in series.numbers().codes {
            page.sample("apiserver_request_total", &format!("code=\"{code}\",{labels}"), count);
        }
    }
}

/// Attempts of authentication. Requests of the same process are not authenticated.
fn authentication(page: &mut Page, metrics: &Metrics) {
    let counters = &metrics.authentication;
    let name = "authenticated_user_requests";
    page.counters(name, "Authenticated requests by user.", &counters.users);
    page.counters("authentication_attempts", "Attempts of authentication by result.", &counters.attempts);
    let name = "authentication_duration_seconds";
    page.histograms(name, "The time that authentication took, by result.", &counters.durations);
}

/// Calls of admission webhooks.
fn webhooks(page: &mut Page, calls: &Calls) {
    let name = |rest: &str| format!("apiserver_admission_webhook_{rest}");
    let help = "The time that calls of admission webhooks took.";
    page.histograms(&name("admission_duration_seconds"), help, &calls.durations);
    let help = "Calls of admission webhooks that failed, and were ignored.";
    page.counters(&name("fail_open_count"), help, &calls.failed_open);
    let help = "Calls of admission webhooks that refused the request, or failed.";
    page.counters(&name("rejection_count"), help, &calls.rejections);
    page.counters(&name("request_total"), "Calls of admission webhooks.", &calls.requests);
    let name = |rest: &str| format!("apiserver_admission_match_condition_{rest}");
    let help = "Match conditions of admission webhooks that failed.";
    page.counters(&name("evaluation_errors_total"), help, &calls.condition_errors);
    let help = "Calls of admission webhooks that match conditions excluded.";
    page.counters(&name("exclusions_total"), help, &calls.exclusions);
}

/// The requests of each flow schema, and the seats of each priority level.
fn flow_control(page: &mut Page, state: &State) {
    let all = state.flow_control.counts(&state.store);
    let labels = |counts: &Counts| {
        let quote = windlass_schema::go_quote;
        format!("flow_schema={},priority_level={}", quote(&counts.schema), quote(&counts.level))
    };
    let mut family = |name: &str, kind: &str, help: &str, value: fn(&Counts) -> u64| {
        let name = format!("apiserver_flowcontrol_{name}");
        page.metric(&name, kind, help);
        for counts in &all {
            page.sample(&name, &labels(counts), value(counts));
        }
    };
    family(
        "current_executing_requests",
        "gauge",
        "Requests that run, watches at the start only.",
        Counts::executing,
    );
    family("current_executing_seats", "gauge", "Seats of the requests that run.", Counts::executing);
    family("current_inqueue_requests", "gauge", "Requests that wait for a seat.", Counts::waiting);
    family("dispatched_requests_total", "counter", "Requests that got a seat.", Counts::dispatched);
    let name = "apiserver_flowcontrol_rejected_requests_total";
    page.metric(name, "counter", "Requests that got no seat, by reason.");
    for counts in &all {
        for (why, count) in counts.refused().filter(|(_, count)| *count > 0) {
            page.sample(name, &format!("{},reason=\"{}\"", labels(counts), why.reason()), count);
        }
    }
    let limits = state.flow_control.limits(&state.store);
    for name in ["current_limit_seats", "nominal_limit_seats"] {
        let name = format!("apiserver_flowcontrol_{name}");
        page.metric(&name, "gauge", "Seats of each priority level.");
        for (level, seats) in &limits {
            page.sample(&name, &format!("priority_level={}", windlass_schema::go_quote(level)), seats);
        }
    }
}

/// Writes the number of objects of each resource.
fn objects(page: &mut Page, state: &State) {
    let (view, served) = (state.store.view(), state.served.load());
    let versions = served.groups().iter().flat_map(|group| &group.versions);
    let resources = versions
        .flat_map(|version| version.resources.values())
        .filter(|resource| resource.allows(Verb::List));
    let stored: BTreeSet<_> = resources.map(|resource| &resource.storage).collect();
    page.metric("apiserver_resource_objects", "gauge", "Stored objects.");
    for id in &stored {
        let labels = format!("group=\"{}\",resource=\"{}\"", id.group, id.resource);
        page.sample("apiserver_resource_objects", &labels, view.count(id));
    }
    page.metric("apiserver_storage_objects", "gauge", "Stored objects.");
    for id in &stored {
        page.sample("apiserver_storage_objects", &format!("resource=\"{id}\""), view.count(id));
    }
}

/// Returns whether the labels belong to requests that may be long-running.
fn is_long_running(labels: &str) -> bool {
    ["verb=\"WATCH\"", "verb=\"CONNECT\""].iter().any(|verb| labels.contains(verb))
}
