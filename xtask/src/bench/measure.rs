//! Runs the contenders of a group in turn, each in a process of its own.

use std::collections::BTreeMap;
use std::io::Read;
use std::process::{Child, Command, Stdio};
use std::thread::sleep;
use std::time::{Duration, Instant};

use super::Args;
use super::contender::{Contenders, Who};
use super::feed::{Feed, Server};
use super::rows::{Group, Run};
use super::table::short;
use crate::Result;

/// Every value that a run has reported, by the run's and the value's name, in the order of the repeats.
#[derive(Default)]
pub(crate) struct Measured {
    pub(crate) values: BTreeMap<&'static str, Cell>,
    /// What went wrong, and with whom.
    pub(crate) failures: Vec<String>,
}

/// The values of one run, each once for every repeat.
pub(crate) type Cell = BTreeMap<String, Vec<f64>>;

/// A run that takes longer hangs.
const PATIENCE: Duration = Duration::from_secs(300);

/// Measures a group. A run that fails is told and left out of that repeat.
pub(crate) fn group(group: &Group, contenders: &Contenders, args: &Args) -> Measured {
    let mut measured = Measured::default();
    let repeats = args.repeats.max(1);
    for repeat in 1..=repeats {
        for run in group.runs {
            let began = Instant::now();
            let told = match one(group, run, contenders, args) {
                Ok(None) => continue,
                Ok(Some(cell)) => {
                    let told = brief(&cell);
                    let values = measured.values.entry(run.name).or_default();
                    for (name, value) in cell {
                        values.entry(name).or_default().push(value);
                    }
                    told
                }
                Err(why) => {
                    measured.failures.push(format!("{}, {}: {why}", group.name, run.name));
                    format!("failed: {why}")
                }
            };
            let took = began.elapsed().as_secs();
            eprintln!("  {repeat}/{repeats}  {:<24}{took:>4} s  {told}", run.name);
        }
    }
    measured
}

fn brief(cell: &BTreeMap<String, f64>) -> String {
    cell.iter().map(|(name, value)| format!("{name}={}", short(*value))).collect::<Vec<_>>().join(" ")
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
    if let Some((option, count)) = group.count {
        pass(&format!("{option}={}", scaled(count)));
    }
    if let (Some(server), Some(feed)) = (&server, feed) {
        pass(&format!("url={}", server.url));
        pass(&format!("kind={}", feed.kind));
        pass(&format!("objects={}", feed.objects));
        pass(&format!("events={}", feed.events));
        if let Some(file) = &server.certificate {
            pass(&format!("ca={}", file.display()));
        }
    }
    let child = command.stdout(Stdio::piped()).spawn()?;
    Ok(Some(serde_json::from_str(&output(child, PATIENCE)?)?))
}

/// What it has printed, if it ends well and in time. That is one line, which the pipe holds until it is read.
fn output(mut child: Child, patience: Duration) -> Result<String> {
    let deadline = Instant::now() + patience;
    let status = loop {
        if let Some(status) = child.try_wait()? {
            break status;
        }
        if Instant::now() > deadline {
            child.kill()?;
            child.wait()?;
            return Err(format!("not done after {} s", patience.as_secs()).into());
        }
        sleep(Duration::from_millis(20));
    };
    if !status.success() {
        return Err(status.to_string().into());
    }
    let mut text = String::new();
    child.stdout.take().ok_or("no output")?.read_to_string(&mut text)?;
    Ok(text)
}

#[cfg(test)]
mod tests {
    use super::{Child, Command, Duration, Stdio, output};

    fn program(name: &str, argument: &str) -> Child {
        Command::new(name).arg(argument).stdout(Stdio::piped()).spawn().expect("it is everywhere")
    }

    #[test]
    fn a_program_that_fails_or_hangs_is_told() {
        let patience = Duration::from_secs(60);
        assert_eq!(output(program("echo", "{}"), patience).expect("it ends well"), "{}\n");
        assert_eq!(output(program("false", ""), patience).unwrap_err().to_string(), "exit status: 1");
        let hangs = output(program("sleep", "600"), Duration::ZERO);
        assert_eq!(hangs.unwrap_err().to_string(), "not done after 0 s");
    }
}
