//! The scheduler and the nodes of a large cluster. Run with
//! `cargo test --release -p windlass-controllers --test it -- --ignored --nocapture scale`.

use std::fs;
use std::time::{Duration, Instant};

use futures::{StreamExt, TryStreamExt, stream};
use k8s_openapi::api::core::v1::Pod;
use kube_client::api::{Api, ListParams, PostParams};
use serde_json::json;
use tokio::time::sleep;

use crate::support::{api, cluster_with_grace, node, pod};

/// The environment variable with another number of pods.
const PODS: &str = "WINDLASS_SCALE_PODS";
const NODES: usize = 200;
/// How long the idle cluster is observed.
const IDLE: Duration = Duration::from_secs(20);

/// Returns the CPU time of this process, in seconds.
fn cpu() -> f64 {
    let stat = fs::read_to_string("/proc/self/stat").unwrap_or_default();
    let fields: Vec<&str> = stat.rsplit(')').next().unwrap_or_default().split_whitespace().collect();
    let ticks =
        |index: usize| fields.get(index).and_then(|ticks| ticks.parse::<u64>().ok()).unwrap_or_default();
    f64::from(u32::try_from(ticks(11) + ticks(12)).unwrap_or(u32::MAX)) / 100.0
}

/// Waits until no pod matches the field selector. Lists a single pod at a time: the lists are no part of the measurement.
async fn until_none(pods: &Api<Pod>, fields: &str) {
    let one = ListParams::default().fields(fields).limit(1);
    while !pods.list_metadata(&one).await.unwrap().items.is_empty() {
        sleep(Duration::from_millis(100)).await;
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
#[ignore = "takes long without optimization"]
async fn ten_thousand_pods_on_two_hundred_nodes() {
    let count = std::env::var(PODS).ok().and_then(|count| count.parse().ok()).unwrap_or(10_000_usize);
    let nodes =
        (0..NODES).map(|n| node(&format!("n{n}"), json!({"zone": (n % 3).to_string()}), json!({}))).collect();
    let begin = Instant::now();
    let (cluster, _running) = cluster_with_grace(nodes, Duration::from_secs(50)).await;
    println!("{NODES} nodes are ready after {:?}, {:.2} s of CPU", begin.elapsed(), cpu());
    let pods: Api<Pod> = api(&cluster.client());
    let (begin, cpu_before) = (Instant::now(), cpu());
    stream::iter(0..count)
        .map(|n| {
            let mut pod = pod(&format!("p{n}"), &json!({}));
            pod["metadata"]["labels"] = json!({"app": format!("app-{}", n % 100)});
            let pod: Pod = serde_json::from_value(pod).unwrap();
            let pods = pods.clone();
            async move { pods.create(&PostParams::default(), &pod).await }
        })
        .buffer_unordered(16)
        .try_collect::<Vec<_>>()
        .await
        .unwrap();
    println!("{count} pods are created after {:?}", begin.elapsed());
    until_none(&pods, "spec.nodeName=").await;
    println!("all pods have a node after {:?}, {:.2} s of CPU", begin.elapsed(), cpu() - cpu_before);
    until_none(&pods, "status.phase=Pending").await;
    println!("all pods run after {:?}, {:.2} s of CPU", begin.elapsed(), cpu() - cpu_before);
    sleep(Duration::from_secs(5)).await;
    let cpu_before = cpu();
    sleep(IDLE).await;
    println!("idle: {:.2} s of CPU in {IDLE:?}", cpu() - cpu_before);
}
