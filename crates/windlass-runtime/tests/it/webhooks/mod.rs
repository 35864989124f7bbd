//! Webhooks of an operator, called by the API server.

mod bars;
mod certificates;
mod conversion;
mod reads;
mod setting;

use std::{
    net::Ipv4Addr,
    sync::atomic::{AtomicU16, Ordering},
    time::Duration,
};

use k8s_openapi::api::{
    admissionregistration::v1::{MutatingWebhookConfiguration, ValidatingWebhookConfiguration},
    core::v1::ConfigMap,
};
use kube_client::{
    Api, Client, Error,
    api::{DeleteParams, PostParams},
};
use tokio::net::TcpListener;
use windlass_runtime::{
    Manager,
    webhook::{
        AdmissionChange, AdmissionContext, AdmissionDenial, AdmissionWebhook, FieldError, Operation,
        SelfIssued, WebhookServer, Webhooks,
        manifests::{Endpoint, mutating_configuration, validating_configuration},
    },
};
use windlass_test::eventually;

use self::setting::Cluster;
use crate::fixture::{SOON, config_map, config_maps};

/// The number of the ports of a test process.
const PORTS: u16 = 500;

/// Returns a free port. No other test gets the port, and no connection: the system hands out higher ports only.
pub(crate) async fn free_port() -> u16 {
    static NEXT: AtomicU16 = AtomicU16::new(0);
    let first = 10_000 + (std::process::id() % 40) as u16 * PORTS;
    loop {
        let port = first + NEXT.fetch_add(1, Ordering::Relaxed) % PORTS;
        if TcpListener::bind((Ipv4Addr::UNSPECIFIED, port)).await.is_ok() {
            return port;
        }
    }
}

fn with(name: &str, data: &[(&str, &str)]) -> ConfigMap {
    let mut map = config_map(name);
    map.data = Some(data.iter().map(|(key, value)| ((*key).to_owned(), (*value).to_owned())).collect());
    map
}

pub(crate) async fn create(client: &Client, map: ConfigMap) -> Result<ConfigMap, Error> {
    config_maps(client).create(&PostParams::default(), &map).await
}

async fn default(mut config: ConfigMap, cx: AdmissionContext) -> Result<ConfigMap, AdmissionDenial> {
    let data = config.data.get_or_insert_default();
    match data.get("do").map(String::as_str) {
        Some("panic") => panic!("on purpose"),
        Some("wait") => std::future::pending::<()>().await,
        _ => {}
    }
    if !cx.is_dry_run() {
        data.insert("by".to_owned(), cx.user().username.clone().unwrap_or_default());
    }
    Ok(config)
}

async fn validate(change: AdmissionChange<ConfigMap>, cx: AdmissionContext) -> Result<(), AdmissionDenial> {
    let has = |config: &ConfigMap, key: &str| config.data.as_ref().is_some_and(|data| data.contains_key(key));
    match change {
        AdmissionChange::Create(config) if has(&config, "bad") => {
            let error = FieldError::forbidden("data.bad", "nothing is bad here");
            Err(AdmissionDenial::invalid::<ConfigMap>(cx.name(), [error]))
        }
        AdmissionChange::Update { old, .. } if has(&old, "fixed") => {
            Err(AdmissionDenial::new("it does not change"))
        }
        AdmissionChange::Delete(old) if has(&old, "keep") => Err(AdmissionDenial::new("it is kept")),
        _ => Ok(()),
    }
}

fn webhooks() -> Webhooks {
    let all = [Operation::Create, Operation::Update, Operation::Delete];
    Webhooks::new()
        .admission(AdmissionWebhook::defaulter::<ConfigMap>(default).timeout_seconds(1))
        .admission(AdmissionWebhook::validator::<ConfigMap>(validate).operations(all))
}

/// Creates the configurations of the webhooks, without authorities.
async fn configure(client: &Client, name: &str, webhooks: &Webhooks, endpoint: &Endpoint) {
    let declared = webhooks.admissions();
    if let Some(mutating) = mutating_configuration(name, &declared, endpoint) {
        let api: Api<MutatingWebhookConfiguration> = Api::all(client.clone());
        api.create(&PostParams::default(), &mutating).await.expect("created");
    }
    if let Some(validating) = validating_configuration(name, &declared, endpoint) {
        let api: Api<ValidatingWebhookConfiguration> = Api::all(client.clone());
        api.create(&PostParams::default(), &validating).await.expect("created");
    }
}

/// As [`configure`], with webhooks on a port of this computer.
pub(crate) async fn configure_at(client: &Client, name: &str, webhooks: &Webhooks, port: u16) {
    configure(client, name, webhooks, &Endpoint::url(format!("https://127.0.0.1:{port}"))).await;
}

/// The code, the reason and the message of an answer.
fn denial<T: std::fmt::Debug>(answer: Result<T, Error>) -> String {
    match answer {
        Err(Error::Api(status)) => format!("{} {} {}", status.code, status.reason, status.message),
        other => panic!("not denied: {other:?}"),
    }
}

#[tokio::test]
async fn defaults_denials_panics_and_time_outs_reach_the_client() {
    let cluster = Cluster::start().await;
    let (client, port) = (cluster.client(), free_port().await);
    configure_at(&client, "hooks", &webhooks(), port).await;
    let issued = SelfIssued::for_host("127.0.0.1", port).interval(Duration::from_millis(50));
    let manager =
        Manager::new(client.clone()).webhooks(WebhookServer::new(webhooks()).port(port).self_issued(issued));
    let metrics = manager.metrics().clone();
    let running = cluster.run(manager).await;
    let created = eventually(SOON, || create(&client, with("a", &[("k", "v")]))).await;
    let data = created.data.expect("data");
    assert_eq!((&*data["k"], data.contains_key("by")), ("v", true));
    let dry_run = PostParams { dry_run: true, ..PostParams::default() };
    let dry = config_maps(&client).create(&dry_run, &with("dry", &[])).await.expect("a dry run");
    assert!(!dry.data.unwrap_or_default().contains_key("by"));

    assert_eq!(
        denial(create(&client, with("b", &[("bad", "")])).await),
        "422 Invalid admission webhook \"vconfigmap-v1.kb.io\" denied the request: \
         ConfigMap \"b\" is invalid: data.bad: Forbidden: nothing is bad here"
    );
    let mut fixed = create(&client, with("c", &[("fixed", ""), ("keep", "")])).await.expect("created");
    fixed.data.get_or_insert_default().insert("x".to_owned(), String::new());
    assert_eq!(
        denial(config_maps(&client).replace("c", &PostParams::default(), &fixed).await),
        "403 Forbidden admission webhook \"vconfigmap-v1.kb.io\" denied the request: it does not change"
    );
    assert_eq!(
        denial(config_maps(&client).delete("c", &DeleteParams::default()).await),
        "403 Forbidden admission webhook \"vconfigmap-v1.kb.io\" denied the request: it is kept"
    );
    assert_eq!(
        denial(create(&client, with("d", &[("do", "panic")])).await),
        "500  admission webhook \"mconfigmap-v1.kb.io\" denied the request: panic: on purpose [recovered]"
    );
    assert_eq!(
        denial(create(&client, with("e", &[("do", "wait")])).await),
        "504 Timeout admission webhook \"mconfigmap-v1.kb.io\" denied the request: \
         the webhook did not answer within 900ms"
    );
    let text = metrics.render_prometheus();
    assert!(text.contains("controller_runtime_webhook_panics_total 1"), "{text}");
    let in_flight = "controller_runtime_webhook_requests_in_flight{webhook=\"/mutate--v1-configmap\"} 0";
    assert!(text.contains(in_flight), "{text}");
    let expiry = "windlass_webhook_certificate_expiry_timestamp_seconds ";
    assert!(text.lines().any(|line| line.starts_with(expiry)), "{text}");
    let latency = "controller_runtime_webhook_latency_seconds_bucket{";
    let buckets =
        text.lines().filter(|line| line.starts_with(latency) && line.contains("/validate--v1-configmap"));
    assert_eq!(buckets.count(), 13, "{text}");
    running.stop().await.expect("a graceful stop");
}

#[tokio::test]
async fn the_metrics_have_the_names_labels_and_buckets_of_controller_runtime() {
    let cluster = Cluster::start().await;
    let server = WebhookServer::new(webhooks()).port(0);
    let manager = Manager::new(cluster.client()).webhooks(server);
    let metrics = manager.metrics().clone();
    let running = cluster.run(manager).await;
    let series = [
        "controller_runtime_webhook_requests_total{webhook=\"/mutate--v1-configmap\",code=\"200\"} 0",
        "controller_runtime_webhook_requests_total{webhook=\"/mutate--v1-configmap\",code=\"500\"} 0",
        "controller_runtime_webhook_requests_in_flight{webhook=\"/mutate--v1-configmap\"} 0",
        "controller_runtime_webhook_panics_total 0",
        "controller_runtime_conversion_webhook_panics_total 0",
        "# TYPE certwatcher_read_certificate_total counter",
        "# TYPE certwatcher_read_certificate_errors_total counter",
    ];
    eventually(SOON, || async {
        let text = metrics.render_prometheus();
        match series.iter().find(|wanted| !text.lines().any(|line| line == **wanted)) {
            Some(wanted) => Err(format!("{wanted} is not in\n{text}")),
            None => Ok(()),
        }
    })
    .await;
    running.stop().await.expect("a graceful stop");
}
