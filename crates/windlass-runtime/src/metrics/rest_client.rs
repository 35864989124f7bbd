//! The metrics of clients, with client-go's names.

use std::{sync::Arc, time::Duration};

use http::{Method, StatusCode};
use prometheus_client::{
    encoding::{EncodeLabelSet, EncodeLabelValue, LabelValueEncoder},
    metrics::{counter::Counter, family::Family, histogram::Histogram},
    registry::Registry,
};

#[derive(Clone, Debug, PartialEq, Eq, Hash, EncodeLabelSet)]
struct RequestLabel {
    code: Code,
    method: &'static str,
    host: Arc<str>,
}

#[derive(Clone, Debug, PartialEq, Eq, Hash, EncodeLabelSet)]
struct DurationLabel {
    verb: &'static str,
    host: Arc<str>,
}

#[derive(Clone, Debug, PartialEq, Eq, Hash, EncodeLabelSet)]
struct RetryLabel {
    code: Code,
    verb: &'static str,
    host: Arc<str>,
}

/// The status of a response; `None` if there was no response.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
struct Code(Option<StatusCode>);

impl EncodeLabelValue for Code {
    fn encode(&self, encoder: &mut LabelValueEncoder<'_>) -> Result<(), std::fmt::Error> {
        match self.0 {
            Some(status) => status.as_str().encode(encoder),
            None => "<error>".encode(encoder),
        }
    }
}

fn verb(method: &Method) -> &'static str {
    match *method {
        Method::GET => "GET",
        Method::POST => "POST",
        Method::PUT => "PUT",
        Method::PATCH => "PATCH",
        Method::DELETE => "DELETE",
        Method::HEAD => "HEAD",
        Method::OPTIONS => "OPTIONS",
        _ => "other",
    }
}

/// The metrics of clients. The label `host` distinguishes clients.
#[derive(Clone)]
pub(crate) struct RestClientMetrics {
    requests: Family<RequestLabel, Counter>,
    retries: Family<RetryLabel, Counter>,
    durations: Family<DurationLabel, Histogram, fn() -> Histogram>,
}

impl Default for RestClientMetrics {
    fn default() -> Self {
        // The buckets of k8s.io/component-base.
        let histogram: fn() -> Histogram =
            || Histogram::new([0.005, 0.025, 0.1, 0.25, 0.5, 1.0, 2.0, 4.0, 8.0, 15.0, 30.0, 60.0]);
        Self {
            requests: Family::default(),
            retries: Family::default(),
            durations: Family::new_with_constructor(histogram),
        }
    }
}

impl RestClientMetrics {
    /// Counts a request.
    pub(crate) fn count(&self, method: &Method, status: Option<StatusCode>, host: &Arc<str>) {
        let label = RequestLabel { code: Code(status), method: verb(method), host: host.clone() };
        self.requests.get_or_create(&label).inc();
    }

    /// Counts a request that was sent again, with the status of the new response.
    pub(crate) fn count_retry(&self, method: &Method, status: Option<StatusCode>, host: &Arc<str>) {
        let label = RetryLabel { code: Code(status), verb: verb(method), host: host.clone() };
        self.retries.get_or_create(&label).inc();
    }

    /// Records the time from sending a request to the start of the response.
    pub(crate) fn observe(&self, method: &Method, host: &Arc<str>, latency: Duration) {
        let label = DurationLabel { verb: verb(method), host: host.clone() };
        self.durations.get_or_create(&label).observe(latency.as_secs_f64());
    }

    pub(crate) fn register(&self, registry: &mut Registry) {
        registry.register(
            "rest_client_requests",
            "Number of HTTP requests, partitioned by status code, method, and host",
            self.requests.clone(),
        );
        registry.register(
            "rest_client_request_retries",
            "Number of request retries, partitioned by status code, verb, and host",
            self.retries.clone(),
        );
        registry.register(
            "rest_client_request_duration_seconds",
            "Request latency in seconds. Broken down by verb, and host",
            self.durations.clone(),
        );
    }
}
