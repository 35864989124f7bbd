//! An informer, fed by the byte server: time to sync, memory, and the rate at which changes reach a queue.

use crate::cell::Cell;
use crate::corpus::Kind;
use crate::process;
use crate::reads::Hundreds;
use kube_core::{ApiResource, DynamicObject};
use std::path::PathBuf;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::{Duration, Instant, SystemTime};
use tokio::sync::Notify;
use windlass_cache::{Delta, IndexFn, ObjectKey, ReflectorConfig, Store};
use windlass_runtime::informer::{
    CacheOptions, HandlerOptions, ObjectEncoding, SharedInformer, SharedInformerFactory,
};
use windlass_workqueue::WorkQueue;

#[derive(Clone, Copy, PartialEq, Eq, clap::ValueEnum)]
enum TierArg {
    Raw,
    Compressed,
}

#[derive(clap::Args)]
pub(crate) struct Args {
    #[arg(long)]
    url: String,
    /// The certificate of the server.
    #[arg(long)]
    ca: Option<PathBuf>,
    #[arg(long, value_enum)]
    kind: Kind,
    #[arg(long)]
    objects: usize,
    #[arg(long, default_value_t = 0)]
    events: usize,
    #[arg(long, value_enum, default_value = "raw")]
    tier: TierArg,
    /// Uses LIST and WATCH instead of a streaming list.
    #[arg(long)]
    list: bool,
    /// Measures the memory during a relist, until the arrival of the changes that the server sends after the
    /// relist.
    #[arg(long)]
    relist: bool,
    /// The number of custom resources that the server serves besides, each thirtieth in a cache. Two further caches have a fiftieth of
    /// the objects of the kind.
    #[arg(long, default_value_t = 0)]
    others: usize,
    /// Measures the time from the sending of a change to its worker.
    #[arg(long)]
    latency: bool,
    /// Measures reads from the cache.
    #[arg(long)]
    reads: bool,
}

/// Counts notifications, and enqueues the keys of changes that pass a predicate.
struct Counter {
    added: AtomicUsize,
    passed: AtomicUsize,
    first_change: std::sync::OnceLock<Instant>,
    queue: WorkQueue<ObjectKey>,
    objects: usize,
    all_added: Notify,
}

impl Counter {
    fn handle(&self, delta: &Delta) {
        match delta {
            Delta::Added { .. } => {
                if self.added.fetch_add(1, Ordering::Relaxed) + 1 == self.objects {
                    self.all_added.notify_one();
                }
            }
            Delta::Updated { old, new } => {
                self.first_change.get_or_init(Instant::now);
                let changed = old.resource_version() != new.resource_version();
                if changed && new.label(IGNORED).is_none() {
                    self.passed.fetch_add(1, Ordering::Relaxed);
                    self.queue.add(new.key());
                }
            }
            Delta::Deleted { .. } => {}
        }
    }
}

/// A label that no object has.
const IGNORED: &str = "bench.example.com/ignored";

pub(crate) fn run(args: &Args) -> Cell {
    crate::runtime().block_on(measure(args))
}

async fn measure(args: &Args) -> Cell {
    let client = client(args);
    let before = process::anonymous();
    let began = Instant::now();
    let factory = SharedInformerFactory::builder(client).seed(1).build();
    let informer = factory.informer(resource(args.kind), options(args)).expect("nobody else watches");
    let queue: WorkQueue<ObjectKey> = WorkQueue::new("bench");
    let counter = Arc::new(Counter {
        added: AtomicUsize::new(0),
        passed: AtomicUsize::new(0),
        first_change: std::sync::OnceLock::new(),
        queue: queue.clone(),
        objects: args.objects,
        all_added: Notify::new(),
    });
    let _subscription = informer.subscribe(
        {
            let counter = Arc::clone(&counter);
            move |delta: &Delta| counter.handle(delta)
        },
        HandlerOptions::default(),
    );
    let others = others(args, &factory);
    factory.start();
    informer.synced().await;
    for other in &others {
        other.synced().await;
    }
    counter.all_added.notified().await;
    let seconds = began.elapsed().as_secs_f64();
    assert_eq!(informer.store().len(), args.objects);
    let processor = process::processor();
    let mut cell = Cell::default()
        .with("seconds", seconds)
        .with("peak", process::peak() as f64)
        .with("processor", processor);
    if args.latency {
        let mut latencies = work_off(&queue, args.events, Some(&informer.store())).await;
        latencies.sort_unstable();
        let part = |percent: usize| latencies[(latencies.len() - 1) * percent / 100] as f64 / 1e6;
        cell = cell.with("latency_50", part(50)).with("latency_99", part(99));
    } else if args.relist {
        cell = relist(args, &queue, cell).await;
        assert_eq!(informer.store().len(), args.objects);
    } else if args.events > 0 {
        work_off(&queue, args.events, None).await;
        let since = counter.first_change.get().expect("there were changes").elapsed();
        cell = cell
            .with("rate", args.events as f64 / since.as_secs_f64())
            .with("processor_each", (process::processor() - processor) / args.events as f64);
    } else {
        tokio::time::sleep(SETTLED).await;
        let kept = process::anonymous().saturating_sub(before);
        cell = cell.with("kept", kept as f64).with("bytes_per_object", kept as f64 / args.objects as f64);
    }
    if args.reads {
        cell = crate::reads::measure(args.kind, &informer, cell);
    }
    cell
}

/// The time after which memory is measured as steady.
const SETTLED: Duration = Duration::from_secs(1);

/// The number of caches of custom resources.
const OTHERS: usize = 29;
/// A filtered cache holds this part of the objects.
const FILTERED: usize = 50;
/// The number of filtered caches.
const FILTERS: usize = 2;
/// The number of watches of a process with all caches.
pub(crate) const WATCHES: usize = 1 + OTHERS + FILTERS;

/// Watches the other objects of the server, and two parts of the objects of the kind.
fn others(args: &Args, factory: &SharedInformerFactory) -> Vec<SharedInformer<DynamicObject>> {
    let count = if args.others > 0 { OTHERS } else { 0 };
    let others = (0..count).map(|number| (Kind::Databases, format!("part={number}.{OTHERS}")));
    let filtered = (0..count.min(FILTERS)).map(|number| (args.kind, format!("part={number}.{FILTERED}")));
    let watch = |(kind, selector): (Kind, String)| {
        let options = options(args).label_selector(selector.parse().expect("a selector"));
        factory.informer(resource(kind), options).expect("nobody else watches")
    };
    others.chain(filtered).map(watch).collect()
}

/// Processes `count` keys in a task, like a worker of a controller. With a store, returns the times from the sending of each change to the
/// worker, in microseconds.
async fn work_off(queue: &WorkQueue<ObjectKey>, count: usize, store: Option<&Store>) -> Vec<u128> {
    let (queue, store) = (queue.clone(), store.cloned());
    let worker = tokio::spawn(async move {
        let mut latencies = Vec::new();
        for _ in 0..count {
            let item = queue.get().await.expect("the queue is open");
            if let Some(object) = store.as_ref().and_then(|store| store.get(item.key())) {
                let now = SystemTime::now().duration_since(SystemTime::UNIX_EPOCH).unwrap_or_default();
                latencies.push(now.as_micros().saturating_sub(object.revision().into()));
            }
            item.done();
        }
        latencies
    });
    worker.await.expect("a worker does not panic")
}

/// Measures the peak memory during a relist, and the resident memory before the relist.
async fn relist(args: &Args, queue: &WorkQueue<ObjectKey>, cell: Cell) -> Cell {
    tokio::time::sleep(SETTLED).await;
    let steady = process::resident();
    process::reset_peak();
    work_off(queue, args.events, None).await;
    tokio::time::sleep(SETTLED).await;
    cell.with("steady", steady as f64).with("relist_peak", process::peak() as f64)
}

fn client(args: &Args) -> kube_client::Client {
    let mut config = kube_client::Config::new(args.url.parse().expect("an address"));
    if let Some(file) = &args.ca {
        config.root_cert_file = Some(file.clone());
    }
    windlass_runtime::client::ClientBuilder::new(config).build().expect("a client")
}

fn resource(kind: Kind) -> ApiResource {
    let (group, version, plural) = match kind {
        Kind::Databases => ("db.example.com", "v1", "databases"),
        Kind::Pods => ("", "v1", "pods"),
    };
    ApiResource {
        group: group.to_owned(),
        version: version.to_owned(),
        api_version: kind.api_version().to_owned(),
        kind: kind.kind().to_owned(),
        plural: plural.to_owned(),
    }
}

fn options(args: &Args) -> CacheOptions {
    let by_label = IndexFn::new(|object| {
        object.label("app.kubernetes.io/name").map(str::to_owned).into_iter().collect()
    });
    let mut indexes = vec![("app".to_owned(), by_label)];
    if args.reads {
        indexes.push((Hundreds::NAME.to_owned(), IndexFn::new(|object| vec![Hundreds::value(object)])));
    }
    let mut reflector = ReflectorConfig::new("");
    reflector.watch_list = !args.list;
    let mut options = CacheOptions::new()
        .encoding(match args.tier {
            TierArg::Raw => ObjectEncoding::Raw,
            TierArg::Compressed => ObjectEncoding::Compressed,
        })
        .reflector(reflector);
    options.indexes = indexes;
    // Typed lists of the whole kind are decoded once.
    if args.reads { options.decoded_bytes(DECODED) } else { options }
}

/// The memory for decoded objects in the measurements of reads.
const DECODED: usize = 4 << 30;
