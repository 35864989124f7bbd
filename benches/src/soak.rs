//! Ten million changes from the bytes of a watch to a worker: the memory stays where it is.
//!
//! Objects change, vanish and come back under new resourceVersions; at times the watch expires and everything
//! is listed again; keys fail and wait, and some keys come only once. No clock is read: each change takes a
//! microsecond, and every run does the same.

use crate::cell::Cell;
use crate::corpus::{Kind, Objects};
use crate::process;
use bytes::{Bytes, BytesMut};
use futures::FutureExt;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, Instant};
use windlass_cache::{
    Delta, InformerCore, InformerOptions, ObjectKey, RawObject, Reflector, ReflectorAction, ReflectorConfig,
    ReflectorId, ScanOptions, Subscription, SubscriptionGuard,
};
use windlass_workqueue::AddOptions;
use windlass_workqueue::core::{Config, Queue, Timestamp};

#[derive(clap::Args)]
pub(crate) struct Args {
    #[arg(long, default_value_t = 10_000_000)]
    events: usize,
    #[arg(long, default_value_t = 10_000)]
    objects: usize,
}

/// Growth of the memory from the first quarter to the end that is taken for a leak.
const FLAT: f64 = 1.05;

/// The most idle keys that the queue keeps in memory.
const IDLE_KEYS: usize = 10_000;

/// Runs all events; fails if the memory has grown, or if the cache differs from the server.
pub(crate) fn run(args: &Args) -> Cell {
    let mut cluster = Cluster::new(args.objects);
    let mut operator = Operator::new();
    let began = Instant::now();
    let relists = 20;
    let mut early = None;
    for round in 0..relists {
        operator.begin(cluster.list());
        let until = args.events * (round + 1) / relists;
        while cluster.changes < until {
            operator.receive(cluster.change());
        }
        operator.expire();
        if early.is_none() && cluster.changes >= args.events / 4 {
            early = Some(Weight::of(&operator));
        }
    }
    operator.begin(cluster.list());
    assert_eq!(operator.keys(), cluster.keys(), "the cache is what the server has");
    let (early, late) = (early.expect("a quarter has been done"), Weight::of(&operator));
    early.assert_flat(&late);
    let keys = operator.handler.queue.known_keys();
    assert!(keys <= args.objects + IDLE_KEYS, "the queue has {keys} keys in memory");
    Cell::rate(cluster.changes as f64 / began.elapsed().as_secs_f64())
        .with("events", cluster.changes as f64)
        .with("relists", relists as f64)
        .with("early", early.resident)
        .with("late", late.resident)
        .with("store", late.store)
        .with("queue_keys", keys as f64)
}

/// The measured memory. A leak would show here.
struct Weight {
    resident: f64,
    store: f64,
}

impl Weight {
    fn of(operator: &Operator) -> Self {
        Self {
            resident: process::resident() as f64,
            store: operator.informer.store().memory().total() as f64,
        }
    }

    fn assert_flat(&self, late: &Self) {
        for (name, early, late) in
            [("the memory", self.resident, late.resident), ("the store", self.store, late.store)]
        {
            assert!(late <= early * FLAT, "{name} has grown from {early} to {late}");
        }
    }
}

/// The objects of a server, and the events that the server sends.
struct Cluster {
    corpus: Objects,
    /// Where the nine digits of each object's resourceVersion are.
    versions: Vec<usize>,
    /// The revision of each object that is there.
    present: Vec<Option<usize>>,
    revision: usize,
    changes: usize,
}

const VERSION: &[u8] = br#""resourceVersion":""#;
const DIGITS: usize = 9;
const FIRST_REVISION: usize = 100_000_000;

impl Cluster {
    fn new(objects: usize) -> Self {
        let corpus = Objects::uniform(Kind::Databases, objects, 42);
        let find = |number| {
            let object = corpus.object(number);
            let at = object.windows(VERSION.len()).position(|window| window == VERSION);
            at.expect("every object has one") + VERSION.len()
        };
        let versions = (0..objects).map(find).collect();
        Self {
            corpus,
            versions,
            present: vec![Some(FIRST_REVISION); objects],
            revision: FIRST_REVISION,
            changes: 0,
        }
    }

    /// Returns all objects, as the beginning of a watch.
    fn list(&self) -> Bytes {
        let mut lines = BytesMut::new();
        for (number, revision) in self.present.iter().enumerate() {
            lines.extend(revision.map(|revision| self.line("ADDED", number, revision)));
        }
        let end = format!(
            r#"{{"type":"BOOKMARK","object":{{"kind":"Database","apiVersion":"db.example.com/v1","metadata":{{"resourceVersion":"{}","annotations":{{"k8s.io/initial-events-end":"true"}}}}}}}}"#,
            self.revision
        );
        lines.extend_from_slice(end.as_bytes());
        lines.extend_from_slice(b"\n");
        lines.freeze()
    }

    /// Returns the next change: one object in twenty vanishes, and returns a round later.
    fn change(&mut self) -> Bytes {
        let number = self.changes % self.present.len();
        let round = self.changes / self.present.len();
        self.changes += 1;
        self.revision += 1;
        let event = match (self.present[number], (number + round) % 20) {
            (Some(_), 0) => "DELETED",
            (Some(_), _) => "MODIFIED",
            (None, _) => "ADDED",
        };
        self.present[number] = (event != "DELETED").then_some(self.revision);
        self.line(event, number, self.revision)
    }

    fn line(&self, event: &str, number: usize, revision: usize) -> Bytes {
        let head = format!(r#"{{"type":"{event}","object":"#);
        let mut line = BytesMut::with_capacity(2048);
        line.extend_from_slice(head.as_bytes());
        line.extend_from_slice(self.corpus.object(number));
        let at = head.len() + self.versions[number];
        line[at..at + DIGITS].copy_from_slice(revision.to_string().as_bytes());
        line.extend_from_slice(b"}\n");
        line.freeze()
    }

    fn keys(&self) -> usize {
        self.present.iter().flatten().count()
    }
}

/// The way of a change through an operator, without the network and without threads.
struct Operator {
    reflector: Reflector,
    informer: InformerCore,
    registration: SubscriptionGuard,
    subscription: Subscription,
    handler: Enqueue,
    now: Instant,
}

const SOURCE: ReflectorId = ReflectorId(0);

/// The time that a change takes.
const EACH: Duration = Duration::from_micros(1);

impl Operator {
    fn new() -> Self {
        let now = Instant::now();
        let informer = InformerCore::new(InformerOptions::default());
        let (registration, subscription) = informer.subscribe();
        let reflector =
            Reflector::new(ReflectorConfig::new("databases.db.example.com"), &ScanOptions::default(), now);
        let handler = Enqueue { queue: Queue::new(&Config::default()), now: AtomicU64::new(0) };
        Self { reflector, informer, registration, subscription, handler, now }
    }

    /// Sends the request that is wanted, however long that takes to be due, and receives the list.
    fn begin(&mut self, list: Bytes) {
        loop {
            match self.informer.feed(SOURCE, |sink| self.reflector.poll(self.now, sink)) {
                ReflectorAction::Sleep { until } => self.now = until,
                ReflectorAction::Receive { .. } => panic!("a watch is under way"),
                ReflectorAction::Send(_) => break,
            }
        }
        self.informer.feed(SOURCE, |sink| self.reflector.on_response(self.now, 200, None, sink));
        self.receive(list);
    }

    fn receive(&mut self, piece: Bytes) {
        self.now += EACH;
        self.handler.now.fetch_add(EACH.as_nanos() as u64, Ordering::Relaxed);
        self.informer.feed(SOURCE, |sink| self.reflector.on_bytes(self.now, piece, sink));
        while self.registration.backlog() > 0 {
            self.subscription.deliver(&mut |delta| self.handler.handle(delta)).now_or_never();
        }
        self.handler.work_off();
    }

    fn expire(&mut self) {
        self.receive(Bytes::from_static(crate::server::GONE.as_bytes()));
    }

    fn keys(&self) -> usize {
        self.informer.store().len()
    }
}

/// Adds the keys of changes.
struct Enqueue {
    queue: Queue<ObjectKey>,
    now: AtomicU64,
}

impl Enqueue {
    fn add(&self, object: &RawObject) {
        // A tenth has failed before and waits; a fifth brings a key that never comes again.
        let revision = object.revision();
        let usual = AddOptions::new();
        let options = if revision.is_multiple_of(10) { usual.rate_limited() } else { usual };
        let _ = self.queue.add(object.key(), options, self.tick());
        if revision.is_multiple_of(5) {
            let once = ObjectKey::new(Some("once"), &format!("key-{revision}"));
            let _ = self.queue.add(once, AddOptions::new(), self.tick());
        }
    }

    fn tick(&self) -> Timestamp {
        Timestamp::from_nanos(self.now.load(Ordering::Relaxed))
    }

    fn work_off(&self) {
        let now = self.tick();
        while let Some(item) = self.queue.get(now) {
            item.forget();
            let _ = self.queue.done(item, now);
        }
    }
}

impl Enqueue {
    fn handle(&self, delta: &Delta) {
        match delta {
            Delta::Updated { old, new } if old.resource_version() == new.resource_version() => {}
            _ => self.add(delta.object()),
        }
    }
}
