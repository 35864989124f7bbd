//! A virtual day of a cluster: each hour, a twelfth of the charts is replaced by other charts, an eighth of the pods is replaced by new pods, and
//! pods change. At the end, memory and speed are compared with a cache that has just listed the same pods.

use std::collections::BTreeMap;
use std::time::Instant;

use bytes::{Bytes, BytesMut};
use windlass_cache::{
    InformerCore, InformerOptions, Reflector, ReflectorAction, ReflectorConfig, ReflectorId, ScanOptions,
};

use crate::cell::Cell;
use crate::corpus::{Charts, Corpus, Objects};
use crate::process;
use crate::random::Random;

#[derive(clap::Args)]
pub(crate) struct Args {
    #[arg(long, default_value_t = 20_000)]
    objects: usize,
    #[arg(long, default_value_t = 24)]
    hours: usize,
    #[arg(long, default_value_t = 42)]
    seed: u64,
}

/// The most memory at the end, relative to the memory after a fresh list.
const MOST: f64 = 1.1;
/// The part of the pods that is replaced in an hour.
const REPLACED: usize = 8;
/// The charts that are replaced in an hour: a twelfth.
const REPLACED_CHARTS: usize = 38;

/// Runs the day.
///
/// # Panics
/// The memory is larger than after a fresh list, or the cache does not hold the pods of the cluster.
pub(crate) fn run(args: &Args) -> Cell {
    let mut cluster = Cluster::new(args);
    let mut cache = Cache::new();
    cache.list(&cluster.list());
    let mut events = 0;
    for _ in 0..args.hours {
        let lines = cluster.hour();
        events += lines.len();
        lines.into_iter().for_each(|line| cache.receive(line));
    }
    let mut fresh = Cache::new();
    fresh.list(&cluster.list());
    cache.assert_same(&fresh);
    let (memory, fresh_memory) = (cache.memory(), fresh.memory());
    let ratio = memory / fresh_memory;
    assert!(
        ratio <= MOST,
        "the memory, {memory} bytes, is {ratio:.2} times that of a fresh list, {fresh_memory} bytes"
    );
    let lines = cluster.touch_all();
    let (late, early) = (cache.rate(&lines), fresh.rate(&lines));
    Cell::rate(late)
        .with("fresh_rate", early)
        .with("events", events as f64)
        .with("bytes_per_object", cache.memory() / cluster.pods.len() as f64)
        .with("memory_ratio", ratio)
}

/// The pods of the cluster, by namespace and name.
struct Cluster {
    pods: BTreeMap<String, Vec<u8>>,
    charts: Charts,
    random: Random,
    revision: u64,
    replaced: usize,
}

/// The resource version in generated pods has nine digits.
const VERSION: &str = r#""resourceVersion":""#;
const DIGITS: usize = 9;

impl Cluster {
    fn new(args: &Args) -> Self {
        let mut random = Random::new(args.seed);
        let charts = Charts::new(&mut random);
        let corpus = Corpus::of_charts(&mut random, &charts, args.objects, 0);
        let mut cluster = Self {
            pods: BTreeMap::new(),
            charts,
            random,
            revision: 300_000_000,
            replaced: args.objects / REPLACED,
        };
        each(&corpus.objects).for_each(|pod| drop(cluster.put(pod)));
        cluster
    }

    fn put(&mut self, pod: &[u8]) -> Vec<u8> {
        self.revision += 1;
        let pod = at_revision(pod, self.revision);
        self.pods.insert(key(&pod), pod.clone());
        pod
    }

    /// Returns the events of an hour.
    fn hour(&mut self) -> Vec<Bytes> {
        let mut lines = Vec::new();
        for _ in 0..self.replaced {
            let place = self.random.below(self.pods.len() as u64) as usize;
            let Some(key) = self.pods.keys().nth(place).cloned() else { break };
            let Some(pod) = self.pods.remove(&key) else { break };
            self.revision += 1;
            lines.push(line("DELETED", &at_revision(&pod, self.revision)));
        }
        self.charts.replace(&mut self.random, REPLACED_CHARTS);
        let new = Corpus::of_charts(&mut self.random, &self.charts, self.replaced, self.replaced);
        let states = each(&new.objects).chain(each(&new.changes));
        lines.extend(states.map(|pod| line("MODIFIED", &self.put(pod))));
        lines
    }

    /// Returns an event for each pod, which moves the resource version only.
    fn touch_all(&mut self) -> Vec<Bytes> {
        let pods: Vec<Vec<u8>> = self.pods.values().cloned().collect();
        pods.iter().map(|pod| line("MODIFIED", &self.put(pod))).collect()
    }

    fn list(&self) -> Bytes {
        let head = format!(r#"{{"metadata":{{"resourceVersion":"{}"}},"items":["#, self.revision);
        let pods: Vec<&[u8]> = self.pods.values().map(Vec::as_slice).collect();
        [head.as_bytes(), &pods.join(&b','), b"]}"].concat().into()
    }
}

fn each(objects: &Objects) -> impl Iterator<Item = &[u8]> {
    (0..objects.len()).map(|number| objects.object(number))
}

fn at_revision(pod: &[u8], revision: u64) -> Vec<u8> {
    let mut pod = pod.to_vec();
    let version = pod.windows(VERSION.len()).position(|text| text == VERSION.as_bytes());
    let at = version.expect("a pod has a resource version") + VERSION.len();
    pod[at..at + DIGITS].copy_from_slice(revision.to_string().as_bytes());
    pod
}

/// Returns the namespace and the name of a pod.
fn key(pod: &[u8]) -> String {
    let pod = windlass_cache::RawObject::from_json(pod).expect("a pod");
    pod.key().to_string()
}

fn line(event: &str, pod: &[u8]) -> Bytes {
    let mut line = BytesMut::from(format!(r#"{{"type":"{event}","object":"#).as_bytes());
    line.extend_from_slice(pod);
    line.extend_from_slice(b"}\n");
    line.freeze()
}

/// A cache without network and handlers.
struct Cache {
    reflector: Reflector,
    informer: InformerCore,
    now: Instant,
}

const SOURCE: ReflectorId = ReflectorId(0);

impl Cache {
    fn new() -> Self {
        let now = Instant::now();
        let config = ReflectorConfig { watch_list: false, ..ReflectorConfig::new("pods") };
        let options = ScanOptions { one_kind: true, ..ScanOptions::default() };
        let reflector = Reflector::new(config, &options, now);
        Self { reflector, informer: InformerCore::new(InformerOptions::default()), now }
    }

    /// Receives a list, and begins a watch.
    fn list(&mut self, body: &Bytes) {
        self.begin();
        self.receive(body.clone());
        self.informer.feed(SOURCE, |sink| self.reflector.on_end(self.now, None, sink));
        self.begin();
    }

    fn begin(&mut self) {
        while let ReflectorAction::Sleep { until } =
            self.informer.feed(SOURCE, |sink| self.reflector.poll(self.now, sink))
        {
            self.now = until;
        }
        self.informer.feed(SOURCE, |sink| self.reflector.on_response(self.now, 200, None, sink));
    }

    fn receive(&mut self, piece: Bytes) {
        self.informer.feed(SOURCE, |sink| self.reflector.on_bytes(self.now, piece, sink));
    }

    fn memory(&self) -> f64 {
        self.informer.store().memory().total() as f64
    }

    /// Returns the events a second of processor time.
    fn rate(&mut self, lines: &[Bytes]) -> f64 {
        let began = process::processor_of_thread();
        lines.iter().for_each(|line| self.receive(line.clone()));
        lines.len() as f64 / (process::processor_of_thread() - began)
    }

    fn assert_same(&self, other: &Self) {
        let store = other.informer.store();
        assert_eq!(self.informer.store().len(), store.len(), "both caches hold the pods of the cluster");
        for object in self.informer.store().list() {
            let same = store.get(&object.key());
            assert!(same.is_some_and(|same| same.json() == object.json()), "{object:?} is the same in both");
        }
    }
}
