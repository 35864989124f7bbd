//! Elections as scripts: candidates take turns on one Lease, and a transcript says what each did.

use std::{collections::BTreeMap, fmt::Write, time::Duration};

use expect_test::{Expect, expect};
use jiff::Timestamp;

use super::elector::{Elector, Moment, Reading, Record, Step, Timing};

/// The Lease as a server has it, and the candidates.
struct Scenario {
    lease: Option<(Record, u64)>,
    candidates: BTreeMap<String, Candidate>,
    transcript: String,
    seconds: f64,
}

struct Candidate {
    elector: Elector,
    /// The version of the Lease that it read or wrote last.
    version: u64,
    /// Whether its requests fail.
    cut_off: bool,
    /// Its clock's error.
    clock_skew: i64,
}

impl Scenario {
    fn of(names: &[&str]) -> Self {
        let candidate = |name: &str| Candidate {
            elector: Elector::new(name, Timing::default()),
            version: 0,
            cut_off: false,
            clock_skew: 0,
        };
        Self {
            lease: None,
            candidates: names.iter().map(|name| ((*name).to_owned(), candidate(name))).collect(),
            transcript: String::new(),
            seconds: 0.0,
        }
    }

    fn at(&mut self, seconds: f64) -> &mut Self {
        assert!(seconds >= self.seconds, "time goes forward");
        self.seconds = seconds;
        self
    }

    /// Lets a candidate do what it wants to do until it waits.
    fn run(&mut self, name: &str) -> &mut Self {
        let candidate = self.candidates.get_mut(name).unwrap();
        let now = Moment {
            elapsed: Duration::from_secs_f64(self.seconds),
            time: Timestamp::from_second(1_000_000 + self.seconds as i64 + candidate.clock_skew).unwrap(),
        };
        let mut did = Vec::new();
        let mut step = candidate.elector.next(now, 0.0);
        let end = loop {
            step = match step {
                Step::WaitUntil(until) => break format!("waits until {}", until.as_secs_f64()),
                Step::Lost => break "lost".to_owned(),
                Step::Read if candidate.cut_off => {
                    did.push("read fails");
                    candidate.elector.read(now, 0.0, Reading::Failed)
                }
                Step::Read => {
                    let reading = self.lease.as_ref().map_or(Reading::Absent, |(record, version)| {
                        candidate.version = *version;
                        Reading::Found(record.clone())
                    });
                    did.push(if self.lease.is_some() { "reads" } else { "finds none" });
                    candidate.elector.read(now, 0.0, reading)
                }
                Step::Create(record) | Step::Update(record) => {
                    let current = self.lease.as_ref().map_or(0, |(_, version)| *version);
                    let ok = !candidate.cut_off && (self.lease.is_none() || current == candidate.version);
                    did.push(if ok { "writes" } else { "write fails" });
                    if ok {
                        candidate.version = current + 1;
                        self.lease = Some((record, candidate.version));
                    }
                    candidate.elector.wrote(now, 0.0, ok);
                    candidate.elector.next(now, 0.0)
                }
            };
        };
        did.push(&end);
        let role = if candidate.elector.is_leading() { "LEADS" } else { "stands by" };
        let lease = self.lease.as_ref().map_or(String::from("-"), |(record, _)| {
            format!("{:?} transitions={}", record.holder, record.transitions)
        });
        writeln!(self.transcript, "{:<4} {name}: {}; {role}; lease {lease}", self.seconds, did.join(", "))
            .unwrap();
        self
    }

    fn cut_off(&mut self, name: &str, cut_off: bool) -> &mut Self {
        self.candidates.get_mut(name).unwrap().cut_off = cut_off;
        self
    }

    fn skew(&mut self, name: &str, seconds: i64) -> &mut Self {
        self.candidates.get_mut(name).unwrap().clock_skew = seconds;
        self
    }

    fn release(&mut self, name: &str) -> &mut Self {
        let now = Moment { elapsed: Duration::from_secs_f64(self.seconds), time: Timestamp::UNIX_EPOCH };
        let record = self.candidates.get_mut(name).unwrap().elector.release(now);
        writeln!(self.transcript, "{:<4} {name}: releases {}", self.seconds, record.is_some()).unwrap();
        if let (Some(record), Some((_, version))) = (record, &self.lease) {
            self.lease = Some((record, version + 1));
        }
        self
    }

    fn expect(&self, expected: Expect) {
        expected.assert_eq(&self.transcript);
    }
}

#[test]
fn one_leads_and_renews_without_reading() {
    let mut s = Scenario::of(&["a", "b"]);
    s.at(0.0).run("a").run("b");
    s.at(2.0).run("a").run("b");
    s.at(4.0).run("a").run("b");
    s.expect(expect![[r#"
        0    a: finds none, writes, waits until 2; LEADS; lease "a" transitions=0
        0    b: reads, waits until 2; stands by; lease "a" transitions=0
        2    a: writes, waits until 4; LEADS; lease "a" transitions=0
        2    b: reads, waits until 4; stands by; lease "a" transitions=0
        4    a: writes, waits until 6; LEADS; lease "a" transitions=0
        4    b: reads, waits until 6; stands by; lease "a" transitions=0
    "#]]);
}

#[test]
fn a_dead_leader_is_replaced_when_its_lease_is_over() {
    let mut s = Scenario::of(&["a", "b"]);
    s.at(0.0).run("a");
    s.at(1.0).run("b");
    // a is dead from here; b saw its lease at 1.
    s.at(15.9).run("b");
    s.at(17.9).run("b");
    s.expect(expect![[r#"
        0    a: finds none, writes, waits until 2; LEADS; lease "a" transitions=0
        1    b: reads, waits until 3; stands by; lease "a" transitions=0
        15.9 b: reads, waits until 17.9; stands by; lease "a" transitions=0
        17.9 b: reads, writes, waits until 19.9; LEADS; lease "b" transitions=1
    "#]]);
}

#[test]
fn a_leader_that_cannot_renew_gives_up_before_another_may_take_over() {
    let mut s = Scenario::of(&["a", "b"]);
    s.at(0.0).run("a");
    s.at(0.5).run("b");
    s.cut_off("a", true);
    s.at(2.0).run("a");
    s.at(4.0).run("a");
    s.at(9.9).run("a");
    s.at(10.0).run("a");
    s.at(15.4).run("b");
    s.at(17.4).run("b");
    s.expect(expect![[r#"
        0    a: finds none, writes, waits until 2; LEADS; lease "a" transitions=0
        0.5  b: reads, waits until 2.5; stands by; lease "a" transitions=0
        2    a: write fails, read fails, waits until 4; LEADS; lease "a" transitions=0
        4    a: read fails, waits until 6; LEADS; lease "a" transitions=0
        9.9  a: read fails, waits until 10; LEADS; lease "a" transitions=0
        10   a: lost; stands by; lease "a" transitions=0
        15.4 b: reads, waits until 17.4; stands by; lease "a" transitions=0
        17.4 b: reads, writes, waits until 19.4; LEADS; lease "b" transitions=1
    "#]]);
}

#[test]
fn a_short_outage_is_survived() {
    let mut s = Scenario::of(&["a"]);
    s.at(0.0).run("a");
    s.cut_off("a", true).at(2.0).run("a");
    s.cut_off("a", false).at(4.0).run("a");
    s.at(6.0).run("a");
    s.expect(expect![[r#"
        0    a: finds none, writes, waits until 2; LEADS; lease "a" transitions=0
        2    a: write fails, read fails, waits until 4; LEADS; lease "a" transitions=0
        4    a: reads, writes, waits until 6; LEADS; lease "a" transitions=0
        6    a: writes, waits until 8; LEADS; lease "a" transitions=0
    "#]]);
}

#[test]
fn others_clocks_are_not_trusted() {
    let mut s = Scenario::of(&["a", "b"]);
    s.skew("b", 3600);
    s.at(0.0).run("a");
    s.at(1.0).run("b");
    s.at(2.0).run("a");
    s.at(3.0).run("b");
    s.expect(expect![[r#"
        0    a: finds none, writes, waits until 2; LEADS; lease "a" transitions=0
        1    b: reads, waits until 3; stands by; lease "a" transitions=0
        2    a: writes, waits until 4; LEADS; lease "a" transitions=0
        3    b: reads, waits until 5; stands by; lease "a" transitions=0
    "#]]);
}

#[test]
fn a_released_lease_is_taken_at_once() {
    let mut s = Scenario::of(&["a", "b"]);
    s.at(0.0).run("a").run("b");
    s.at(2.0).release("a").run("b");
    s.at(2.5).run("a");
    s.expect(expect![[r#"
        0    a: finds none, writes, waits until 2; LEADS; lease "a" transitions=0
        0    b: reads, waits until 2; stands by; lease "a" transitions=0
        2    a: releases true
        2    b: reads, writes, waits until 4; LEADS; lease "b" transitions=1
        2.5  a: lost; stands by; lease "b" transitions=1
    "#]]);
}

#[test]
fn a_leader_whose_lease_was_taken_stops_at_its_next_renewal() {
    let mut s = Scenario::of(&["a", "b"]);
    s.at(0.0).run("a");
    // Another client takes it by force: another holder, another version.
    s.lease = Some((
        Record { holder: "thief".into(), lease_duration: Duration::from_secs(15), ..Record::default() },
        99,
    ));
    s.at(2.0).run("a");
    s.expect(expect![[r#"
        0    a: finds none, writes, waits until 2; LEADS; lease "a" transitions=0
        2    a: write fails, reads, lost; stands by; lease "thief" transitions=0
    "#]]);
}

#[test]
fn the_same_identity_takes_its_own_lease_back() {
    let mut s = Scenario::of(&["a"]);
    s.lease = Some((
        Record {
            holder: "a".into(),
            lease_duration: Duration::from_secs(15),
            transitions: 4,
            ..Record::default()
        },
        7,
    ));
    s.at(0.0).run("a");
    s.expect(expect![[r#"
        0    a: reads, writes, waits until 2; LEADS; lease "a" transitions=4
    "#]]);
}
