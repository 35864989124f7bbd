//! The benchmarks: their runs, rows and goals.

use super::backend::Backend;
use super::contender::Contender;
use super::feed::ServeOptions;
use super::rows::Goal::{AtLeast, AtMost, Report, Times};
use super::rows::{
    Group, Run, against_collected, alone, diverse, each, events, feed, first_reconcile, kept, large, latency,
    listed, of_reconcile, operate, peak, processor, processor_each, rate, read, reconciles, relist, run,
    scan, shard, time,
};

const OURS: &str = "windlass";
const RAW: &str = "raw";
const OUR_LIST: &str = "raw, by LIST";
const COMPRESSED: &str = "compressed";
const LIST: &str = "client-go LIST";
const WATCH_LIST: &str = "client-go WatchList";
const KUBE: &str = "kube-rs";
const PRUNED: &str = "kube-rs pruned";
const GLIBC: &str = "glibc";
const MUSL: &str = "musl, mimalloc";
const MUSL_ALLOCATOR: &str = "musl, its allocator";
const CLIENT_GO: &str = "client-go";
const RUNTIME: &str = "controller-runtime";
const PRIORITY: &str = "priority queue";

const INFORMERS: &[Run] = &[
    run(RAW, Contender::Ours, &["informer"]),
    run(OUR_LIST, Contender::Ours, &["informer", "list"]),
    run(COMPRESSED, Contender::Ours, &["informer", "tier=compressed"]),
    run(LIST, Contender::Go, &["informer", "list"]),
    run(WATCH_LIST, Contender::Go, &["informer"]),
    run(KUBE, Contender::KubeRs, &["informer"]),
    run(PRUNED, Contender::KubeRs, &["informer", "pruned=1"]),
];

const CHANGES: &[Run] = &[
    run(RAW, Contender::Ours, &["informer"]),
    run(WATCH_LIST, Contender::Go, &["informer"]),
    run(PRUNED, Contender::KubeRs, &["informer", "pruned=1"]),
];

pub(crate) const GROUPS: &[Group] = &[
    Group {
        name: "queue",
        about: "one task adds distinct keys, eight workers process them; metrics on",
        feed: None,
        count: Some(("adds", 500_000)),
        runs: &[
            run(OURS, Contender::Ours, &["queue", "load=distinct"]),
            run(CLIENT_GO, Contender::Go, &["queue", "load=distinct"]),
            run(PRIORITY, Contender::Go, &["queue", "load=distinct", "queue=priority"]),
            run(KUBE, Contender::KubeRs, &["queue"]),
        ],
        rows: &[
            rate("queue.distinct", (OURS, CLIENT_GO, CLIENT_GO), Times(5.0)),
            rate("queue.distinct", (OURS, PRIORITY, PRIORITY), Times(40.0)),
            rate("queue.distinct", (OURS, KUBE, KUBE), Times(3.0)),
            processor("queue.processor", (OURS, CLIENT_GO, CLIENT_GO)),
            processor("queue.processor", (OURS, PRIORITY, PRIORITY)),
        ],
    },
    Group {
        name: "queue",
        about: "one task adds the same thousand keys repeatedly, eight workers process them",
        feed: None,
        count: Some(("adds", 2_000_000)),
        runs: &[
            run(OURS, Contender::Ours, &["queue", "load=hot"]),
            run(CLIENT_GO, Contender::Go, &["queue", "load=hot"]),
            run(PRIORITY, Contender::Go, &["queue", "load=hot", "queue=priority"]),
        ],
        rows: &[
            rate("queue.hot", (OURS, CLIENT_GO, CLIENT_GO), Times(5.0)),
            rate("queue.hot", (OURS, PRIORITY, PRIORITY), Report),
        ],
    },
    Group {
        name: "scan-pods",
        about: "20k pods in memory, from JSON; processor time of one thread, best of five passes",
        feed: None,
        count: Some(("objects", 20_000)),
        runs: &[run("scan", Contender::Ours, &["scan"])],
        rows: &[
            scan("scan-pods.index", "index", AtLeast(2.5)),
            scan("scan-pods.index-and-copy", "copy", Report),
            alone("scan-pods.each", "scan", ("bytes_per_object", 1.0, "B"), 5_400.0),
            scan("scan-pods.one-kind", "shared", Report),
            alone("scan-pods.one-kind-each", "scan", ("shared_bytes_per_object", 1.0, "B"), 5_400.0),
        ],
    },
    Group {
        name: "scan-diverse",
        about: "20k pods of 7,000 workloads in memory, from JSON; processor time of one thread, best of five passes",
        feed: None,
        count: Some(("objects", 20_000)),
        runs: &[run("scan", Contender::Ours, &["scan", "corpus=diverse"])],
        rows: &[
            scan("scan-diverse.index", "index", AtLeast(2.5)),
            scan("scan-diverse.index-and-copy", "copy", Report),
            scan("scan-diverse.one-kind", "shared", Report),
            alone("scan-diverse.one-kind-each", "scan", ("shared_bytes_per_object", 1.0, "B"), 2_500.0),
        ],
    },
    Group {
        name: "sync-diverse",
        about: "20k pods of 7,000 workloads into a cache with indexes and a handler",
        feed: Some(diverse(20_000, 0)),
        count: None,
        runs: INFORMERS,
        rows: &[
            time("sync-diverse", (RAW, LIST, LIST), Times(25.0)),
            time("sync-diverse", (RAW, WATCH_LIST, WATCH_LIST), Report),
            time("sync-diverse", (RAW, KUBE, KUBE), Times(12.0)),
            time("sync-diverse.list", (OUR_LIST, LIST, LIST), Report),
            processor("sync-diverse.processor", (RAW, LIST, LIST)),
            processor("sync-diverse.processor", (RAW, KUBE, KUBE)),
            peak("sync-diverse.peak", (RAW, LIST, LIST), Times(6.0)),
            peak("sync-diverse.peak", (RAW, WATCH_LIST, WATCH_LIST), Times(5.0)),
            peak("sync-diverse.peak", (RAW, PRUNED, PRUNED), Report),
            each("sync-diverse.each", (RAW, LIST, LIST), Times(9.0)),
            each("sync-diverse.each", (RAW, PRUNED, PRUNED), Times(12.0)),
            against_collected("sync-diverse.each", (RAW, "client-go, collected", LIST)),
            each("sync-diverse.each-compressed", (COMPRESSED, LIST, LIST), Times(15.0)),
        ],
    },
    Group {
        name: "events-diverse",
        about: "20k changes of those pods, of which 44 % move only the resource version, through a predicate into a queue",
        feed: Some(diverse(20_000, 20_000)),
        count: None,
        runs: CHANGES,
        rows: &[
            events("events-diverse", (RAW, WATCH_LIST, WATCH_LIST), Times(60.0)),
            events("events-diverse", (RAW, PRUNED, PRUNED), Times(15.0)),
            processor_each("events-diverse.processor", (RAW, WATCH_LIST, WATCH_LIST)),
            processor_each("events-diverse.processor", (RAW, PRUNED, PRUNED)),
        ],
    },
    Group {
        name: "sync-crs",
        about: "100k custom resources into a cache with indexes and a handler",
        feed: Some(feed("databases", 100_000, 0)),
        count: None,
        runs: INFORMERS,
        rows: &[
            time("sync-crs", (RAW, LIST, LIST), Times(15.0)),
            time("sync-crs", (RAW, WATCH_LIST, WATCH_LIST), Times(25.0)),
            time("sync-crs", (RAW, KUBE, KUBE), Times(5.0)),
            time("sync-crs.list", (OUR_LIST, LIST, LIST), Report),
            processor("sync-crs.processor", (RAW, LIST, LIST)),
            processor("sync-crs.processor", (RAW, KUBE, KUBE)),
            peak("sync-crs.peak", (RAW, LIST, LIST), Times(4.0)),
            peak("sync-crs.peak", (RAW, WATCH_LIST, WATCH_LIST), Times(3.0)),
            peak("sync-crs.peak", (RAW, PRUNED, PRUNED), Times(2.0)),
            peak("sync-crs.peak-compressed", (COMPRESSED, LIST, LIST), Times(8.0)),
            each("sync-crs.each", (RAW, PRUNED, PRUNED), Report),
            each("sync-crs.each-compressed", (COMPRESSED, LIST, LIST), Report),
        ],
    },
    Group {
        name: "sync-pods",
        about: "20k pods into a cache with indexes and a handler",
        feed: Some(feed("pods", 20_000, 0)),
        count: None,
        runs: INFORMERS,
        rows: &[
            time("sync-pods", (RAW, LIST, LIST), Times(20.0)),
            time("sync-pods", (RAW, KUBE, KUBE), Times(10.0)),
            time("sync-pods.list", (OUR_LIST, LIST, LIST), Report),
            processor("sync-pods.processor", (RAW, LIST, LIST)),
            processor("sync-pods.processor", (RAW, KUBE, KUBE)),
            peak("sync-pods.peak", (RAW, LIST, LIST), Times(4.0)),
            peak("sync-pods.peak", (RAW, WATCH_LIST, WATCH_LIST), Times(3.0)),
            peak("sync-pods.peak", (RAW, PRUNED, PRUNED), Times(2.0)),
            peak("sync-pods.peak-compressed", (COMPRESSED, LIST, LIST), Times(8.0)),
            each("sync-pods.each", (RAW, LIST, LIST), Times(3.0)),
            each("sync-pods.each", (RAW, PRUNED, PRUNED), Times(5.0)),
            against_collected("sync-pods.each", (RAW, "client-go, collected", LIST)),
            each("sync-pods.each-compressed", (COMPRESSED, LIST, LIST), Times(10.0)),
        ],
    },
    Group {
        name: "events-crs",
        about: "100k changes of custom resources through a predicate into a queue",
        feed: Some(feed("databases", 100_000, 100_000)),
        count: None,
        runs: CHANGES,
        rows: &[
            events("events-crs", (RAW, WATCH_LIST, WATCH_LIST), Times(25.0)),
            events("events-crs", (RAW, PRUNED, PRUNED), Times(6.0)),
            processor_each("events-crs.processor", (RAW, WATCH_LIST, WATCH_LIST)),
            processor_each("events-crs.processor", (RAW, PRUNED, PRUNED)),
        ],
    },
    Group {
        name: "events-pods",
        about: "20k changes of pods through a predicate into a queue",
        feed: Some(feed("pods", 20_000, 20_000)),
        count: None,
        runs: CHANGES,
        rows: &[
            events("events-pods", (RAW, WATCH_LIST, WATCH_LIST), Times(50.0)),
            events("events-pods", (RAW, PRUNED, PRUNED), Times(15.0)),
            processor_each("events-pods.processor", (RAW, WATCH_LIST, WATCH_LIST)),
            processor_each("events-pods.processor", (RAW, PRUNED, PRUNED)),
        ],
    },
    Group {
        name: "relist",
        about: "100k custom resources listed again after 410: peak memory relative to steady memory",
        feed: Some(ServeOptions { expire_after: Some(5), ..feed("databases", 100_000, 1) }),
        count: None,
        runs: &[
            run(RAW, Contender::Ours, &["informer", "relist"]),
            run(WATCH_LIST, Contender::Go, &["informer", "relist=1"]),
            run(PRUNED, Contender::KubeRs, &["informer", "pruned=1", "relist=1"]),
        ],
        rows: &[
            relist("relist", (RAW, "", ""), AtMost(1.1)),
            relist("relist", (RAW, WATCH_LIST, WATCH_LIST), Report),
            relist("relist", (RAW, PRUNED, PRUNED), Report),
        ],
    },
    Group {
        name: "reads-pods",
        about: "reads from a cache of 20k pods",
        feed: Some(feed("pods", 20_000, 0)),
        count: None,
        runs: &[
            run("reads", Contender::Ours, &["informer", "reads"]),
            run(LIST, Contender::Go, &["informer", "list", "reads"]),
        ],
        rows: &[
            listed("reads-pods.list-20k-typed-warm", ("reads", CLIENT_GO, LIST), Times(0.5)),
            alone("reads-pods.decoded", "reads", ("decoded_bytes", 1e-6, "MB"), 1_000.0),
            read("reads-pods.typed-cold", "typed_cold_ns"),
            read("reads-pods.typed-memoised", "typed_memoised_ns"),
            read("reads-pods.get-raw", "get_ns"),
        ],
    },
    Group {
        name: "reads-crs",
        about: "reads from a cache of 100k custom resources",
        feed: Some(feed("databases", 100_000, 0)),
        count: None,
        runs: &[run("reads", Contender::Ours, &["informer", "reads"])],
        rows: &[
            read("reads-crs.typed-cold", "typed_cold_ns"),
            read("reads-crs.typed-memoised", "typed_memoised_ns"),
            read("reads-crs.get-raw", "get_ns"),
            read("reads-crs.index-of-100-raw", "index_100_ns"),
            read("reads-crs.list-100k-raw", "list_raw_ns"),
            read("reads-crs.list-100k-typed", "list_typed_ns"),
        ],
    },
    Group {
        name: "sync-tls",
        about: "100k custom resources over TLS",
        feed: Some(ServeOptions { tls: true, ..feed("databases", 100_000, 0) }),
        count: None,
        runs: &[
            run(RAW, Contender::Ours, &["informer"]),
            run(LIST, Contender::Go, &["informer", "list"]),
            run(KUBE, Contender::KubeRs, &["informer"]),
        ],
        rows: &[time("sync-tls", (RAW, LIST, LIST), Report), time("sync-tls", (RAW, KUBE, KUBE), Report)],
    },
    Group {
        name: "large",
        about: "150k pods, 29 other kinds with 145k objects and two filtered caches of pods in one process, over TLS",
        feed: Some(large(0)),
        count: None,
        runs: &[
            run(RAW, Contender::Ours, &["informer"]),
            run(COMPRESSED, Contender::Ours, &["informer", "tier=compressed"]),
            run(LIST, Contender::Go, &["informer", "list"]),
            run(PRUNED, Contender::KubeRs, &["informer", "pruned=1"]),
        ],
        rows: &[
            alone("large.sync", RAW, ("seconds", 1.0, "s"), 10.0),
            time("large.sync", (RAW, LIST, LIST), Report),
            time("large.sync", (RAW, PRUNED, PRUNED), Report),
            processor("large.sync-processor", (RAW, LIST, LIST)),
            processor("large.sync-processor", (RAW, PRUNED, PRUNED)),
            peak("large.peak", (RAW, LIST, LIST), Report),
            peak("large.peak", (RAW, PRUNED, PRUNED), Report),
            alone("large.steady", RAW, ("kept", 1e-6, "MB"), 500.0),
            alone("large.steady-compressed", COMPRESSED, ("kept", 1e-6, "MB"), 250.0),
            kept("large.steady", (RAW, LIST, LIST), Report),
            kept("large.steady", (RAW, PRUNED, PRUNED), Report),
        ],
    },
    Group {
        name: "large-events",
        about: "a million changes of those pods, through a predicate into a queue; a tenth of the changes for the peers",
        feed: Some(large(1_000_000)),
        count: None,
        runs: &[
            run(RAW, Contender::Ours, &["informer"]),
            Run { changes: 0.1, ..run(LIST, Contender::Go, &["informer", "list"]) },
            Run { changes: 0.1, ..run(PRUNED, Contender::KubeRs, &["informer", "pruned=1"]) },
        ],
        rows: &[
            events("large-events", (RAW, LIST, LIST), Report),
            events("large-events", (RAW, PRUNED, PRUNED), Report),
            processor_each("large-events.processor", (RAW, LIST, LIST)),
            processor_each("large-events.processor", (RAW, PRUNED, PRUNED)),
        ],
    },
    Group {
        name: "large-latency",
        about: "500 changes of those pods a second; from the sending of a change to a worker that reads the object",
        feed: Some(ServeOptions { pace: 500, ..large(10_000) }),
        count: None,
        runs: &[
            run(RAW, Contender::Ours, &["informer", "latency"]),
            run(LIST, Contender::Go, &["informer", "list", "latency"]),
            run(PRUNED, Contender::KubeRs, &["informer", "pruned=1", "latency=1"]),
        ],
        rows: &[
            latency("large-latency.p50", "latency_50", (RAW, LIST, LIST)),
            latency("large-latency.p50", "latency_50", (RAW, PRUNED, PRUNED)),
            latency("large-latency.p99", "latency_99", (RAW, LIST, LIST)),
            latency("large-latency.p99", "latency_99", (RAW, PRUNED, PRUNED)),
        ],
    },
    Group {
        name: "large-relist",
        about: "those pods listed again after 410: peak memory relative to steady memory",
        feed: Some(ServeOptions { expire_after: Some(30), ..large(1_000) }),
        count: None,
        runs: &[
            run(RAW, Contender::Ours, &["informer", "relist"]),
            run(LIST, Contender::Go, &["informer", "list", "relist=1"]),
            run(PRUNED, Contender::KubeRs, &["informer", "pruned=1", "relist=1"]),
        ],
        rows: &[
            relist("large-relist", (RAW, "", ""), AtMost(1.1)),
            relist("large-relist", (RAW, LIST, LIST), Report),
            relist("large-relist", (RAW, PRUNED, PRUNED), Report),
        ],
    },
    Group {
        name: "reconcile",
        about: "an operator whose 10k ConfigMaps own one Secret each, on the embedded API server; 16 workers; then all keys again, 20 times",
        feed: None,
        count: Some(("objects", 10_000)),
        runs: &[
            operate(OURS, Contender::Ours),
            operate(RUNTIME, Contender::Go),
            operate(KUBE, Contender::KubeRs),
        ],
        rows: &[
            reconciles("reconcile.create", "rate", (OURS, RUNTIME, RUNTIME), Report),
            reconciles("reconcile.create", "rate", (OURS, KUBE, KUBE), Report),
            of_reconcile(
                "reconcile.create.processor",
                "processor_each",
                (OURS, RUNTIME, RUNTIME),
                Times(3.0),
            ),
            of_reconcile("reconcile.create.processor", "processor_each", (OURS, KUBE, KUBE), Times(1.5)),
            reconciles("reconcile.again", "round_rate", (OURS, RUNTIME, RUNTIME), Times(3.0)),
            reconciles("reconcile.again", "round_rate", (OURS, KUBE, KUBE), Times(1.5)),
            of_reconcile(
                "reconcile.again.processor",
                "round_processor_each",
                (OURS, RUNTIME, RUNTIME),
                Report,
            ),
            of_reconcile("reconcile.again.processor", "round_processor_each", (OURS, KUBE, KUBE), Report),
            peak("reconcile.peak", (OURS, RUNTIME, RUNTIME), Report),
            peak("reconcile.peak", (OURS, KUBE, KUBE), Report),
            first_reconcile("reconcile.first", (OURS, RUNTIME, RUNTIME)),
            first_reconcile("reconcile.first", (OURS, KUBE, KUBE)),
        ],
    },
    Group {
        name: "libc-events",
        about: "100k changes of custom resources through a predicate into a queue, with the C libraries of images",
        feed: Some(feed("databases", 100_000, 100_000)),
        count: None,
        runs: &[
            run(GLIBC, Contender::Ours, &["informer"]),
            run(MUSL, Contender::Musl, &["informer"]),
            run(MUSL_ALLOCATOR, Contender::MuslAllocator, &["informer"]),
        ],
        rows: &[
            events("libc-events", (MUSL, GLIBC, GLIBC), Times(0.9)),
            events("libc-events", (MUSL, MUSL_ALLOCATOR, MUSL_ALLOCATOR), Report),
            processor_each("libc-events.processor", (MUSL, GLIBC, GLIBC)),
            processor_each("libc-events.processor", (MUSL, MUSL_ALLOCATOR, MUSL_ALLOCATOR)),
            time("libc-events.sync", (MUSL, GLIBC, GLIBC), Report),
            peak("libc-events.peak", (MUSL, GLIBC, GLIBC), Report),
        ],
    },
    Group {
        name: "libc-reconcile",
        about: "the operator of the group reconcile, with the C libraries of images",
        feed: None,
        count: Some(("objects", 10_000)),
        runs: &[
            operate(GLIBC, Contender::Ours),
            operate(MUSL, Contender::Musl),
            operate(MUSL_ALLOCATOR, Contender::MuslAllocator),
        ],
        rows: &[
            reconciles("libc-reconcile.again", "round_rate", (MUSL, GLIBC, GLIBC), Times(0.9)),
            reconciles("libc-reconcile.again", "round_rate", (MUSL, MUSL_ALLOCATOR, MUSL_ALLOCATOR), Report),
            of_reconcile("libc-reconcile.create.processor", "processor_each", (MUSL, GLIBC, GLIBC), Report),
            of_reconcile(
                "libc-reconcile.create.processor",
                "processor_each",
                (MUSL, MUSL_ALLOCATOR, MUSL_ALLOCATOR),
                Report,
            ),
        ],
    },
    Group {
        name: "reconcile-idle",
        about: "a manager of 20 controllers of 20 kinds, the leader, with nothing to do",
        feed: None,
        count: None,
        runs: &[Run { server: Some(Backend::Ours), ..run("idle", Contender::Ours, &["idle"]) }],
        rows: &[
            alone("reconcile-idle.processor", "idle", ("idle", 100.0, "%"), 0.1),
            alone("reconcile-idle.resident", "idle", ("resident", 1e-6, "MB"), 40.0),
        ],
    },
    Group {
        name: "reconcile-shards",
        about: "reconciles of 1, 2 and 4 replicas that split the keys; each waits 10 ms for something external, 16 at once in a replica",
        feed: None,
        count: Some(("objects", 2_000)),
        runs: &[run("shards", Contender::Ours, &["shards"])],
        rows: &[
            shard("reconcile-shards.one", ("rate1", "/s"), Report),
            shard("reconcile-shards.two", ("rate2", "/s"), Report),
            shard("reconcile-shards.four", ("rate4", "/s"), Report),
            shard("reconcile-shards.two-each", ("scale2", "×"), AtLeast(0.8)),
            shard("reconcile-shards.four-each", ("scale4", "×"), AtLeast(0.8)),
        ],
    },
    Group {
        name: "server",
        about: "the embedded API server (a real one takes 1.2 to 2.3 s to become ready)",
        feed: None,
        count: None,
        runs: &[
            run("ready", Contender::Ours, &["api-server", "of=ready"]),
            run("in process", Contender::Ours, &["api-server", "of=in-process"]),
            run("at rest", Contender::Ours, &["api-server", "of=at-rest"]),
        ],
        rows: &[
            alone("server.ready", "ready", ("seconds", 1e3, "ms"), 50.0),
            alone("server.in-process", "in process", ("seconds", 1e3, "ms"), 10.0),
            alone("server.in-process-memory", "in process", ("anonymous", 1e-6, "MB"), 20.0),
            alone("server.at-rest", "at rest", ("resident", 1e-6, "MB"), 40.0),
        ],
    },
];
