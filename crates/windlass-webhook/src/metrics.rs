//! The metrics of webhooks, with controller-runtime's names.

use std::{sync::Arc, time::Duration};

use prometheus_client::{
    collector::Collector,
    encoding::{DescriptorEncoder, EncodeLabelSet, EncodeMetric},
    metrics::{
        counter::Counter,
        family::Family,
        gauge::{ConstGauge, Gauge},
        histogram::Histogram,
    },
    registry::Registry,
};

use crate::certificates::{CertificateMetrics, CertificateStore};

#[derive(Clone, Debug, PartialEq, Eq, Hash, EncodeLabelSet)]
struct PathLabel {
    webhook: String,
}

#[derive(Clone, Debug, PartialEq, Eq, Hash, EncodeLabelSet)]
struct CodeLabel {
    webhook: String,
    code: u16,
}

/// The metrics of webhooks and of certificates. Cheap to clone.
#[derive(Clone)]
pub struct WebhookMetrics(Arc<Inner>);

struct Inner {
    latency: Family<PathLabel, Histogram, fn() -> Histogram>,
    requests: Family<CodeLabel, Counter>,
    in_flight: Family<PathLabel, Gauge>,
    panics: Counter,
    conversion_panics: Counter,
    certificates: CertificateMetrics,
}

/// Returns a histogram with controller-runtime's buckets: twelve powers of ten from 10 ns.
fn latency() -> Histogram {
    Histogram::new([1e-8, 1e-7, 1e-6, 1e-5, 1e-4, 1e-3, 1e-2, 1e-1, 1.0, 10.0, 100.0, 1000.0])
}

impl Default for WebhookMetrics {
    fn default() -> Self {
        Self(Arc::new(Inner {
            latency: Family::new_with_constructor(latency),
            requests: Family::default(),
            in_flight: Family::default(),
            panics: Counter::default(),
            conversion_panics: Counter::default(),
            certificates: CertificateMetrics::default(),
        }))
    }
}

impl WebhookMetrics {
    /// Adds the metrics to a registry.
    pub fn register(&self, registry: &mut Registry) {
        // The encoder adds `_total` to the names of counters.
        registry.register(
            "controller_runtime_webhook_latency_seconds",
            "Histogram of the latency of processing admission requests",
            self.0.latency.clone(),
        );
        registry.register(
            "controller_runtime_webhook_requests",
            "Total number of admission requests by HTTP status code",
            self.0.requests.clone(),
        );
        registry.register(
            "controller_runtime_webhook_requests_in_flight",
            "Current number of admission requests being served",
            self.0.in_flight.clone(),
        );
        registry.register(
            "controller_runtime_webhook_panics",
            "Total number of webhook panics",
            self.0.panics.clone(),
        );
        registry.register(
            "controller_runtime_conversion_webhook_panics",
            "Total number of conversion webhook panics",
            self.0.conversion_panics.clone(),
        );
        self.0.certificates.register(registry);
    }

    /// Returns the metrics of certificates that are read from files.
    pub fn certificates(&self) -> &CertificateMetrics {
        &self.0.certificates
    }

    /// Creates the series of a path before the first request.
    pub(crate) fn prepare(&self, path: &str) {
        for code in [200, 500] {
            drop(self.0.requests.get_or_create_owned(&CodeLabel { webhook: path.to_owned(), code }));
        }
        drop(self.0.in_flight.get_or_create_owned(&PathLabel { webhook: path.to_owned() }));
    }

    /// Counts a request as in flight until the guard is dropped.
    pub(crate) fn begin(&self, path: &str) -> InFlight {
        let gauge = self.0.in_flight.get_or_create_owned(&PathLabel { webhook: path.to_owned() });
        gauge.inc();
        InFlight(gauge)
    }

    pub(crate) fn finish(&self, path: &str, code: u16, took: Duration) {
        let label = PathLabel { webhook: path.to_owned() };
        self.0.latency.get_or_create_owned(&label).observe(took.as_secs_f64());
        self.0.requests.get_or_create_owned(&CodeLabel { webhook: path.to_owned(), code }).inc();
    }

    pub(crate) fn count_panic(&self) {
        self.0.panics.inc();
    }

    pub(crate) fn count_conversion_panic(&self) {
        self.0.conversion_panics.inc();
    }
}

impl std::fmt::Debug for WebhookMetrics {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("WebhookMetrics")
    }
}

/// Reports when the certificate that is served expires.
#[derive(Debug)]
pub(crate) struct CertificateExpiry(pub(crate) CertificateStore);

impl Collector for CertificateExpiry {
    fn encode(&self, mut encoder: DescriptorEncoder<'_>) -> std::fmt::Result {
        let Some(certificate) = self.0.get() else { return Ok(()) };
        let gauge = ConstGauge::new(certificate.not_after().as_second());
        gauge.encode(encoder.encode_descriptor(
            "windlass_webhook_certificate_expiry_timestamp_seconds",
            "When the certificate of the webhook server expires, in seconds since 1970",
            None,
            gauge.metric_type(),
        )?)
    }
}

/// A request in flight.
pub(crate) struct InFlight(Gauge);

impl Drop for InFlight {
    fn drop(&mut self) {
        self.0.dec();
    }
}
