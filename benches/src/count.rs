//! The hot paths alone, to count their instructions: the same work in every run.

use crate::corpus::{Kind, Objects};
use std::hint::black_box;
use windlass_cache::{
    ObjectRef, RawObject, ReflectorId, ScanOptions, Scanner, Store, StoreOptions, StoreWriter,
};
use windlass_workqueue::AddOptions;
use windlass_workqueue::core::{Config, Queue, Timestamp};

/// The counted path.
#[derive(Clone, Copy, clap::ValueEnum)]
pub(crate) enum Path {
    /// A pod, from bytes to an object
    ScanPod,
    /// A custom resource, from an object into the store
    StoreInsert,
    /// A key, added, handed out and finished
    QueueAddGetDone,
}

const SEED: u64 = 42;

pub(crate) fn run(path: Path, times: usize) {
    match path {
        Path::ScanPod => scan(times),
        Path::StoreInsert => insert(times),
        Path::QueueAddGetDone => queue(times),
    }
}

fn scan(times: usize) {
    let corpus = Objects::uniform(Kind::Pods, 50, SEED);
    let mut scanner = Scanner::new(&ScanOptions::default());
    for number in 0..times {
        black_box(scanner.object(corpus.object(number % corpus.len())).expect("a pod"));
    }
}

fn insert(times: usize) {
    let corpus = Objects::uniform(Kind::Databases, 1000, SEED);
    let mut scanner = Scanner::new(&ScanOptions::default());
    let objects: Vec<RawObject> =
        (0..corpus.len()).map(|number| scanner.object(corpus.object(number)).expect("a database")).collect();
    let (store, mut writer) = Store::new(StoreOptions::default());
    for object in objects.iter().take(times) {
        upsert(&mut writer, object);
    }
    black_box(store.len());
}

fn upsert(writer: &mut StoreWriter, object: &RawObject) {
    let object_ref = ObjectRef::of(ReflectorId(0), object);
    let deltas = writer.write(|transaction| {
        transaction.upsert(object_ref, false, |_| Ok(object.clone())).expect("it has been scanned");
        transaction.take_deltas()
    });
    black_box(deltas);
}

fn queue(times: usize) {
    let queue: Queue<u64> = Queue::new(&Config::default());
    let now = Timestamp::from_nanos(1);
    for key in (0..100).cycle().take(times) {
        let _ = black_box(queue.add(key, AddOptions::new(), now));
        let item = queue.get(now).expect("it was added");
        let _ = black_box(queue.done(item, now));
    }
}
