//! What clients count.

use std::sync::atomic::AtomicU64;

use prometheus_client::{
    encoding::EncodeLabelSet,
    metrics::{counter::Counter, family::Family},
    registry::Registry,
};

#[derive(Clone, Debug, PartialEq, Eq, Hash, EncodeLabelSet)]
struct RequestLabel {
    code: String,
    method: String,
    host: String,
}

/// What a client counts.
#[derive(Clone, Default)]
pub(crate) struct RestClientMetrics {
    requests: Family<RequestLabel, Counter<u64, AtomicU64>>,
}

impl RestClientMetrics {
    pub(crate) fn count(&self, method: &str, code: &str, host: &str) {
        let label = RequestLabel { code: code.to_owned(), method: method.to_owned(), host: host.to_owned() };
        self.requests.get_or_create(&label).inc();
    }

    pub(crate) fn register(&self, registry: &mut Registry) {
        registry.register(
            "rest_client_requests",
            "Number of HTTP requests, partitioned by status code, method, and host.",
            self.requests.clone(),
        );
    }
}
