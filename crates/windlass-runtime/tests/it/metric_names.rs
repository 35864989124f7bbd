//! The metrics, compared with controller-runtime's.

use std::{
    collections::{BTreeMap, BTreeSet},
    time::Duration,
};

use http::Method;
use k8s_openapi::api::core::v1::ConfigMap;
use kube_client::api::Patch;
use serde_json::json;
use windlass_runtime::{
    Action, Context, Controller, Manager, ObjectKey, Permission, Verb,
    leader_election::LeaderElection,
    webhook::{
        AdmissionChange, AdmissionContext, AdmissionDenial, AdmissionWebhook, SelfIssued, WebhookServer,
        Webhooks,
    },
};
use windlass_test::{TestCluster, eventually};

use crate::{
    fault::Faults,
    fixture::{SOON, config_map, create_config_map, expect_eq, run_declared, run_restricted},
    webhooks::{configure_at, create, free_port},
};

/// The metrics of controller-runtime: name, type, labels and buckets.
const RECORDED: &str = include_str!("controller_runtime_metrics.txt");

/// A metric: the type, the labels, and the upper bounds of the buckets.
#[derive(Debug, Default)]
struct Metric {
    kind: String,
    labels: BTreeSet<String>,
    buckets: Vec<f64>,
}

impl PartialEq for Metric {
    /// Go computes bounds by multiplication: 0.00001 is 0.000009999999999999999 there.
    fn eq(&self, other: &Self) -> bool {
        let same = |(one, another): (&f64, &f64)| one == another || (one - another).abs() < one * 1e-12;
        self.kind == other.kind
            && self.labels == other.labels
            && self.buckets.len() == other.buckets.len()
            && self.buckets.iter().zip(&other.buckets).all(same)
    }
}

fn recorded() -> BTreeMap<String, Metric> {
    let parse = |line: &str| {
        let [name, kind, labels, buckets] = line.split(' ').collect::<Vec<_>>()[..] else { panic!("{line}") };
        let list = |text: &str| -> Vec<String> {
            if text == "-" { Vec::new() } else { text.split(',').map(ToOwned::to_owned).collect() }
        };
        let buckets = list(buckets).iter().map(|bound| bound.parse().expect("a number")).collect();
        (
            name.to_owned(),
            Metric { kind: kind.to_owned(), labels: list(labels).into_iter().collect(), buckets },
        )
    };
    RECORDED.lines().filter(|line| !line.starts_with('#')).map(parse).collect()
}

/// Reads the metrics of a text in Prometheus' format.
fn served(text: &str) -> BTreeMap<String, Metric> {
    let mut metrics = BTreeMap::<String, Metric>::new();
    for line in text.lines() {
        if let Some(declared) = line.strip_prefix("# TYPE ") {
            let (name, kind) = declared.split_once(' ').expect("a name and a type");
            metrics.insert(name.to_owned(), Metric { kind: kind.to_owned(), ..Metric::default() });
        } else if !line.starts_with('#') && !line.is_empty() {
            let (series, _) = line.rsplit_once(' ').expect("a series and a value");
            let (name, labels) = series.split_once('{').unwrap_or((series, ""));
            let base = ["_bucket", "_sum", "_count"].iter().find_map(|suffix| name.strip_suffix(suffix));
            let name = base.filter(|base| metrics.contains_key(*base)).unwrap_or(name);
            let metric = metrics.get_mut(name).expect("a declared metric");
            for label in labels.trim_end_matches('}').split(',').filter(|label| !label.is_empty()) {
                let (label, value) = label.split_once('=').expect("a label and a value");
                if label == "le" {
                    let bound: f64 =
                        value.trim_matches('"').replace("+Inf", "inf").parse().expect("a number");
                    if !metric.buckets.contains(&bound) {
                        metric.buckets.push(bound);
                    }
                } else {
                    metric.labels.insert(label.to_owned());
                }
            }
        }
    }
    metrics
}

async fn validate(_: AdmissionChange<ConfigMap>, _: AdmissionContext) -> Result<(), AdmissionDenial> {
    Ok(())
}

#[tokio::test]
async fn every_metric_of_controller_runtime_is_served_with_its_type_labels_and_buckets() {
    let (cluster, port) = (TestCluster::start().await, free_port().await);
    let client = cluster.client();
    let webhooks = || Webhooks::new().admission(AdmissionWebhook::validator::<ConfigMap>(validate));
    configure_at(&client, "hooks", &webhooks(), port).await;
    let issued = SelfIssued::for_host("127.0.0.1", port).interval(Duration::from_millis(50));
    let controller = Controller::of::<ConfigMap>(|_: ObjectKey, _: Context<ConfigMap>| async {
        Ok::<_, windlass_runtime::Error>(Action::done())
    });
    let manager = Manager::new(client.clone())
        .leader_election(LeaderElection::new("metrics").namespace("default"))
        .webhooks(WebhookServer::new(webhooks()).port(port).self_issued(issued))
        .controller(controller);
    let metrics = manager.metrics().clone();
    let running = run_declared(&cluster, manager).await;
    eventually(SOON, || create(&client, config_map("a"))).await;
    eventually(SOON, || async {
        let served = served(&metrics.render_prometheus());
        let differences: Vec<String> = recorded()
            .into_iter()
            .filter(|(name, wanted)| served.get(name) != Some(wanted))
            .map(|(name, wanted)| format!("{name}: {:?}, not {wanted:?}", served.get(&name)))
            .collect();
        if differences.is_empty() { Ok(()) } else { Err(differences.join("\n")) }
    })
    .await;
    running.stop().await.expect("stopped");
}

/// As in client-go, each attempt after the first counts, with its own status.
#[tokio::test]
async fn a_request_that_is_sent_again_is_counted() {
    let cluster = TestCluster::start().await;
    let client = cluster.client();
    create_config_map(&client, "a").await;
    let faults = Faults::before(client.clone());
    for _ in 0..2 {
        faults.answer(Method::PATCH, "/configmaps/a", 429, "TooManyRequests", Some(0));
    }
    let controller = Controller::of::<ConfigMap>(|key: ObjectKey, cx: Context<ConfigMap>| async move {
        if key.name() == "a" {
            cx.patch::<ConfigMap, _>(&key, &Patch::Merge(json!({ "data": { "x": "y" } }))).await?;
        }
        Ok::<_, windlass_runtime::Error>(Action::done())
    })
    .needs(Permission::to::<ConfigMap>([Verb::Patch]));
    let manager = Manager::new(faults.client()).controller(controller);
    let metrics = manager.metrics().clone();
    let running = run_restricted(&cluster, &faults, manager).await;
    eventually(SOON, || async {
        let text = metrics.render_prometheus();
        let counted = |code: &str| {
            let series = format!("rest_client_request_retries_total{{code=\"{code}\",verb=\"PATCH\"");
            let line = text.lines().find(|line| line.starts_with(&series));
            line.and_then(|line| line.rsplit(' ').next()?.parse::<u64>().ok())
        };
        expect_eq((counted("429"), counted("200")), (Some(1), Some(1)))
    })
    .await;
    running.stop().await.expect("stopped");
}
