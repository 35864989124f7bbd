//! Sends the spans and the metrics of an operator to an OpenTelemetry collector, by OTLP over HTTP.
//!
//! The environment variables of OpenTelemetry's specification name the endpoints; without an endpoint, no
//! telemetry is sent:
//!
//! | variable | default | meaning |
//! |---|---|---|
//! | `OTEL_EXPORTER_OTLP_ENDPOINT` | none | the collector's URL, such as `http://collector:4318`; `/v1/traces` and `/v1/metrics` are added |
//! | `OTEL_EXPORTER_OTLP_TRACES_ENDPOINT`, `…_METRICS_ENDPOINT` | from the variable above | the unchanged URL for traces or metrics |
//! | `OTEL_TRACES_EXPORTER`, `OTEL_METRICS_EXPORTER` | `otlp` | `none` turns off traces or metrics |
//! | `OTEL_EXPORTER_OTLP_HEADERS` | none | headers of each request: `authorization=Bearer%20…,x-team=ops` |
//! | `OTEL_EXPORTER_OTLP_TIMEOUT` | 10,000 | time limit of an export, in milliseconds |
//! | `OTEL_EXPORTER_OTLP_CERTIFICATE` | the system's | a PEM file with the authorities that the collector's certificate is checked against |
//! | `OTEL_METRIC_EXPORT_INTERVAL` | 60,000 | milliseconds between two exports of the metrics |
//! | `OTEL_TRACES_SAMPLER`, `OTEL_TRACES_SAMPLER_ARG` | `parentbased_always_on` | the sampled share of spans: `traceidratio` and `0.1` for a tenth |
//! | `OTEL_SERVICE_NAME`, `OTEL_RESOURCE_ATTRIBUTES` | the program's name | the operator's name and other attributes |
//! | `OTEL_SDK_DISABLED` | `false` | `true` turns off all telemetry |
//!
//! Headers and timeout also have variables for traces and for metrics, like the endpoint. The only protocol
//! is `http/protobuf`.
//!
//! Windlass' command line sets up the export if the feature `opentelemetry` of the crate `windlass` is on. A
//! program without the command line:
//!
//! ```no_run
//! use tracing_subscriber::prelude::*;
//! use windlass_opentelemetry::Telemetry;
//!
//! # async fn example(render: impl Fn() -> String + Send + 'static) -> Result<(), Box<dyn std::error::Error>> {
//! if let Some(telemetry) = Telemetry::from_env("backup-operator")? {
//!     tracing_subscriber::registry().with(telemetry.layer()).init();
//!     // `render` writes all metrics as OpenMetrics text.
//!     telemetry.run(render, std::future::pending()).await;
//! }
//! # Ok(()) }
//! ```

#![forbid(unsafe_code)]

mod collector;
mod metrics;
mod open_metrics;
mod settings;

use std::{
    collections::HashMap,
    path::PathBuf,
    sync::atomic::{AtomicBool, Ordering},
    time::{Duration, SystemTime},
};

use http::{HeaderValue, Method, Request, header::CONTENT_TYPE};
use opentelemetry::trace::TracerProvider;
use opentelemetry_otlp::{SpanExporter, WithExportConfig, WithHttpConfig};
use opentelemetry_sdk::{Resource, trace::SdkTracerProvider};
use prost::Message;
use tokio::{runtime::Handle, time};
use tracing_subscriber::{
    Layer,
    filter::{FilterExt as _, Targets, filter_fn},
    layer::Filter,
    registry::LookupSpan,
};

use collector::Collector;
use metrics::MetricMessages;
use settings::{Destination, Settings};

pub use settings::SettingsError;

/// Why telemetry could not be set up.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum Error {
    /// A variable cannot be understood.
    #[error(transparent)]
    Settings(#[from] SettingsError),
    /// The file of `OTEL_EXPORTER_OTLP_CERTIFICATE` cannot be used.
    #[error("the environment variable OTEL_EXPORTER_OTLP_CERTIFICATE names {}, which cannot be used", path.display())]
    Authorities {
        /// The file.
        path: PathBuf,
        /// The error of the file.
        source: std::io::Error,
    },
    /// The exporter of spans refused the settings.
    #[error("the exporter of spans cannot be set up")]
    Spans(#[source] Box<dyn std::error::Error + Send + Sync>),
    /// There is no tokio runtime. The exporter needs a runtime to send requests.
    #[error("telemetry needs a tokio runtime")]
    Runtime(#[from] tokio::runtime::TryCurrentError),
}

/// The export of a program's spans and metrics.
pub struct Telemetry {
    spans: Option<SdkTracerProvider>,
    metrics: Option<MetricExport>,
}

impl Telemetry {
    /// Sets up the exporters of the environment variables. Returns `None` if no exporter is configured.
    ///
    /// `service` names the program, unless `OTEL_SERVICE_NAME` or `OTEL_RESOURCE_ATTRIBUTES` does.
    ///
    /// # Errors
    ///
    /// A variable cannot be understood, a file cannot be read, or there is no tokio runtime.
    pub fn from_env(service: &str) -> Result<Option<Self>, Error> {
        Self::from_variables(service, |name| std::env::var(name).ok())
    }

    /// Works like [`from_env`](Self::from_env), with a function that returns the values of variables.
    ///
    /// The sampler, the limits of spans and the resource still come from the environment.
    ///
    /// # Errors
    ///
    /// As [`from_env`](Self::from_env).
    pub fn from_variables(
        service: &str,
        variable: impl Fn(&str) -> Option<String>,
    ) -> Result<Option<Self>, Error> {
        let Settings { spans, metrics, metric_interval, authorities } = Settings::read(variable)?;
        if spans.is_none() && metrics.is_none() {
            return Ok(None);
        }
        let collector = Collector::new(authorities.as_deref(), Handle::try_current()?)
            .map_err(|source| Error::Authorities { path: authorities.unwrap_or_default(), source })?;
        let resource = resource(service);
        let messages = MetricMessages::new(&resource, SystemTime::now());
        let spans = spans.map(|to| span_provider(&to, collector.clone(), resource)).transpose()?;
        let metrics = metrics.map(|to| MetricExport {
            to,
            interval: metric_interval,
            collector,
            messages,
            failing: AtomicBool::new(false),
        });
        Ok(Some(Self { spans, metrics }))
    }

    /// Returns a layer that takes the spans of level INFO, and the spans of requests to the API server.
    pub fn layer<S>(&self) -> Option<impl Layer<S> + Send + Sync + use<S>>
    where
        S: tracing::Subscriber + for<'span> LookupSpan<'span> + Send + Sync,
    {
        let tracer = self.spans.as_ref()?.tracer("windlass");
        let layer =
            tracing_opentelemetry::layer().with_tracer(tracer).with_location(false).with_threads(false);
        Some(layer.with_filter(exported()))
    }

    /// Sends the metrics periodically until `stop` completes, and then sends the metrics and the remaining
    /// spans a last time.
    ///
    /// `render` writes all metrics as OpenMetrics text. A collector that does not answer is logged once, and tried again.
    pub async fn run(&self, render: impl Fn() -> String + Send, stop: impl Future<Output = ()> + Send) {
        match &self.metrics {
            None => stop.await,
            Some(metrics) => {
                let exports = async {
                    loop {
                        time::sleep(metrics.interval).await;
                        metrics.export(&render()).await;
                    }
                };
                tokio::select! {
                    () = exports => {}
                    () = stop => {}
                }
                metrics.export(&render()).await;
            }
        }
        self.flush_spans().await;
    }

    /// Sends the spans that have ended and were not sent yet.
    async fn flush_spans(&self) {
        let Some(spans) = self.spans.clone() else { return };
        // `force_flush` blocks until the exporter's thread is done.
        match tokio::task::spawn_blocking(move || spans.force_flush()).await {
            Ok(Ok(())) => {}
            Ok(Err(error)) => tracing::warn!(%error, "the last spans were not sent"),
            Err(error) => tracing::warn!(%error, "the last spans were not sent"),
        }
    }
}

impl std::fmt::Debug for Telemetry {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Telemetry")
            .field("spans", &self.spans.is_some())
            .field("metrics", &self.metrics.as_ref().map(|metrics| &metrics.to.endpoint))
            .finish()
    }
}

/// Returns the attributes of this process.
fn resource(service: &str) -> Resource {
    let named = Resource::builder().build();
    // Without a name from the environment the detectors say `unknown_service`.
    let unknown = named
        .get_ref(&opentelemetry::Key::from_static_str("service.name"))
        .is_none_or(|name| name.as_str().starts_with("unknown_service"));
    let builder = Resource::builder();
    if unknown { builder.with_service_name(service.to_owned()).build() } else { builder.build() }
}

fn span_provider(
    to: &Destination,
    collector: Collector,
    resource: Resource,
) -> Result<SdkTracerProvider, Error> {
    let text = |value: &HeaderValue| String::from_utf8_lossy(value.as_bytes()).into_owned();
    let headers: HashMap<_, _> =
        to.headers.iter().map(|(name, value)| (name.to_string(), text(value))).collect();
    let exporter = SpanExporter::builder()
        .with_http()
        .with_http_client(collector)
        .with_endpoint(to.endpoint.to_string())
        .with_headers(headers)
        .with_timeout(to.timeout)
        .build()
        .map_err(|error| Error::Spans(Box::new(error)))?;
    Ok(SdkTracerProvider::builder().with_batch_exporter(exporter).with_resource(resource).build())
}

/// The libraries of the exporter's own requests.
const SILENT: [&str; 14] = [
    "h2",
    "hyper",
    "hyper_rustls",
    "hyper_util",
    "opentelemetry",
    "opentelemetry-http",
    "opentelemetry-otlp",
    "opentelemetry_http",
    "opentelemetry_otlp",
    "opentelemetry_sdk",
    "rustls",
    "tower",
    "tower_http",
    "windlass_opentelemetry",
];

/// Returns a filter for the exported spans and events. Spans of the exporter's own requests are excluded.
fn exported<S>() -> impl Filter<S> + Send + Sync + 'static
where
    S: tracing::Subscriber,
{
    Targets::new()
        .with_default(tracing::Level::INFO)
        .with_target("kube_client", tracing::Level::DEBUG)
        .and(filter_fn(|metadata| !is_silent(metadata.target())))
}

/// Returns whether a target belongs to the exporter's own requests. A library is not a prefix: `hyperion_operator` is an operator.
fn is_silent(target: &str) -> bool {
    let is_in = |library: &str| {
        let rest = target.strip_prefix(library);
        rest.is_some_and(|rest| rest.is_empty() || rest.starts_with("::"))
    };
    SILENT.into_iter().any(is_in)
}

/// The way of the metrics to the collector.
struct MetricExport {
    to: Destination,
    interval: Duration,
    collector: Collector,
    messages: MetricMessages,
    /// True if the last export failed. Only the first failure of a series is logged.
    failing: AtomicBool,
}

impl MetricExport {
    async fn export(&self, text: &str) {
        let message = self.messages.message(text, SystemTime::now()).encode_to_vec();
        let outcome = match time::timeout(self.to.timeout, self.send(message)).await {
            Ok(outcome) => outcome,
            Err(_) => Err(format!("no reply within {:?}", self.to.timeout)),
        };
        let endpoint = &self.to.endpoint;
        let failed_before = self.failing.swap(outcome.is_err(), Ordering::Relaxed);
        match outcome {
            Err(error) if !failed_before => {
                tracing::warn!(%endpoint, error, "the collector did not take the metrics; trying again");
            }
            Ok(()) if failed_before => tracing::info!(%endpoint, "the collector takes metrics again"),
            _ => {}
        }
    }

    async fn send(&self, message: Vec<u8>) -> Result<(), String> {
        let mut request = Request::new(message.into());
        *request.method_mut() = Method::POST;
        *request.uri_mut() = self.to.endpoint.clone();
        *request.headers_mut() = self.to.headers.clone();
        request.headers_mut().insert(CONTENT_TYPE, HeaderValue::from_static("application/x-protobuf"));
        let response = self.collector.send(request).await.map_err(|error| causes(&*error))?;
        if response.status().is_success() { Ok(()) } else { Err(format!("status {}", response.status())) }
    }
}

/// Returns an error together with the causes.
fn causes(error: &dyn std::error::Error) -> String {
    let mut text = error.to_string();
    let mut next = error.source();
    while let Some(cause) = next {
        text = format!("{text}: {cause}");
        next = cause.source();
    }
    text
}
