//! Runs the contenders of a group in turn, each in a separate process.

use std::collections::BTreeMap;
use std::io::Read;
use std::process::{Child, Command, Stdio};
use std::thread::sleep;
use std::time::{Duration, Instant};

use super::Args;
use super::backend::ApiServer;
use super::contender::{Contender, Programs};
use super::feed::{ByteServer, ServeOptions};
use super::rows::{Group, Run};
use super::table::short;
use crate::Result;

/// The values that the runs of a group reported, by the names of the run and of the value.
#[derive(Default)]
pub(crate) struct Measured {
    pub(crate) values: BTreeMap<&'static str, Cell>,
    /// The errors of the failed runs.
    pub(crate) failures: Vec<String>,
}

/// The values of a run, with an element for each repeat.
pub(crate) type Cell = BTreeMap<String, Vec<f64>>;

/// The time after which a run is killed, and the time more for each thousand updates.
const TIMEOUT: Duration = Duration::from_secs(600);
const TIMEOUT_OF_UPDATES: Duration = Duration::from_secs(1);

/// Measures a group. A run that fails is reported and left out of that repeat.
pub(crate) fn group(group: &Group, programs: &Programs, args: &Args) -> Measured {
    let mut measured = Measured::default();
    let with_servers = group.runs.iter().any(|run| run.server.is_some());
    let repeats = args.repeats.unwrap_or(if with_servers { 1 } else { 5 }).max(1);
    for repeat in 1..=repeats {
        for run in group.runs {
            let began = Instant::now();
            let summary = match one(group, run, programs, args) {
                Ok(None) => continue,
                Ok(Some(mut cell)) => {
                    if cell.remove("stopped").is_some() {
                        let stopped = format!("{}, {}: stopped early, see above", group.name, run.name);
                        measured.failures.push(stopped);
                    }
                    let summary = summarize(&cell);
                    let values = measured.values.entry(run.name).or_default();
                    for (name, value) in cell {
                        values.entry(name).or_default().push(value);
                    }
                    summary
                }
                Err(why) => {
                    measured.failures.push(format!("{}, {}: {why}", group.name, run.name));
                    format!("failed: {why}")
                }
            };
            let took = began.elapsed().as_secs();
            eprintln!("  {repeat}/{repeats}  {:<24}{took:>4} s  {summary}", run.name);
        }
    }
    measured
}

fn summarize(cell: &BTreeMap<String, f64>) -> String {
    cell.iter().map(|(name, value)| format!("{name}={}", short(*value))).collect::<Vec<_>>().join(" ")
}

/// Executes a run; returns `None` if the contender was not built.
fn one(group: &Group, run: &Run, programs: &Programs, args: &Args) -> Result<Option<BTreeMap<String, f64>>> {
    let (Some(program), Some(ours)) = (programs.program(run.contender), programs.program(Contender::Ours))
    else {
        return Ok(None);
    };
    let scaled = |count: usize| (count as f64 * args.scale).ceil() as usize;
    let backend = match run.server {
        None => None,
        Some(backend) => Some(ApiServer::start(backend, ours)?),
    };
    let feed = group.feed.map(|feed| ServeOptions {
        objects: scaled(feed.objects),
        events: (scaled(feed.events) as f64 * run.changes).ceil() as usize,
        others: scaled(feed.others),
        ..feed
    });
    // Every run needs a new server, because the server treats the first watch specially.
    let server =
        feed.map(|feed| ByteServer::start(ours, feed, args.seed, args.corpus.as_deref())).transpose()?;
    let mut command = Command::new(program);
    let [verb, options @ ..] = run.arguments else { return Err("a run without a command".into()) };
    command.arg(verb);
    let mut prepare = Command::new(ours);
    prepare.arg(verb).arg(format!("--{}", run.prepare));
    let mut pass = |option: &str| {
        command.arg(format!("--{option}"));
        prepare.arg(format!("--{option}"));
    };
    options.iter().for_each(|option| pass(option));
    if let Some((option, count)) = group.count {
        let count = if option == "updates" { args.updates } else { count };
        pass(&format!("{option}={}", scaled(count)));
    }
    if let Some(server) = &backend {
        let ids: Vec<String> = server.processes().iter().map(u32::to_string).collect();
        pass(&format!("kubeconfig={}", server.kubeconfig().display()));
        pass(&format!("processes={}", ids.join(",")));
    }
    if let (Some(server), Some(feed)) = (&server, feed) {
        pass(&format!("url={}", server.url));
        pass(&format!("kind={}", feed.kind));
        pass(&format!("objects={}", server.objects));
        pass(&format!("events={}", server.events));
        if let Some(others) = group.feed.map(|feed| feed.others).filter(|&others| others > 0) {
            pass(&format!("others={}", scaled(others)));
        }
        if let Some(file) = &server.certificate {
            pass(&format!("ca={}", file.display()));
        }
    }
    if !run.prepare.is_empty() && !prepare.stdout(Stdio::null()).status()?.success() {
        return Err("the server could not be filled".into());
    }
    let timeout = TIMEOUT + TIMEOUT_OF_UPDATES * (args.updates / 1000) as u32;
    let child = command.stdout(Stdio::piped()).spawn()?;
    Ok(Some(serde_json::from_str(&output(child, timeout)?)?))
}

/// Waits for a process and returns its standard output: a single line, which fits into the buffer of the pipe.
fn output(mut child: Child, timeout: Duration) -> Result<String> {
    let deadline = Instant::now() + timeout;
    let status = loop {
        if let Some(status) = child.try_wait()? {
            break status;
        }
        if Instant::now() > deadline {
            child.kill()?;
            child.wait()?;
            return Err(format!("no result after {} s", timeout.as_secs()).into());
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
        Command::new(name).arg(argument).stdout(Stdio::piped()).spawn().expect("a standard program")
    }

    #[test]
    fn a_program_that_fails_or_hangs_is_an_error() {
        let timeout = Duration::from_secs(60);
        assert_eq!(output(program("echo", "{}"), timeout).expect("success"), "{}\n");
        assert_eq!(output(program("false", ""), timeout).unwrap_err().to_string(), "exit status: 1");
        let hangs = output(program("sleep", "600"), Duration::ZERO);
        assert_eq!(hangs.unwrap_err().to_string(), "no result after 0 s");
    }
}
