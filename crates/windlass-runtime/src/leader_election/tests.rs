//! Elections as scripts: candidates take turns on a Lease, and a transcript has the actions of each
//! candidate.

use std::{collections::BTreeMap, fmt::Write, time::Duration};

use expect_test::{Expect, expect};
use jiff::Timestamp;

use super::{
    LeaderElection,
    elector::{Clocks, ElectionStep, Elector, LeaseRead, Record, Timing},
};

/// The Lease in the server, and the candidates.
struct Scenario {
    lease: Option<(Record, u64)>,
    candidates: BTreeMap<String, Candidate>,
    transcript: String,
    seconds: f64,
}

struct Candidate {
    elector: Elector,
    /// The version of the Lease that the candidate read or wrote last.
    version: u64,
    /// True if the candidate's requests fail.
    cut_off: bool,
    /// The error of the candidate's clock.
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

    /// Runs a candidate until the candidate waits.
    fn run(&mut self, name: &str) -> &mut Self {
        let candidate = self.candidates.get_mut(name).unwrap();
        let now = Clocks {
            elapsed: Duration::from_secs_f64(self.seconds),
            time: Timestamp::from_second(1_000_000 + self.seconds as i64 + candidate.clock_skew).unwrap(),
        };
        let mut did = Vec::new();
        let mut step = candidate.elector.next(now, 0.0);
        let end = loop {
            step = match step {
                ElectionStep::WaitUntil(until) => break format!("waits until {}", until.as_secs_f64()),
                ElectionStep::Lost => break "lost".to_owned(),
                ElectionStep::Read if candidate.cut_off => {
                    did.push("read fails");
                    candidate.elector.read(now, 0.0, LeaseRead::Failed)
                }
                ElectionStep::Read => {
                    let reading = self.lease.as_ref().map_or(LeaseRead::Absent, |(record, version)| {
                        candidate.version = *version;
                        LeaseRead::Found(record.clone())
                    });
                    did.push(if self.lease.is_some() { "reads" } else { "finds none" });
                    candidate.elector.read(now, 0.0, reading)
                }
                ElectionStep::Create(record) | ElectionStep::Update(record) => {
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
        let now = Clocks { elapsed: Duration::from_secs_f64(self.seconds), time: Timestamp::UNIX_EPOCH };
        let record = self.candidates.get_mut(name).unwrap().elector.release(now);
        writeln!(self.transcript, "{:<4} {name}: releases {}", self.seconds, record.is_some()).unwrap();
        if let (Some(record), Some((_, version))) = (record, &self.lease) {
            self.lease = Some((record, version + 1));
        }
        self
    }

    fn campaign_again(&mut self, name: &str) -> &mut Self {
        self.candidates.get_mut(name).unwrap().elector.campaign_again();
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
        0    b: reads, waits until 1.75; stands by; lease "a" transitions=0
        2    a: writes, waits until 4; LEADS; lease "a" transitions=0
        2    b: reads, waits until 3.75; stands by; lease "a" transitions=0
        4    a: writes, waits until 6; LEADS; lease "a" transitions=0
        4    b: reads, waits until 5.75; stands by; lease "a" transitions=0
    "#]]);
}

#[test]
fn a_dead_leader_is_replaced_when_its_lease_is_over() {
    let mut s = Scenario::of(&["a", "b"]);
    s.at(0.0).run("a");
    s.at(1.0).run("b");
    // a is dead from here; b saw the lease at 1.
    s.at(15.9).run("b");
    s.at(17.9).run("b");
    s.expect(expect![[r#"
        0    a: finds none, writes, waits until 2; LEADS; lease "a" transitions=0
        1    b: reads, waits until 2.75; stands by; lease "a" transitions=0
        15.9 b: reads, waits until 16; stands by; lease "a" transitions=0
        17.9 b: reads, writes, waits until 19.9; LEADS; lease "b" transitions=1
    "#]]);
}

#[test]
fn whenever_a_leader_dies_another_leads_within_16_seconds_and_reads_little_before() {
    for tenth in 0..40_u32 {
        let dies = 30.0 + f64::from(tenth) / 10.0;
        let (mut leader, mut waiting) =
            (Elector::new("a", Timing::default()), Elector::new("b", Timing::default()));
        // Both candidates act each hundredth of a second, when due. The leader's renewals come at any phase
        // of the reads.
        let (mut lease, mut reads) = (None::<Record>, 0_u32);
        let mut turn = |elector: &mut Elector, hundredth: u32| {
            let elapsed = Duration::from_millis(u64::from(hundredth) * 10);
            let now = Clocks { elapsed, time: Timestamp::from_second(1_000_000).unwrap() };
            let mut step = elector.next(now, 0.5);
            loop {
                step = match step {
                    ElectionStep::WaitUntil(_) | ElectionStep::Lost => return,
                    ElectionStep::Read => {
                        reads += u32::from(!elector.is_leading());
                        elector.read(now, 0.5, lease.clone().map_or(LeaseRead::Absent, LeaseRead::Found))
                    }
                    ElectionStep::Create(mut record) | ElectionStep::Update(mut record) => {
                        record.renewed = Timestamp::from_millisecond(i64::from(hundredth) * 10).ok();
                        lease = Some(record);
                        elector.wrote(now, 0.5, true);
                        elector.next(now, 0.5)
                    }
                }
            }
        };
        let mut hundredth = 0;
        while !waiting.is_leading() {
            if f64::from(hundredth) < dies * 100.0 {
                turn(&mut leader, hundredth);
            }
            if hundredth > tenth {
                turn(&mut waiting, hundredth);
            }
            hundredth += 1;
        }
        let after = f64::from(hundredth) / 100.0 - dies;
        assert!((12.9..=15.6).contains(&after), "died at {dies}: led after {after} s");
        assert!(reads < 45, "{reads} reads");
    }
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
        0.5  b: reads, waits until 2.25; stands by; lease "a" transitions=0
        2    a: write fails, read fails, waits until 4; LEADS; lease "a" transitions=0
        4    a: read fails, waits until 6; LEADS; lease "a" transitions=0
        9.9  a: read fails, waits until 10; LEADS; lease "a" transitions=0
        10   a: lost; stands by; lease "a" transitions=0
        15.4 b: reads, waits until 15.5; stands by; lease "a" transitions=0
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
        1    b: reads, waits until 2.75; stands by; lease "a" transitions=0
        2    a: writes, waits until 4; LEADS; lease "a" transitions=0
        3    b: reads, waits until 4.75; stands by; lease "a" transitions=0
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
        0    b: reads, waits until 1.75; stands by; lease "a" transitions=0
        2    a: releases true
        2    b: reads, writes, waits until 4; LEADS; lease "b" transitions=1
        2.5  a: lost; stands by; lease "b" transitions=1
    "#]]);
}

#[test]
fn a_leader_whose_lease_was_taken_stops_at_its_next_renewal() {
    let mut s = Scenario::of(&["a", "b"]);
    s.at(0.0).run("a");
    // Another client takes the Lease by force: a new holder and a new version.
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

#[test]
fn clocks_that_jump_change_nothing() {
    let mut s = Scenario::of(&["a", "b"]);
    s.at(0.0).run("a").run("b");
    // The leader's clock jumps a day forwards, then two days backwards; the other's the other way round.
    s.skew("a", 86_400).skew("b", -86_400);
    s.at(2.0).run("a").run("b");
    s.skew("a", -86_400).skew("b", 86_400);
    s.at(4.0).run("a").run("b");
    s.at(6.0).run("a").run("b");
    s.expect(expect![[r#"
        0    a: finds none, writes, waits until 2; LEADS; lease "a" transitions=0
        0    b: reads, waits until 1.75; stands by; lease "a" transitions=0
        2    a: writes, waits until 4; LEADS; lease "a" transitions=0
        2    b: reads, waits until 3.75; stands by; lease "a" transitions=0
        4    a: writes, waits until 6; LEADS; lease "a" transitions=0
        4    b: reads, waits until 5.75; stands by; lease "a" transitions=0
        6    a: writes, waits until 8; LEADS; lease "a" transitions=0
        6    b: reads, waits until 7.75; stands by; lease "a" transitions=0
    "#]]);
}

#[test]
fn a_leader_with_a_clock_in_the_past_is_replaced_after_a_lease_duration_like_any_other() {
    let mut s = Scenario::of(&["a", "b"]);
    s.skew("a", -86_400);
    s.at(0.0).run("a").run("b");
    // a is dead from here. The renewTime is a day old, and was so from the beginning.
    s.at(2.0).run("b");
    s.at(14.9).run("b");
    s.at(16.9).run("b");
    s.expect(expect![[r#"
        0    a: finds none, writes, waits until 2; LEADS; lease "a" transitions=0
        0    b: reads, waits until 1.75; stands by; lease "a" transitions=0
        2    b: reads, waits until 2.25; stands by; lease "a" transitions=0
        14.9 b: reads, waits until 15; stands by; lease "a" transitions=0
        16.9 b: reads, writes, waits until 18.9; LEADS; lease "b" transitions=1
    "#]]);
}

#[test]
fn a_leader_that_was_suspended_for_longer_than_its_lease_stops_before_it_does_anything() {
    let mut s = Scenario::of(&["a", "b"]);
    s.at(0.0).run("a").run("b");
    s.at(2.0).run("a").run("b");
    // a is suspended until 60.
    s.at(18.0).run("b");
    s.at(60.0).run("a");
    s.expect(expect![[r#"
        0    a: finds none, writes, waits until 2; LEADS; lease "a" transitions=0
        0    b: reads, waits until 1.75; stands by; lease "a" transitions=0
        2    a: writes, waits until 4; LEADS; lease "a" transitions=0
        2    b: reads, waits until 3.75; stands by; lease "a" transitions=0
        18   b: reads, writes, waits until 20; LEADS; lease "b" transitions=1
        60   a: lost; stands by; lease "b" transitions=1
    "#]]);
}

#[test]
fn a_leader_that_was_suspended_for_longer_than_its_deadline_stops_though_the_lease_is_still_its_own() {
    let mut s = Scenario::of(&["a"]);
    s.at(0.0).run("a");
    s.at(11.0).run("a");
    s.expect(expect![[r#"
        0    a: finds none, writes, waits until 2; LEADS; lease "a" transitions=0
        11   a: lost; stands by; lease "a" transitions=0
    "#]]);
}

/// Returns the result of a candidate that is suspended while waiting for the reply to a write.
fn suspended_during_a_write(begun_as_leader: bool, seconds: f64) -> (bool, ElectionStep) {
    let mut elector = Elector::new("a", Timing::default());
    let at = |seconds: f64| Clocks { elapsed: Duration::from_secs_f64(seconds), time: Timestamp::UNIX_EPOCH };
    if begun_as_leader {
        assert_eq!(elector.next(at(0.0), 0.0), ElectionStep::Read);
        assert!(matches!(elector.read(at(0.0), 0.0, LeaseRead::Absent), ElectionStep::Create(_)));
        elector.wrote(at(0.0), 0.0, true);
        assert!(matches!(elector.next(at(2.0), 0.0), ElectionStep::Update(_)));
    } else {
        assert_eq!(elector.next(at(2.0), 0.0), ElectionStep::Read);
        assert!(matches!(elector.read(at(2.0), 0.0, LeaseRead::Absent), ElectionStep::Create(_)));
    }
    elector.wrote(at(2.0 + seconds), 0.0, true);
    (elector.is_leading(), elector.next(at(2.0 + seconds), 0.0))
}

#[test]
fn the_reply_to_a_write_counts_from_when_the_write_was_sent() {
    // The server may have written the Lease at once: other candidates count from that time.
    let (leads, step) = suspended_during_a_write(true, 9.5);
    assert!(leads);
    assert_eq!(step, ElectionStep::WaitUntil(Duration::from_secs(12)), "two seconds would be too long");
    let (_, step) = suspended_during_a_write(true, 10.0);
    assert_eq!(step, ElectionStep::Lost, "a renewal that is reported too late does not count");
    let (leads, _) = suspended_during_a_write(false, 10.0);
    assert!(!leads, "nor does an acquisition");
}

#[test]
fn the_times_in_the_lease_are_client_gos() {
    let mut s = Scenario::of(&["a", "b"]);
    let time = |seconds: i64| Timestamp::from_second(1_000_000 + seconds).ok();
    let lease = |s: &Scenario| s.lease.clone().map(|(record, _)| record).unwrap_or_default();
    s.at(0.0).run("a");
    s.at(2.0).run("a");
    assert_eq!((lease(&s).acquired, lease(&s).renewed, lease(&s).transitions), (time(0), time(2), 0));
    s.at(3.0).run("b");
    s.at(18.0).run("b");
    assert_eq!((lease(&s).acquired, lease(&s).renewed, lease(&s).transitions), (time(18), time(18), 1));
    assert_eq!(lease(&s).lease_duration, Duration::from_secs(15));
    s.release("b");
    // A released Lease lasts a second and has no holder; the transition is counted when a candidate takes the
    // Lease.
    assert_eq!((lease(&s).holder.as_str(), lease(&s).lease_duration), ("", Duration::from_secs(1)));
    assert_eq!(lease(&s).transitions, 1);
}

#[test]
fn a_leader_that_lost_the_lease_campaigns_again() {
    let mut scenario = Scenario::of(&["a", "b"]);
    scenario.at(0.0).run("a").run("b").cut_off("a", true);
    for seconds in [2.0, 4.0, 6.0, 8.0, 10.0] {
        scenario.at(seconds).run("a");
    }
    scenario.campaign_again("a").run("a").cut_off("a", false).at(15.0).run("b").at(17.0).run("a");
    scenario.at(18.0).release("b").at(20.0).run("a");
    scenario.expect(expect![[r#"
        0    a: finds none, writes, waits until 2; LEADS; lease "a" transitions=0
        0    b: reads, waits until 1.75; stands by; lease "a" transitions=0
        2    a: write fails, read fails, waits until 4; LEADS; lease "a" transitions=0
        4    a: read fails, waits until 6; LEADS; lease "a" transitions=0
        6    a: read fails, waits until 8; LEADS; lease "a" transitions=0
        8    a: read fails, waits until 10; LEADS; lease "a" transitions=0
        10   a: lost; stands by; lease "a" transitions=0
        10   a: read fails, waits until 12; stands by; lease "a" transitions=0
        15   b: reads, writes, waits until 17; LEADS; lease "b" transitions=1
        17   a: reads, waits until 18.75; stands by; lease "b" transitions=1
        18   b: releases true
        20   a: reads, writes, waits until 22; LEADS; lease "a" transitions=2
    "#]]);
}

#[test]
fn a_lease_duration_that_a_lease_cannot_hold_is_refused() {
    let timing = |lease_duration| Timing { lease_duration, ..Timing::default() };
    assert!(timing(Duration::from_secs(i32::MAX as u64)).check().is_ok());
    let error = timing(Duration::MAX).check().expect_err("refused");
    assert_eq!(error, "lease_duration must have at most 2147483647 seconds, which the Lease can hold");
}

#[test]
fn times_of_any_length_are_checked() {
    let defaults = Timing::default();
    for (timing, error) in [
        (
            Timing { retry_period: Duration::MAX, ..defaults },
            "renew_deadline must be longer than 1.2 times retry_period",
        ),
        (
            Timing { renew_deadline: Duration::MAX, ..defaults },
            "lease_duration, in whole seconds, must be longer than renew_deadline",
        ),
        (Timing { retry_period: Duration::ZERO, ..defaults }, "retry_period must not be zero"),
    ] {
        assert_eq!(timing.check(), Err(error), "{timing:?}");
    }
}

/// An environment variable that is not set, for example. Each replica with an empty identity would lead.
#[test]
fn a_candidate_needs_an_identity_and_a_lease() {
    let error = |election: LeaderElection| election.check().expect_err("refused").to_string();
    assert!(LeaderElection::new("op").check().is_ok());
    assert_eq!(
        error(LeaderElection::new("op").identity("")),
        "leader election \"op\": the identity is empty"
    );
    let nowhere = error(LeaderElection::new("op").namespace(""));
    assert!(nowhere.starts_with("leader election \"op\": the namespace: \"\" cannot be a name"), "{nowhere}");
    let nameless = error(LeaderElection::new("a/b"));
    assert!(
        nameless.starts_with("leader election \"a/b\": the Lease: \"a/b\" cannot be a name"),
        "{nameless}"
    );
}
