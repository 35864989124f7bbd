//! The cost of reads from a filled cache, in nanoseconds.

use crate::cell::Cell;
use crate::corpus::Kind;
use k8s_openapi::api::core::v1::Pod;
use k8s_openapi::apimachinery::pkg::apis::meta::v1::{Condition, ObjectMeta};
use kube_core::DynamicObject;
use serde::de::DeserializeOwned;
use std::hint::black_box;
use std::time::Instant;
use windlass_cache::{ObjectKey, RawObject};
use windlass_runtime::informer::SharedInformer;

/// The custom resource, declared as in an operator.
#[derive(serde::Deserialize)]
#[serde(rename_all = "camelCase")]
#[expect(dead_code, reason = "decoded, as an operator's would be")]
struct Database {
    metadata: ObjectMeta,
    spec: DatabaseSpec,
    status: Option<DatabaseStatus>,
}

#[derive(serde::Deserialize)]
#[expect(dead_code, reason = "decoded, as an operator's would be")]
struct DatabaseSpec {
    replicas: i32,
    version: String,
    image: String,
    storage: Storage,
    backup: Backup,
}

#[derive(serde::Deserialize)]
#[expect(dead_code, reason = "decoded, as an operator's would be")]
struct Storage {
    size: String,
    class: String,
}

#[derive(serde::Deserialize)]
#[serde(rename_all = "camelCase")]
#[expect(dead_code, reason = "decoded, as an operator's would be")]
struct Backup {
    schedule: String,
    retention_days: i32,
}

#[derive(serde::Deserialize)]
#[serde(rename_all = "camelCase")]
#[expect(dead_code, reason = "decoded, as an operator's would be")]
struct DatabaseStatus {
    phase: String,
    observed_generation: i64,
    ready_replicas: i32,
    conditions: Vec<Condition>,
}

/// An index with about a hundred objects for each value.
pub(crate) struct Hundreds;

impl Hundreds {
    pub(crate) const NAME: &str = "hundreds";

    pub(crate) fn value(object: &RawObject) -> String {
        (object.revision() / 100).to_string()
    }
}

/// Repeats `work` and returns the total time in nanoseconds.
fn timed(times: usize, mut work: impl FnMut()) -> f64 {
    let began = Instant::now();
    (0..times).for_each(|_| work());
    began.elapsed().as_nanos() as f64
}

pub(crate) fn measure(kind: Kind, informer: &SharedInformer<DynamicObject>, cell: Cell) -> Cell {
    match kind {
        Kind::Databases => of::<Database>(informer, cell),
        Kind::Pods => of::<Pod>(informer, cell),
    }
}

fn of<K: DeserializeOwned + Send + Sync + 'static>(
    informer: &SharedInformer<DynamicObject>,
    cell: Cell,
) -> Cell {
    let (store, lister) = (informer.store(), informer.read_as::<K>().lister());
    let objects = store.list();
    // Spread over the cache, and few enough that all decoded objects are retained.
    let keys: Vec<ObjectKey> = objects.iter().step_by(objects.len() / 100).map(RawObject::key).collect();
    let typed = || keys.iter().for_each(|key| drop(black_box(lister.get(key))));
    let cold = timed(1, typed) / keys.len() as f64;
    let memoised = timed(1000, typed) / (1000 * keys.len()) as f64;
    let get = timed(1000, || keys.iter().for_each(|key| drop(black_box(store.get(key)))))
        / (1000 * keys.len()) as f64;

    let hundred = Hundreds::value(&objects[objects.len() / 2]);
    assert_eq!(store.by_index(Hundreds::NAME, &hundred).map(|found| found.len()), Ok(100));
    let by_index = timed(1000, || drop(black_box(store.by_index(Hundreds::NAME, &hundred)))) / 1000.0;
    let list_raw = timed(10, || drop(black_box(store.list()))) / 10.0;
    let list_typed = timed(1, || drop(black_box(lister.all())));
    let list_typed_warm = timed(10, || drop(black_box(lister.all()))) / 10.0;
    cell.with("typed_cold_ns", cold)
        .with("typed_memoised_ns", memoised)
        .with("get_ns", get)
        .with("index_100_ns", by_index)
        .with("list_raw_ns", list_raw)
        .with("list_typed_ns", list_typed)
        .with("list_typed_warm_ns", list_typed_warm)
        .with("decoded_bytes", informer.metrics().decoded_bytes as f64)
}
