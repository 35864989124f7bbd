//! A row of the table: what is compared, and what is aimed at.

use super::contender::Who;
use super::feed::Feed;
use Goal::{AtMost, Report};

/// Runs that are measured in turn, and the rows that come of them.
pub(crate) struct Group {
    pub(crate) name: &'static str,
    pub(crate) about: &'static str,
    pub(crate) feed: Option<Feed>,
    /// An option that says how much is done, where no feed says it.
    pub(crate) count: Option<(&'static str, usize)>,
    pub(crate) runs: &'static [Run],
    pub(crate) rows: &'static [Row],
}

/// One contender's way to do the group's work.
pub(crate) struct Run {
    pub(crate) name: &'static str,
    pub(crate) who: Who,
    /// A verb, and options without their dashes.
    pub(crate) arguments: &'static [&'static str],
}

/// A value of ours, compared with the same value of another run or held against a bound.
pub(crate) struct Row {
    pub(crate) name: &'static str,
    pub(crate) peer: &'static str,
    pub(crate) ours: &'static str,
    /// Empty: there is nobody to compare with.
    pub(crate) theirs: &'static str,
    pub(crate) value: &'static str,
    /// Where the peer's has another name.
    pub(crate) theirs_value: &'static str,
    /// The value is divided by this one.
    pub(crate) per: Option<&'static str>,
    /// From the value to the unit.
    pub(crate) factor: f64,
    pub(crate) unit: &'static str,
    pub(crate) better: Better,
    pub(crate) goal: Goal,
}

#[derive(Clone, Copy)]
pub(crate) enum Better {
    Higher,
    Lower,
}

#[derive(Clone, Copy)]
pub(crate) enum Goal {
    /// So many times better than the peer.
    Times(f64),
    AtMost(f64),
    AtLeast(f64),
    Report,
}

pub(crate) const fn run(name: &'static str, who: Who, arguments: &'static [&'static str]) -> Run {
    Run { name, who, arguments }
}

pub(crate) const fn row(
    name: &'static str,
    (ours, peer, theirs): (&'static str, &'static str, &'static str),
    (value, factor, unit): (&'static str, f64, &'static str),
    better: Better,
    goal: Goal,
) -> Row {
    Row { name, peer, ours, theirs, value, theirs_value: value, per: None, factor, unit, better, goal }
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

/// Processor time of the whole process, in all of its threads.
pub(crate) const fn processor(name: &'static str, versus: Versus) -> Row {
    row(name, versus, ("processor", 1.0, "s"), Better::Lower, Report)
}

/// The same for each change, between the sync and the last change.
pub(crate) const fn processor_each(name: &'static str, versus: Versus) -> Row {
    row(name, versus, ("processor_each", 1e6, "µs"), Better::Lower, Report)
}

pub(crate) const fn scan(name: &'static str, value: &'static str, goal: Goal) -> Row {
    row(name, ("scan", "", ""), (value, 1e-9, "GB/s"), Better::Higher, goal)
}

pub(crate) const fn each(name: &'static str, versus: Versus, goal: Goal) -> Row {
    row(name, versus, ("bytes_per_object", 1.0, "B"), Better::Lower, goal)
}

/// The peer's memory right after a garbage collection that nobody would run: what it cannot do without.
pub(crate) const fn against_collected(name: &'static str, versus: Versus) -> Row {
    Row { theirs_value: "collected_bytes_per_object", ..each(name, versus, Report) }
}

pub(crate) const fn relist(name: &'static str, versus: Versus, goal: Goal) -> Row {
    Row { per: Some("steady"), ..row(name, versus, ("relist_peak", 1.0, "÷"), Better::Lower, goal) }
}

pub(crate) const fn read(name: &'static str, value: &'static str) -> Row {
    row(name, ("reads", "", ""), (value, 1e-3, "µs"), Better::Lower, Report)
}

pub(crate) const fn alone(
    name: &'static str,
    run: &'static str,
    value: (&'static str, f64, &'static str),
    most: f64,
) -> Row {
    row(name, (run, "", ""), value, Better::Lower, AtMost(most))
}

pub(crate) const fn feed(kind: &'static str, objects: usize, events: usize) -> Feed {
    Feed { kind, objects, events, expire_after: None, tls: false }
}
