//! A reflector, fed by the byte server, and a scheduler, in the same order as in a controller of
//! kube-runtime. The reflector has no indexes and no metrics, and therefore does less work than the informer
//! of Windlass.

use crate::{Cell, number, process};
use futures::{Stream, StreamExt, TryStreamExt};
use k8s_openapi::api::core::v1::Pod;
use kube::runtime::reflector::{self, Lookup, ObjectRef};
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
use std::time::{Duration, Instant};

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

async fn measure<K>(client: Client, options: &BTreeMap<&str, &str>) -> Cell
where
    K: Resource<DynamicType = ()> + Lookup<DynamicType = ()> + DeserializeOwned + Clone + Debug + Send + Sync + 'static,
{
    let (objects, events) = (number(options, "objects"), number(options, "events"));
    let (before, began) = (process::anonymous(), Instant::now());
    let config = if options.contains_key("watch-list") {
        watcher::Config::default().streaming_lists()
    } else {
        watcher::Config::default()
    };
    let (reader, writer) = reflector::store::<K>();
    let watch = watcher(Api::<K>::all(client), config);
    let watch = if options.contains_key("pruned") {
        watch.modify(|object| object.managed_fields_mut().clear()).left_stream()
    } else {
        watch.right_stream()
    };
    let mut stream = std::pin::pin!(watch.default_backoff().reflect(writer));
    until_synced(&mut stream).await;
    while reader.len() < objects {
        stream.try_next().await.expect("the watch goes on");
    }
    let processor = process::processor();
    let mut cell =
        Cell::from([("seconds", began.elapsed().as_secs_f64()), ("peak", process::peak()), ("processor", processor)]);
    if options.contains_key("relist") {
        settle(&mut stream).await;
        cell.insert("steady", process::resident());
        process::reset_peak();
        changes(stream.as_mut(), events).await;
        tokio::time::sleep(SETTLED).await;
        cell.insert("relist_peak", process::peak());
    } else if events > 0 {
        cell.insert("rate", changes(stream.as_mut(), events).await);
        cell.insert("processor_each", (process::processor() - processor) / events as f64);
    } else {
        settle(&mut stream).await;
        cell.insert("bytes_per_object", (process::anonymous() - before) / objects as f64);
    }
    cell
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

/// Returns the changes a second that pass a predicate and the scheduler, the queue of a controller.
async fn changes<K>(
    stream: Pin<&mut (impl Stream<Item = watcher::Result<watcher::Event<K>>> + Send)>,
    events: usize,
) -> f64
where
    K: Resource<DynamicType = ()> + Lookup<DynamicType = ()> + Clone + Send + 'static,
{
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
    for _ in 0..events {
        std::hint::black_box(queue.next().await.expect("the watch goes on"));
    }
    events as f64 / began.get().expect("there were changes").elapsed().as_secs_f64()
}
