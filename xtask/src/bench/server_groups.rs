//! The benchmarks of the API server beside kube-apiserver with etcd, both loaded by the same Go client.

use super::backend::Backend;
use super::rows::Better::{Higher, Lower};
use super::rows::Goal::{AtMost, Report, Times};
use super::rows::{Better, Goal, Group, Row, load, row};

const OURS: &str = "windlass";
const REAL: &str = "kube-apiserver";

/// Returns a row of our server beside the real server. The row is shown even without a measurement of the
/// real server.
const fn beside(
    name: &'static str,
    value: (&'static str, f64, &'static str),
    better: Better,
    goal: Goal,
) -> Row {
    Row { alone: true, ..row(name, (OURS, REAL, REAL), value, better, goal) }
}

const fn rate(name: &'static str, value: &'static str, goal: Goal) -> Row {
    beside(name, (value, 1.0, "/s"), Higher, goal)
}

const fn milliseconds(name: &'static str, value: &'static str, goal: Goal) -> Row {
    beside(name, (value, 1e3, "ms"), Lower, goal)
}

/// Returns a row of the processor time of the server's processes for each operation.
const fn processor(name: &'static str, value: &'static str, goal: Goal) -> Row {
    beside(name, (value, 1e6, "µs"), Lower, goal)
}

const fn megabytes(name: &'static str, value: &'static str, goal: Goal) -> Row {
    beside(name, (value, 1e-6, "MB"), Lower, goal)
}

const fn kilobytes(name: &'static str, value: &'static str, goal: Goal) -> Row {
    beside(name, (value, 1e-3, "KB"), Lower, goal)
}

/// Returns a row of requests with a report of the client about compressed replies.
const fn gzip(value: &'static str, row: Row) -> Row {
    Row { gzip: Some(value), ..row }
}

/// Returns a time relative to the time before an edit of the CRD.
const fn after_edit(name: &'static str, value: &'static str, before: &'static str) -> Row {
    Row { per: Some(before), ..beside(name, (value, 1.0, "÷"), Lower, AtMost(1.15)) }
}

pub(crate) const SERVER_GROUPS: &[Group] = &[
    Group {
        name: "server-objects",
        about: "10k ConfigMaps of 1.2 KB and 100 CRDs of 40 fields, by a Go client on the same cores",
        feed: None,
        count: Some(("objects", 10_000)),
        runs: &[
            load(OURS, Backend::Ours, &["server", "part=objects"]),
            load(REAL, Backend::Real, &["server", "part=objects"]),
        ],
        rows: &[
            gzip("create_zipped", rate("server-objects.create", "create_rate", Times(8.0))),
            gzip("create_zipped", processor("server-objects.create.processor", "create_cpu", Times(20.0))),
            gzip("create_typed_zipped", rate("server-objects.create-protobuf", "create_typed_rate", Report)),
            gzip(
                "create_typed_zipped",
                processor("server-objects.create-protobuf.processor", "create_typed_cpu", Report),
            ),
            gzip("create_custom_zipped", rate("server-objects.create-custom", "create_custom_rate", Report)),
            gzip(
                "create_custom_zipped",
                processor("server-objects.create-custom.processor", "create_custom_cpu", Report),
            ),
            gzip("list_zipped", milliseconds("server-objects.list", "list_median", Times(4.0))),
            gzip("list_zipped", processor("server-objects.list.processor", "list_cpu", Times(10.0))),
            gzip(
                "list_plain_zipped",
                milliseconds("server-objects.list-plain", "list_plain_median", Times(4.0)),
            ),
            gzip(
                "list_plain_zipped",
                processor("server-objects.list-plain.processor", "list_plain_cpu", Times(10.0)),
            ),
            gzip("list_typed_zipped", milliseconds("server-objects.list-typed", "list_typed_median", Report)),
            gzip(
                "list_typed_zipped",
                processor("server-objects.list-typed.processor", "list_typed_cpu", Report),
            ),
            gzip(
                "list_typed_plain_zipped",
                milliseconds("server-objects.list-typed-plain", "list_typed_plain_median", Report),
            ),
            gzip(
                "list_typed_plain_zipped",
                processor("server-objects.list-typed-plain.processor", "list_typed_plain_cpu", Report),
            ),
            gzip("select_zipped", milliseconds("server-objects.select", "select_median", Times(2.0))),
            gzip("select_zipped", processor("server-objects.select.processor", "select_cpu", Times(10.0))),
            gzip(
                "select_plain_zipped",
                milliseconds("server-objects.select-plain", "select_plain_median", Times(2.0)),
            ),
            gzip(
                "select_plain_zipped",
                processor("server-objects.select-plain.processor", "select_plain_cpu", Times(10.0)),
            ),
            gzip("select_loaded_zipped", rate("server-objects.select-16", "select_loaded_rate", Report)),
            gzip(
                "select_loaded_zipped",
                processor("server-objects.select-16.processor", "select_loaded_cpu", Report),
            ),
            gzip("get_zipped", rate("server-objects.get", "get_rate", Times(8.0))),
            gzip("get_zipped", processor("server-objects.get.processor", "get_cpu", Times(15.0))),
            gzip("get_typed_zipped", rate("server-objects.get-typed", "get_typed_rate", Report)),
            gzip(
                "get_typed_zipped",
                processor("server-objects.get-typed.processor", "get_typed_cpu", Report),
            ),
            gzip("get_shared_zipped", rate("server-objects.get-one-connection", "get_shared_rate", Report)),
            gzip(
                "get_shared_zipped",
                processor("server-objects.get-one-connection.processor", "get_shared_cpu", Report),
            ),
            megabytes("server-objects.memory-at-rest", "rest", Report),
            kilobytes("server-objects.memory-per-crd", "crd_each", AtMost(200.0)),
            megabytes("server-objects.memory-at-end", "end", AtMost(100.0)),
            gzip("custom_zipped", milliseconds("server-objects.list-custom", "custom_median", Report)),
            gzip("custom_zipped", processor("server-objects.list-custom.processor", "custom_cpu", Report)),
            after_edit("server-objects.list-described", "described_median", "custom_median"),
            milliseconds("server-objects.list-described.first", "described_first_median", Times(4.0)),
            after_edit("server-objects.list-extended", "extended_median", "custom_median"),
            milliseconds("server-objects.list-extended.first", "extended_first_median", Times(4.0)),
            after_edit("server-objects.list-extended.processor", "extended_cpu", "custom_cpu"),
            after_edit("server-objects.get-extended", "extended_get_median", "custom_get_median"),
            after_edit("server-objects.get-extended.processor", "extended_get_cpu", "custom_get_cpu"),
        ],
    },
    Group {
        name: "server-watch",
        about: "200 and 1,000 watchers of one object that is patched, by a Go client on the same cores",
        feed: None,
        count: None,
        runs: &[
            load(OURS, Backend::Ours, &["server", "part=watch"]),
            load(REAL, Backend::Real, &["server", "part=watch"]),
        ],
        rows: &[
            gzip("watch_zipped", rate("server-watch.200", "watch_rate", Times(3.0))),
            gzip("watch_zipped", processor("server-watch.200.processor", "watch_cpu", Times(8.0))),
            gzip("watch_zipped", milliseconds("server-watch.200.median", "watch_median", Report)),
            gzip("watch_zipped", milliseconds("server-watch.200.p99", "watch_p99", Times(2.0))),
            gzip("typed_watch_zipped", rate("server-watch.200-typed", "typed_watch_rate", Report)),
            gzip(
                "typed_watch_zipped",
                processor("server-watch.200-typed.processor", "typed_watch_cpu", Report),
            ),
            gzip("typed_watch_zipped", milliseconds("server-watch.200-typed.p99", "typed_watch_p99", Report)),
            gzip("paced_zipped", processor("server-watch.200-paced.processor", "paced_cpu", Report)),
            gzip("paced_zipped", milliseconds("server-watch.200-paced.median", "paced_median", Report)),
            gzip("paced_zipped", milliseconds("server-watch.200-paced.p99", "paced_p99", Report)),
            gzip("many_zipped", rate("server-watch.1000", "many_rate", Report)),
            gzip("many_zipped", processor("server-watch.1000.processor", "many_cpu", Report)),
            gzip("many_zipped", milliseconds("server-watch.1000.p99", "many_p99", Report)),
            kilobytes("server-watch.1000.memory-per-watch", "many_resident_each", Report),
        ],
    },
    Group {
        name: "server-crds",
        about: "1,000 CRDs of 40 fields created at once, until all are served",
        feed: None,
        count: Some(("crds", 1_000)),
        runs: &[
            load(OURS, Backend::Ours, &["server", "part=crds"]),
            load(REAL, Backend::Real, &["server", "part=crds"]),
        ],
        rows: &[
            beside("server-crds.1000", ("crds_served", 1.0, "s"), Lower, AtMost(10.0)),
            beside("server-crds.1000.established", ("crds_established", 1.0, "s"), Lower, Report),
            beside("server-crds.1000.processor", ("crds_cpu", 1e3, "ms"), Lower, Report),
            kilobytes("server-crds.1000.memory-per-crd", "crd_each", AtMost(200.0)),
        ],
    },
    Group {
        name: "server-updates",
        about: "4,000 applies of 200 fields by two managers in turn; updates of ConfigMaps, secrets, leases, deployments and custom resources; --updates N",
        feed: None,
        count: Some(("updates", 100_000)),
        runs: &[
            load(OURS, Backend::Ours, &["server", "part=updates"]),
            load(REAL, Backend::Real, &["server", "part=updates"]),
        ],
        rows: &[
            gzip("apply_zipped", rate("server-updates.apply", "apply_rate", Times(5.0))),
            gzip("apply_zipped", processor("server-updates.apply.processor", "apply_cpu", Report)),
            gzip("apply_zipped", milliseconds("server-updates.apply.median", "apply_median", Report)),
            gzip("update_zipped", rate("server-updates.patch", "update_rate", Report)),
            gzip("update_zipped", processor("server-updates.patch.processor", "update_cpu", Report)),
            beside("server-updates.growth", ("slope", 1.0, "B"), Lower, Report),
            beside("server-updates.growth-million", ("slope_million", 1.0, "B"), Lower, AtMost(5.0)),
            megabytes("server-updates.memory-at-end", "after", Report),
        ],
    },
];
