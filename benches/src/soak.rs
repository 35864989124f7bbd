//! Ten million changes through scan, store and queue: the memory stays where it is.

use crate::cell::Cell;
use crate::corpus::{Corpus, Kind};
use crate::{count, process};
use std::time::{Duration, Instant};
use windlass_cache::{ObjectKey, RawObject, ScanOptions, Scanner, Store, StoreOptions};
use windlass_workqueue::{AddOptions, Config, Queue, Tick};

const OBJECTS: usize = 10_000;

/// Growth of the memory from the first tenth to the end that is taken for a leak.
const FLAT: f64 = 1.05;

/// Runs until so many events have gone through, or the time is over; fails if the memory has grown.
pub(crate) fn run(events: usize, limit: Duration) -> Cell {
    let versions = [Corpus::new(Kind::Databases, OBJECTS, 42), Corpus::changed(Kind::Databases, OBJECTS, 42)];
    let mut scanner = Scanner::new(&ScanOptions::default());
    let (store, mut writer) = Store::new(StoreOptions::default());
    let queue: Queue<ObjectKey> = Queue::new(&Config::default());
    let began = Instant::now();
    let (mut done, mut early) = (0, None);
    while done < events && began.elapsed() < limit {
        let corpus = &versions[done / OBJECTS % 2];
        let object: RawObject = scanner.object(corpus.object(done % OBJECTS)).expect("a database");
        count::upsert(&mut writer, &object);
        let now = Tick::from(began.elapsed());
        // A tenth of the keys fail and come back later, a hundredth are new and never come again.
        let options = AddOptions { rate_limited: done % 10 == 0, ..AddOptions::default() };
        let _ = queue.add(object.key(), options, now);
        if done % 100 == 0 {
            let _ =
                queue.add(ObjectKey::new(Some("once"), &format!("key-{done}")), AddOptions::default(), now);
        }
        while let Some(lease) = queue.get(now) {
            lease.forget();
            let _ = queue.done(lease, now);
        }
        done += 1;
        if early.is_none() && done >= events / 10 {
            early = Some(process::resident());
        }
    }
    assert_eq!(store.len(), OBJECTS.min(done));
    let (early, late) = (early.unwrap_or_else(process::resident) as f64, process::resident() as f64);
    assert!(late <= early * FLAT, "the memory has grown from {early} to {late} bytes");
    Cell::rate(done as f64 / began.elapsed().as_secs_f64())
        .with("events", done as f64)
        .with("early", early)
        .with("late", late)
        .with("slots", queue.slots() as f64)
}
