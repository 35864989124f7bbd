//! The hot paths alone, to count their instructions: the same work in every run.

use crate::corpus::{Corpus, Kind};
use std::hint::black_box;
use windlass_cache::{RawObject, ScanOptions, Scanner, Sighting, SourceId, Store, StoreOptions, Writer};
use windlass_workqueue::{AddOptions, Config, Queue, Slot, Tick};

/// What is counted.
#[derive(Clone, Copy, clap::ValueEnum)]
pub(crate) enum Path {
    /// One pod, from bytes to an object
    ScanPod,
    /// One custom resource, from an object into the store
    StoreInsert,
    QueueAdd,
    QueueGetDone,
}

const SEED: u64 = 42;

pub(crate) fn run(path: Path, times: usize) {
    match path {
        Path::ScanPod => scan(times),
        Path::StoreInsert => insert(times),
        Path::QueueAdd | Path::QueueGetDone => queue(path, times),
    }
}

fn scan(times: usize) {
    let corpus = Corpus::new(Kind::Pods, 50, SEED);
    let mut scanner = Scanner::new(&ScanOptions::default());
    for number in 0..times {
        black_box(scanner.object(corpus.object(number % corpus.len())).expect("a pod"));
    }
}

fn insert(times: usize) {
    let corpus = Corpus::new(Kind::Databases, 1000, SEED);
    let mut scanner = Scanner::new(&ScanOptions::default());
    let objects: Vec<RawObject> =
        (0..corpus.len()).map(|number| scanner.object(corpus.object(number)).expect("a database")).collect();
    let (store, mut writer) = Store::new(StoreOptions::default());
    for object in objects.iter().take(times) {
        upsert(&mut writer, object);
    }
    black_box(store.len());
}

pub(crate) fn upsert(writer: &mut Writer, object: &RawObject) {
    let sighting = Sighting {
        source: SourceId(0),
        namespace: object.namespace(),
        name: object.name(),
        uid: object.uid(),
        resource_version: object.resource_version(),
    };
    let deltas = writer.write(|transaction| {
        transaction.upsert(sighting, false, || Ok(object.clone())).expect("it has been scanned");
        transaction.take_deltas()
    });
    black_box(deltas);
}

fn queue(path: Path, times: usize) {
    // As many slots in every run, so that what comes before and after is the same.
    const KEYS: usize = 10_000;
    let queue: Queue<u64> = Queue::new(&Config::default());
    let slots: Vec<Slot<u64>> = (0..KEYS as u64).map(|key| queue.intern(key)).collect();
    let now = Tick::from_nanos(1);
    let added = if let Path::QueueAdd = path { times } else { KEYS };
    for slot in &slots[..added] {
        let _ = black_box(queue.add_slot(slot, AddOptions::default(), now));
    }
    if let Path::QueueGetDone = path {
        for _ in 0..times {
            let lease = queue.get(now).expect("it was added");
            let _ = black_box(queue.done(lease, now));
        }
    }
    // Not dropped: taking down what is left is not the path.
    std::mem::forget((queue, slots));
}
