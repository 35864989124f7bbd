//! A reflector, fed by the byte server, and a scheduler, in the same order as in a controller of
//! kube-runtime. The reflector has no indexes and no metrics, and therefore does less work than the informer
//! of Windlass.

use crate::{Cell, number, process};
use futures::{Stream, StreamExt, TryStreamExt};
use k8s_openapi::api::core::v1::Pod;
use kube::runtime::reflector::{self, Lookup, ObjectRef, Store};
use kube::runtime::scheduler::{ScheduleRequest, scheduler};
use kube::runtime::{WatchStreamExt, watcher};
use kube::{Api, Client, CustomResource, Resource, ResourceExt};
use schemars::JsonSchema;
use serde::de::DeserializeOwned;
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;
use std::fmt::Debug;
use std::pin::Pin;
use std::sync::OnceLock;
use std::time::{Duration, Instant, SystemTime};
use tokio::task::JoinSet;

#[derive(CustomResource, Serialize, Deserialize, Clone, Debug, JsonSchema)]
#[kube(group = "db.example.com", version = "v1", kind = "Database", namespaced, status = "DatabaseStatus")]
#[serde(rename_all = "camelCase")]
pub struct DatabaseSpec {
    replicas: i32,
    version: String,
    image: String,
    storage: Storage,
    backup: Backup,
}

#[derive(Serialize, Deserialize, Clone, Debug, JsonSchema)]
pub struct Storage {
    size: String,
    class: String,
}

#[derive(Serialize, Deserialize, Clone, Debug, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct Backup {
    schedule: String,
    retention_days: i32,
}

#[derive(Serialize, Deserialize, Clone, Debug, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct DatabaseStatus {
    phase: String,
    observed_generation: i64,
    ready_replicas: i32,
    conditions: Vec<Condition>,
}

#[derive(Serialize, Deserialize, Clone, Debug, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct Condition {
    r#type: String,
    status: String,
    reason: String,
    last_transition_time: String,
    observed_generation: i64,
}

pub async fn run(options: &BTreeMap<&str, &str>) -> Cell {
    let mut config = kube::Config::new(options["url"].parse().expect("an address"));
    config.root_cert_file = options.get("ca").map(Into::into);
    let client = Client::try_from(config).expect("a client");
    match options["kind"] {
        "databases" => measure::<Database>(client, options).await,
        "pods" => measure::<Pod>(client, options).await,
        other => panic!("unknown kind: {other}"),
    }
}

/// What [`measure`] needs of a kind.
trait Watched:
    Resource<DynamicType = ()> + Lookup<DynamicType = ()> + DeserializeOwned + Clone + Debug + Send + Sync + 'static
{
}

impl Watched for Pod {}
impl Watched for Database {}

async fn measure<K: Watched>(client: Client, options: &BTreeMap<&str, &str>) -> Cell {
    let (objects, events) = (number(options, "objects"), number(options, "events"));
    let (before, began) = (process::anonymous(), Instant::now());
    let (reader, stream) = watch::<K>(&client, "", options);
    let mut stream = std::pin::pin!(stream);
    let others = if number(options, "others") > 0 { watch_others::<K>(&client, options) } else { JoinSet::new() };
    until_synced(&mut stream).await;
    while reader.len() < objects {
        stream.try_next().await.expect("the watch goes on");
    }
    others.join_all().await;
    let processor = process::processor();
    let mut cell =
        Cell::from([("seconds", began.elapsed().as_secs_f64()), ("peak", process::peak()), ("processor", processor)]);
    if options.contains_key("relist") {
        settle(&mut stream).await;
        cell.insert("steady", process::resident());
        process::reset_peak();
        changes(stream.as_mut(), events, None).await;
        tokio::time::sleep(SETTLED).await;
        cell.insert("relist_peak", process::peak());
    } else if options.contains_key("latency") {
        let (_, mut latencies) = changes(stream.as_mut(), events, Some(&reader)).await;
        latencies.sort_by(f64::total_cmp);
        let part = |percent: usize| latencies[(latencies.len() - 1) * percent / 100];
        cell.insert("latency_50", part(50));
        cell.insert("latency_99", part(99));
    } else if events > 0 {
        cell.insert("rate", changes(stream.as_mut(), events, None).await.0);
        cell.insert("processor_each", (process::processor() - processor) / events as f64);
    } else {
        settle(&mut stream).await;
        let kept = process::anonymous() - before;
        cell.insert("kept", kept);
        cell.insert("bytes_per_object", kept / objects as f64);
    }
    cell
}

/// Watches the objects that a selector of labels selects.
fn watch<K: Watched>(
    client: &Client,
    selector: &str,
    options: &BTreeMap<&str, &str>,
) -> (Store<K>, impl Stream<Item = watcher::Result<watcher::Event<K>>> + Send + use<K>) {
    let mut config = watcher::Config::default();
    if options.contains_key("watch-list") {
        config = config.streaming_lists();
    }
    if !selector.is_empty() {
        config = config.labels(selector);
    }
    let (reader, writer) = reflector::store::<K>();
    let watch = watcher(Api::<K>::all(client.clone()), config);
    let watch = if options.contains_key("pruned") {
        watch.modify(|object| object.managed_fields_mut().clear()).left_stream()
    } else {
        watch.right_stream()
    };
    (reader, watch.default_backoff().reflect(writer))
}

/// Watches the other objects of the server, each twenty-ninth part in a store, and two parts of the objects of the kind. The tasks end
/// when the stores are filled.
fn watch_others<K: Watched>(client: &Client, options: &BTreeMap<&str, &str>) -> JoinSet<()> {
    let mut others = JoinSet::new();
    for part in 0..29 {
        let (reader, stream) = watch::<Database>(client, &format!("part={part}.29"), options);
        others.spawn(until_filled(reader, stream));
    }
    for part in 0..2 {
        let (reader, stream) = watch::<K>(client, &format!("part={part}.50"), options);
        others.spawn(until_filled(reader, stream));
    }
    others
}

/// Drives a watch in a task of its own, and waits until the store is filled.
async fn until_filled<K: Watched>(reader: Store<K>, stream: impl Stream<Item: Send> + Send + 'static) {
    tokio::spawn(stream.for_each(|_| std::future::ready(())));
    reader.wait_until_ready().await.expect("the watch goes on");
    // The store lives as long as the process, like the store of a controller.
    std::mem::forget(reader);
}

/// The time after which memory is measured as steady.
const SETTLED: Duration = Duration::from_secs(1);

async fn settle<T>(stream: &mut (impl Stream<Item = T> + Unpin)) {
    let _ = tokio::time::timeout(SETTLED, async { while stream.next().await.is_some() {} }).await;
}

async fn until_synced<K>(stream: &mut (impl Stream<Item = watcher::Result<watcher::Event<K>>> + Unpin)) {
    while let Some(event) = stream.next().await {
        if let Ok(watcher::Event::InitDone) = event {
            return;
        }
    }
}

/// Returns the changes a second that pass a predicate and the scheduler, the queue of a controller. With a store, returns the seconds from
/// the sending of each change to its worker, too.
async fn changes<K: Watched>(
    stream: Pin<&mut (impl Stream<Item = watcher::Result<watcher::Event<K>>> + Send)>,
    events: usize,
    store: Option<&Store<K>>,
) -> (f64, Vec<f64>) {
    let began = OnceLock::new();
    let requests = stream.filter_map(|event| {
        let request = match event {
            Ok(watcher::Event::Apply(object)) => {
                began.get_or_init(Instant::now);
                (!object.labels().contains_key("bench.example.com/ignored")).then(|| ScheduleRequest {
                    message: ObjectRef::from_obj(&object),
                    run_at: tokio::time::Instant::now(),
                })
            }
            _ => None,
        };
        std::future::ready(request)
    });
    let mut queue = std::pin::pin!(scheduler(requests));
    let mut latencies = Vec::new();
    for _ in 0..events {
        let key = queue.next().await.expect("the watch goes on");
        if let Some(object) = store.and_then(|store| store.get(&key)) {
            let now = SystemTime::now().duration_since(SystemTime::UNIX_EPOCH).unwrap_or_default();
            let sent = object.resource_version().and_then(|version| version.parse().ok()).unwrap_or_default();
            latencies.push(now.as_micros().saturating_sub(sent) as f64 / 1e6);
        }
    }
    let seconds = began.get().expect("there were changes").elapsed().as_secs_f64();
    (events as f64 / seconds, latencies)
}
