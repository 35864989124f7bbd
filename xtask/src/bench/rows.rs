//! The rows of the table: compared values and goals.

use super::backend::Backend;
use super::contender::Contender;
use super::feed::{Corpus, ServeOptions};
use Goal::{AtMost, Report};

/// Runs that are measured in turn, and the rows computed from them.
pub(crate) struct Group {
    pub(crate) name: &'static str,
    pub(crate) about: &'static str,
    pub(crate) feed: Option<ServeOptions>,
    /// The option and value for the amount of work, for groups without a feed.
    pub(crate) count: Option<(&'static str, usize)>,
    pub(crate) runs: &'static [Run],
    pub(crate) rows: &'static [Row],
}

/// A way in which a contender does the work of the group.
pub(crate) struct Run {
    pub(crate) name: &'static str,
    pub(crate) contender: Contender,
    /// The API server that the contender loads.
    pub(crate) server: Option<Backend>,
    /// The option of our program that fills the server before the run; empty to keep the server's content.
    pub(crate) prepare: &'static str,
    /// The command, and options without dashes.
    pub(crate) arguments: &'static [&'static str],
    /// The part of the group's changes that the run receives: all (1), or fewer for a slow contender whose rate is compared.
    pub(crate) changes: f64,
}

/// A value of our run, compared with a peer's or with a bound.
pub(crate) struct Row {
    pub(crate) name: &'static str,
    pub(crate) peer: &'static str,
    pub(crate) ours: &'static str,
    /// The name of the peer's run; empty if there is none.
    pub(crate) theirs: &'static str,
    pub(crate) value: &'static str,
    /// The name of the peer's value.
    pub(crate) theirs_value: &'static str,
    /// The name of the value to divide by.
    pub(crate) per: Option<&'static str>,
    /// Converts the value to the unit.
    pub(crate) factor: f64,
    pub(crate) unit: &'static str,
    pub(crate) better: Better,
    pub(crate) goal: Goal,
    /// True if the row is shown if the peer was not measured.
    pub(crate) alone: bool,
    /// The name of the value that says whether replies were compressed; see [`Gzip`](super::table::Gzip).
    pub(crate) gzip: Option<&'static str>,
}

#[derive(Clone, Copy)]
pub(crate) enum Better {
    Higher,
    Lower,
}

#[derive(Clone, Copy)]
pub(crate) enum Goal {
    /// Better than the peer by this factor.
    Times(f64),
    AtMost(f64),
    AtLeast(f64),
    Report,
}

pub(crate) const fn run(name: &'static str, contender: Contender, arguments: &'static [&'static str]) -> Run {
    Run { name, contender, server: None, prepare: "", arguments, changes: 1.0 }
}

/// Returns a run of the Go client against an API server.
pub(crate) const fn load(name: &'static str, server: Backend, arguments: &'static [&'static str]) -> Run {
    Run { server: Some(server), ..run(name, Contender::Go, arguments) }
}

/// Returns a run of an operator on our API server, which our program fills first.
pub(crate) const fn operate(name: &'static str, contender: Contender) -> Run {
    Run { server: Some(Backend::Ours), prepare: "prepare", ..run(name, contender, &["reconcile"]) }
}

pub(crate) const fn row(
    name: &'static str,
    (ours, peer, theirs): (&'static str, &'static str, &'static str),
    (value, factor, unit): (&'static str, f64, &'static str),
    better: Better,
    goal: Goal,
) -> Row {
    Row {
        name,
        peer,
        ours,
        theirs,
        value,
        theirs_value: value,
        per: None,
        factor,
        unit,
        better,
        goal,
        alone: false,
        gzip: None,
    }
}

pub(crate) type Versus = (&'static str, &'static str, &'static str);

pub(crate) const fn rate(name: &'static str, versus: Versus, goal: Goal) -> Row {
    row(name, versus, ("rate", 1e-6, "M/s"), Better::Higher, goal)
}

pub(crate) const fn events(name: &'static str, versus: Versus, goal: Goal) -> Row {
    row(name, versus, ("rate", 1e-3, "k/s"), Better::Higher, goal)
}

pub(crate) const fn time(name: &'static str, versus: Versus, goal: Goal) -> Row {
    row(name, versus, ("seconds", 1.0, "s"), Better::Lower, goal)
}

pub(crate) const fn peak(name: &'static str, versus: Versus, goal: Goal) -> Row {
    row(name, versus, ("peak", 1e-6, "MB"), Better::Lower, goal)
}

/// Returns a row of the processor time of all threads of the process.
pub(crate) const fn processor(name: &'static str, versus: Versus) -> Row {
    row(name, versus, ("processor", 1.0, "s"), Better::Lower, Report)
}

/// Returns a row of the processor time for each change, between the sync and the last change.
pub(crate) const fn processor_each(name: &'static str, versus: Versus) -> Row {
    row(name, versus, ("processor_each", 1e6, "µs"), Better::Lower, Report)
}

pub(crate) const fn scan(name: &'static str, value: &'static str, goal: Goal) -> Row {
    row(name, ("scan", "", ""), (value, 1e-9, "GB/s"), Better::Higher, goal)
}

/// Returns a value of replicas that split the keys; relative to a single replica, the value is for each
/// replica.
pub(crate) const fn shard(
    name: &'static str,
    (value, unit): (&'static str, &'static str),
    goal: Goal,
) -> Row {
    row(name, ("shards", "", ""), (value, 1.0, unit), Better::Higher, goal)
}

pub(crate) const fn reconciles(name: &'static str, value: &'static str, versus: Versus, goal: Goal) -> Row {
    row(name, versus, (value, 1e-3, "k/s"), Better::Higher, goal)
}

/// Returns a row of the operator's processor time for each reconcile.
pub(crate) const fn of_reconcile(name: &'static str, value: &'static str, versus: Versus, goal: Goal) -> Row {
    row(name, versus, (value, 1e6, "µs"), Better::Lower, goal)
}

/// Returns the time from the start of the process to the first reconcile.
pub(crate) const fn first_reconcile(name: &'static str, versus: Versus) -> Row {
    row(name, versus, ("first", 1e3, "ms"), Better::Lower, Report)
}

pub(crate) const fn each(name: &'static str, versus: Versus, goal: Goal) -> Row {
    row(name, versus, ("bytes_per_object", 1.0, "B"), Better::Lower, goal)
}

/// Compares with the peer's memory right after a forced garbage collection.
pub(crate) const fn against_collected(name: &'static str, versus: Versus) -> Row {
    Row { theirs_value: "collected_bytes_per_object", ..each(name, versus, Report) }
}

/// Returns the memory that the process keeps for all caches.
pub(crate) const fn kept(name: &'static str, versus: Versus, goal: Goal) -> Row {
    row(name, versus, ("kept", 1e-6, "MB"), Better::Lower, goal)
}

/// Returns the time from the sending of a change until a worker has the key.
pub(crate) const fn latency(name: &'static str, value: &'static str, versus: Versus) -> Row {
    row(name, versus, (value, 1e3, "ms"), Better::Lower, Report)
}

pub(crate) const fn relist(name: &'static str, versus: Versus, goal: Goal) -> Row {
    Row { per: Some("steady"), ..row(name, versus, ("relist_peak", 1.0, "÷"), Better::Lower, goal) }
}

pub(crate) const fn read(name: &'static str, value: &'static str) -> Row {
    row(name, ("reads", "", ""), (value, 1e-3, "µs"), Better::Lower, Report)
}

/// A list of all decoded objects, which have been decoded before.
pub(crate) const fn listed(name: &'static str, versus: Versus, goal: Goal) -> Row {
    row(name, versus, ("list_typed_warm_ns", 1e-6, "ms"), Better::Lower, goal)
}

pub(crate) const fn alone(
    name: &'static str,
    run: &'static str,
    value: (&'static str, f64, &'static str),
    most: f64,
) -> Row {
    row(name, (run, "", ""), value, Better::Lower, AtMost(most))
}

pub(crate) const fn feed(kind: &'static str, objects: usize, events: usize) -> ServeOptions {
    ServeOptions {
        kind,
        corpus: Corpus::Uniform,
        objects,
        events,
        expire_after: None,
        tls: false,
        others: 0,
        pace: 0,
    }
}

/// Returns a feed of the diverse corpus.
pub(crate) const fn diverse(objects: usize, events: usize) -> ServeOptions {
    ServeOptions { corpus: Corpus::Diverse, ..feed("pods", objects, events) }
}

/// Returns a feed of a large cluster: 150,000 pods of the diverse corpus and 29 kinds of custom resources, over TLS.
pub(crate) const fn large(events: usize) -> ServeOptions {
    ServeOptions { tls: true, others: 145_000, ..diverse(150_000, events) }
}
