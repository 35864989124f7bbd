//! The requests that a collector gets from an operator.

#![allow(clippy::unwrap_used, clippy::expect_used, reason = "tests")]

use std::{convert::Infallible, sync::Arc, time::Duration};

use http_body_util::{BodyExt, Full};
use hyper::{Request, Response, body::Incoming, server::conn::http1, service::service_fn};
use hyper_util::rt::TokioIo;
use opentelemetry_proto::tonic::collector::{
    metrics::v1::ExportMetricsServiceRequest, trace::v1::ExportTraceServiceRequest,
};
use prost::Message;
use tokio::{
    net::TcpListener,
    sync::{mpsc, oneshot},
};
use tracing_subscriber::prelude::*;
use windlass_opentelemetry::Telemetry;
use windlass_patience::stretched;

/// The path, `x-team` header and body of a request.
type Seen = (String, String, Vec<u8>);

/// Starts a collector that accepts every request. Returns the URL, and the received requests.
async fn collector() -> (String, mpsc::UnboundedReceiver<Seen>) {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let url = format!("http://{}", listener.local_addr().unwrap());
    let (sender, seen) = mpsc::unbounded_channel();
    tokio::spawn(async move {
        loop {
            let (connection, _) = listener.accept().await.unwrap();
            let sender = sender.clone();
            let service = service_fn(move |request: Request<Incoming>| {
                let sender = sender.clone();
                async move {
                    let team = request.headers().get("x-team").map(|team| team.to_str().unwrap().to_owned());
                    let path = request.uri().path().to_owned();
                    let body = request.into_body().collect().await.unwrap().to_bytes().to_vec();
                    let _ = sender.send((path, team.unwrap_or_default(), body));
                    Ok::<_, Infallible>(Response::new(Full::<bytes::Bytes>::default()))
                }
            });
            tokio::spawn(http1::Builder::new().serve_connection(TokioIo::new(connection), service));
        }
    });
    (url, seen)
}

fn telemetry(variables: Vec<(&'static str, String)>) -> Telemetry {
    let variable =
        |name: &str| variables.iter().find(|(known, _)| *known == name).map(|(_, value)| value.clone());
    Telemetry::from_variables("backup", variable).unwrap().unwrap()
}

async fn next(seen: &mut mpsc::UnboundedReceiver<Seen>) -> Seen {
    tokio::time::timeout(stretched(Duration::from_secs(20)), seen.recv()).await.expect("a request").unwrap()
}

#[tokio::test]
async fn spans_and_metrics_are_sent_at_the_latest_at_the_end() {
    let (url, mut seen) = collector().await;
    let telemetry = telemetry(vec![
        ("OTEL_EXPORTER_OTLP_ENDPOINT", url),
        ("OTEL_EXPORTER_OTLP_HEADERS", "x-team=ops".to_owned()),
    ]);
    let subscriber = tracing_subscriber::registry().with(telemetry.layer());
    tracing::subscriber::with_default(subscriber, || {
        let span =
            tracing::info_span!("reconcile", controller = "backup", namespace = "default", name = "nightly");
        span.in_scope(|| {
            tracing::error!("the store is full");
            tracing::debug!("not exported");
        });
    });
    telemetry.run(|| "# TYPE runs counter\nruns_total 3\n# EOF\n".to_owned(), async {}).await;

    let (path, team, body) = next(&mut seen).await;
    assert_eq!((&*path, &*team), ("/v1/metrics", "ops"));
    let metrics = ExportMetricsServiceRequest::decode(&*body).unwrap();
    assert_eq!(metrics.resource_metrics[0].scope_metrics[0].metrics[0].name, "runs_total");

    let (path, team, body) = next(&mut seen).await;
    assert_eq!((&*path, &*team), ("/v1/traces", "ops"));
    let spans = ExportTraceServiceRequest::decode(&*body).unwrap();
    let resource = &spans.resource_spans[0];
    let span = &resource.scope_spans[0].spans[0];
    assert_eq!(span.name, "reconcile");
    assert!(span.attributes.iter().any(|attribute| attribute.key == "controller"));
    assert_eq!(span.events.len(), 1);
    let failed = opentelemetry_proto::tonic::trace::v1::status::StatusCode::Error as i32;
    assert_eq!(span.status.as_ref().unwrap().code, failed);
    assert!(
        resource
            .resource
            .as_ref()
            .unwrap()
            .attributes
            .iter()
            .any(|attribute| attribute.key == "service.name")
    );
}

/// The exporter's own requests have no spans. An operator whose crate begins with the name of a library has spans.
#[tokio::test]
async fn spans_of_libraries_are_not_sent() {
    let (url, mut seen) = collector().await;
    let telemetry = telemetry(vec![("OTEL_EXPORTER_OTLP_TRACES_ENDPOINT", url)]);
    let subscriber = tracing_subscriber::registry().with(telemetry.layer());
    tracing::subscriber::with_default(subscriber, || {
        drop(tracing::info_span!(target: "hyper", "root").entered());
        drop(tracing::info_span!(target: "hyper::client", "send").entered());
        drop(tracing::info_span!(target: "opentelemetry-otlp", "export").entered());
        drop(tracing::info_span!(target: "hyperion_operator::backup", "back up").entered());
    });
    telemetry.run(String::new, async {}).await;

    let spans = ExportTraceServiceRequest::decode(&*next(&mut seen).await.2).unwrap();
    let spans = spans.resource_spans.iter().flat_map(|resource| &resource.scope_spans);
    let names: Vec<_> = spans.flat_map(|scope| &scope.spans).map(|span| span.name.as_str()).collect();
    assert_eq!(names, ["back up"]);
}

#[tokio::test]
async fn metrics_are_sent_from_time_to_time() {
    let (url, mut seen) = collector().await;
    let address = url.trim_start_matches("http://").to_owned();
    let telemetry = Arc::new(telemetry(vec![
        ("OTEL_EXPORTER_OTLP_METRICS_ENDPOINT", format!("http://{address}/m")),
        ("OTEL_METRIC_EXPORT_INTERVAL", "5".to_owned()),
    ]));
    let (stop, stopped) = oneshot::channel::<()>();
    let running = Arc::clone(&telemetry);
    let task = tokio::spawn(async move {
        let stopped = async {
            let _ = stopped.await;
        };
        running.run(|| "# TYPE open gauge\nopen 1\n".to_owned(), stopped).await;
    });
    for _ in 0..3 {
        assert_eq!(next(&mut seen).await.0, "/m");
    }
    stop.send(()).unwrap();
    task.await.unwrap();
}

#[tokio::test]
async fn a_collector_that_is_not_there_does_not_hold_the_program() {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let url = format!("http://{}", listener.local_addr().unwrap());
    drop(listener);
    let telemetry = telemetry(vec![
        ("OTEL_EXPORTER_OTLP_ENDPOINT", url),
        ("OTEL_EXPORTER_OTLP_TIMEOUT", "200".to_owned()),
    ]);
    tokio::time::timeout(stretched(Duration::from_secs(20)), telemetry.run(String::new, async {}))
        .await
        .expect("ends");
}
