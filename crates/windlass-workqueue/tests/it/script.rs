//! Runs a script against the state machine and returns a transcript.
//!
//! Steps are separated by `;` or line breaks: `add K [p=N] [after=5s] [limited]`, `get`, `done K`, `forget K`,
//! `failures K`, `at 10ms` (time since the creation of the queue), `shut down`, `state`. Units of time: ns, us, ms, s, h.

use std::collections::BTreeMap;
use std::fmt::Write;
use std::time::Duration;
use windlass_workqueue::core::{Config, InFlight, Queue, Timestamp, Wake};
use windlass_workqueue::{AddOptions, RateLimiter};

struct Player {
    queue: Queue<String>,
    in_flight: BTreeMap<String, InFlight<String>>,
    now: Timestamp,
}

/// Runs `script` with the default settings, without jitter.
pub(crate) fn play(script: &str) -> String {
    let rate_limiter = RateLimiter::default().jitter(0.0);
    play_with(&Config { rate_limiter, ..Config::default() }, script)
}

pub(crate) fn play_with(config: &Config, script: &str) -> String {
    let mut player = Player { queue: Queue::new(config), in_flight: BTreeMap::new(), now: Timestamp::ZERO };
    let mut transcript = String::new();
    for step in script.split(['\n', ';']).map(str::trim).filter(|step| !step.is_empty()) {
        let outcome = player.play(step);
        writeln!(transcript, "{step:<28}{outcome}").unwrap();
    }
    transcript.lines().map(str::trim_end).collect::<Vec<_>>().join("\n") + "\n"
}

impl Player {
    fn play(&mut self, step: &str) -> String {
        let words: Vec<&str> = step.split_whitespace().collect();
        match words[..] {
            ["add", key, ref options @ ..] => {
                say(self.queue.add(key.to_owned(), options_of(options), self.now))
            }
            ["get"] => self.get(),
            ["done", key] => say(self.queue.done(self.in_flight.remove(key).unwrap(), self.now)),
            ["forget", key] => {
                self.queue.forget(&key.to_owned());
                String::new()
            }
            ["failures", key] => self.queue.num_requeues(&key.to_owned(), self.now).to_string(),
            ["at", time] => {
                self.now = Timestamp::from(time_of(time));
                String::new()
            }
            ["shut", "down"] => {
                self.queue.shut_down();
                String::new()
            }
            ["state"] => self.state(),
            _ => panic!("no such step: {step}"),
        }
    }

    fn get(&mut self) -> String {
        let Some(item) = self.queue.get(self.now) else { return "nothing".into() };
        let said = match item.priority() {
            0 => item.key().clone(),
            priority => format!("{} p={priority}", item.key()),
        };
        assert!(self.in_flight.insert(item.key().clone(), item).is_none(), "{said} was handed out twice");
        said
    }

    fn state(&self) -> String {
        let Self { queue, in_flight, .. } = self;
        let mut out =
            format!("ready {} delayed {} in flight {}", queue.len(), queue.delayed(), in_flight.len());
        if let Some(next) = queue.next_deadline() {
            write!(out, " next {:?}", Duration::from(next)).unwrap();
        }
        if queue.is_drained() {
            out.push_str(" drained");
        }
        out
    }
}

fn say(signal: Wake) -> String {
    match signal {
        Wake::None => String::new(),
        Wake::Worker => "wake a worker".into(),
        Wake::TimerWatcher => "wake the timer".into(),
    }
}

fn options_of(words: &[&str]) -> AddOptions {
    words.iter().fold(AddOptions::new(), |options, word| match word.split_once('=') {
        Some(("p", priority)) => options.priority(priority.parse().unwrap()),
        Some(("after", time)) => options.after(time_of(time)),
        Some(("at-least", time)) => options.at_least(time_of(time)),
        None if *word == "limited" => options.rate_limited(),
        _ => panic!("no such option: {word}"),
    })
}

fn time_of(text: &str) -> Duration {
    let unit = text.find(|c: char| !c.is_ascii_digit()).unwrap();
    let number: u64 = text[..unit].parse().unwrap();
    match &text[unit..] {
        "ns" => Duration::from_nanos(number),
        "us" => Duration::from_micros(number),
        "ms" => Duration::from_millis(number),
        "s" => Duration::from_secs(number),
        "h" => Duration::from_secs(number * 3600),
        other => panic!("no such unit: {other}"),
    }
}
