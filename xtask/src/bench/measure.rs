//! Runs the contenders of a group in turn, each in a process of its own.

use std::collections::BTreeMap;
use std::process::{Command, Stdio};

use super::Args;
use super::contender::{Contenders, Who};
use super::feed::{Feed, Server};
use super::rows::{Group, Run};
use crate::Result;

/// Every value that a run has reported, by the run's and the value's name, in the order of the repeats.
pub(crate) type Measured = BTreeMap<&'static str, BTreeMap<String, Vec<f64>>>;

pub(crate) fn group(group: &Group, contenders: &Contenders, args: &Args) -> Result<Measured> {
    let mut measured = Measured::new();
    for repeat in 0..args.repeats.max(1) {
        for run in group.runs {
            let Some(cell) = one(group, run, contenders, args)? else { continue };
            if repeat == 0 {
                eprintln!("  {:<24}{}", run.name, brief(&cell));
            }
            let values = measured.entry(run.name).or_default();
            for (name, value) in cell {
                values.entry(name).or_default().push(value);
            }
        }
    }
    Ok(measured)
}

fn brief(cell: &BTreeMap<String, f64>) -> String {
    cell.iter().map(|(name, value)| format!("{name}={value:.4}")).collect::<Vec<_>>().join(" ")
}

/// One run; `None` if its contender is not there.
fn one(
    group: &Group,
    run: &Run,
    contenders: &Contenders,
    args: &Args,
) -> Result<Option<BTreeMap<String, f64>>> {
    let (Some(program), Some(ours)) = (contenders.program(run.who), contenders.program(Who::Ours)) else {
        return Ok(None);
    };
    let scaled = |count: usize| (count as f64 * args.scale).ceil() as usize;
    let feed =
        group.feed.map(|feed| Feed { objects: scaled(feed.objects), events: scaled(feed.events), ..feed });
    // A fresh server for each: the first watch is special.
    let server = feed.map(|feed| Server::start(ours, feed, args.seed)).transpose()?;
    let mut command = Command::new(program);
    let [verb, options @ ..] = run.arguments else { return Err("a run without a verb".into()) };
    command.arg(verb);
    let mut pass = |option: &str| {
        command.arg(format!("--{option}"));
    };
    options.iter().for_each(|option| pass(option));
    if let Some(adds) = group.adds {
        pass(&format!("adds={}", scaled(adds)));
    }
    if let (Some(server), Some(feed)) = (&server, feed) {
        pass(&format!("url={}", server.url));
        pass(&format!("kind={}", feed.kind));
        pass(&format!("objects={}", feed.objects));
        pass(&format!("events={}", feed.events));
        if let Some(file) = &server.certificate {
            pass(&format!("ca={}", file.display()));
        }
        if let Some(after) = feed.expire_after {
            pass(&format!("relist-within={}", 2 * after));
        }
    }
    let output = command.stderr(Stdio::inherit()).output()?;
    if !output.status.success() {
        return Err(format!("{} failed: {command:?}", run.name).into());
    }
    Ok(Some(serde_json::from_slice(&output.stdout)?))
}
