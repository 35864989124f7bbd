//! The metrics of clients, with client-go's names.

use std::time::Duration;

use prometheus_client::{
    encoding::EncodeLabelSet,
    metrics::{counter::Counter, family::Family, histogram::Histogram},
    registry::Registry,
};

#[derive(Clone, Debug, PartialEq, Eq, Hash, EncodeLabelSet)]
struct RequestLabel {
    code: String,
    method: String,
    host: String,
}

#[derive(Clone, Debug, PartialEq, Eq, Hash, EncodeLabelSet)]
struct DurationLabel {
    verb: String,
    host: String,
}

/// The metrics of clients. The label `host` distinguishes clients.
#[derive(Clone)]
pub(crate) struct RestClientMetrics {
    requests: Family<RequestLabel, Counter>,
    durations: Family<DurationLabel, Histogram, fn() -> Histogram>,
}

impl Default for RestClientMetrics {
    fn default() -> Self {
        // The buckets of k8s.io/component-base.
        let histogram: fn() -> Histogram =
            || Histogram::new([0.005, 0.025, 0.1, 0.25, 0.5, 1.0, 2.0, 4.0, 8.0, 15.0, 30.0, 60.0]);
        Self { requests: Family::default(), durations: Family::new_with_constructor(histogram) }
    }
}

impl RestClientMetrics {
    /// Counts one request.
    pub(crate) fn count(&self, method: &str, code: &str, host: &str) {
        let label = RequestLabel { code: code.to_owned(), method: method.to_owned(), host: host.to_owned() };
        self.requests.get_or_create(&label).inc();
    }

    /// Records the time from sending a request to the begin of its response.
    pub(crate) fn observe(&self, method: &str, host: &str, latency: Duration) {
        let label = DurationLabel { verb: method.to_owned(), host: host.to_owned() };
        self.durations.get_or_create(&label).observe(latency.as_secs_f64());
    }

    pub(crate) fn register(&self, registry: &mut Registry) {
        registry.register(
            "rest_client_requests",
            "Number of HTTP requests, partitioned by status code, method, and host",
            self.requests.clone(),
        );
        registry.register(
            "rest_client_request_duration_seconds",
            "Request latency in seconds. Broken down by verb, and host",
            self.durations.clone(),
        );
    }
}
