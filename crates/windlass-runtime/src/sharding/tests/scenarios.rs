//! The protocol as scripts: replicas take turns on a server, and a transcript has the actions of each
//! replica.

use std::{collections::BTreeMap, fmt::Write, time::Duration};

use expect_test::{Expect, expect};

use super::{
    super::{
        membership::{Membership, MembershipStep, MembershipTiming, WriteResult},
        owned_keys::Ownership,
        rendezvous::hash,
    },
    server::{OwnLease, Reply, Server, short},
    timing,
};

struct Scenario {
    server: Server,
    replicas: BTreeMap<char, (Membership, OwnLease)>,
    cut_off: Option<char>,
    seconds: f64,
    transcript: String,
}

impl Scenario {
    fn of(names: &str) -> Self {
        Self::with(names, timing())
    }

    /// The letters are the last digits of the replicas' names.
    fn with(names: &str, timing: MembershipTiming) -> Self {
        let replica = |name: char| {
            let digit = name.to_digit(16).expect("a hexadecimal digit");
            (name, (Membership::new("op", timing, digit.into()), OwnLease::default()))
        };
        Self {
            server: Server::default(),
            replicas: names.chars().map(replica).collect(),
            cut_off: None,
            seconds: 0.0,
            transcript: String::new(),
        }
    }

    fn at(&mut self, seconds: f64) -> &mut Self {
        self.seconds = seconds;
        self
    }

    fn now(&self) -> Duration {
        Duration::from_secs_f64(self.seconds)
    }

    /// Runs a replica until the replica waits.
    fn run(&mut self, name: char) -> &mut Self {
        let now = self.now();
        let (core, own) = self.replicas.get_mut(&name).expect("a replica");
        let mut did = Vec::new();
        loop {
            let step = core.next(now, 0xf);
            let reached = self.cut_off != Some(name);
            match &step {
                MembershipStep::WaitUntil(until) => {
                    did.push(format!("waits until {}", until.as_secs_f64()));
                    break;
                }
                MembershipStep::Left => {
                    did.push("has left".to_owned());
                    break;
                }
                MembershipStep::Write { .. } | MembershipStep::List if !reached => {
                    did.push("gets no answer".to_owned());
                    if step == MembershipStep::List {
                        core.listed(now, None);
                    } else {
                        core.wrote(now, WriteResult::Failed);
                    }
                }
                MembershipStep::Write { name, .. } => {
                    let reply = self.server.commit(&step, own.version(name).as_deref());
                    own.learn(name, &reply);
                    if let Reply::Written(result, _) = reply {
                        did.push(
                            if result == WriteResult::Written { "writes" } else { "fails to write" }
                                .to_owned(),
                        );
                        core.wrote(now, result);
                    }
                }
                MembershipStep::List => {
                    did.push("lists".to_owned());
                    if let Reply::Listed(leases) = self.server.commit(&step, None) {
                        core.listed(now, Some(&leases));
                    }
                }
                MembershipStep::Delete { name, .. } => {
                    did.push(format!("deletes {}", short(name)));
                    self.server.commit(&step, None);
                }
            }
        }
        let owned = (0..100)
            .filter(|key| core.owned_keys().ownership(hash(&key.to_string())) == Ownership::Own)
            .count();
        let (seconds, leases) = (self.seconds, self.server.describe());
        writeln!(self.transcript, "{seconds:<4} {name}: {}; owns {owned}; {leases}", did.join(", "))
            .expect("a string");
        self
    }

    /// Returns a key that the first replica owns without the second replica, and that the second replica owns
    /// when present.
    fn key_that_moves(&self, from: char, to: char) -> u64 {
        let (from, to) = (self.member(from), self.member(to));
        (0..1000).map(|key: u32| hash(&key.to_string())).find(|key| to.outranks(&from, *key)).expect("a key")
    }

    fn member(&self, name: char) -> super::super::rendezvous::Member {
        super::super::rendezvous::Member::new(self.replicas[&name].0.name())
    }

    fn core(&mut self, name: char) -> &mut Membership {
        &mut self.replicas.get_mut(&name).expect("a replica").0
    }

    fn expect(&self, expected: Expect) {
        expected.assert_eq(&self.transcript);
    }
}

#[test]
fn a_replica_that_joins_waits_until_the_other_has_given_its_keys_up() {
    let mut s = Scenario::of("ab");
    s.at(0.0).run('a');
    s.at(1.0).run('b');
    s.at(2.0).run('a');
    s.at(2.2).run('b');
    s.expect(expect![[r"
        0    a: writes, lists, waits until 2; owns 100; a→[]
        1    b: writes, lists, writes, waits until 1.2; owns 0; a→[] b→[a]
        2    a: writes, lists, writes, waits until 2.2; owns 47; a→[b] b→[a]
        2.2  b: lists, waits until 3; owns 53; a→[b] b→[a]
    "]]);
}

#[test]
fn work_in_flight_delays_the_hand_over_and_is_cancelled_in_the_end() {
    let mut s = Scenario::of("ab");
    let key = s.key_that_moves('a', 'b');
    s.at(0.0).run('a');
    let now = s.now();
    assert_eq!(s.core('a').begin(now, key), Ownership::Own);
    s.at(1.0).run('b');
    s.at(2.0).run('a').run('b');
    let now = s.now();
    assert_eq!(s.core('b').begin(now, key), Ownership::Waiting);
    assert!(s.core('a').may_continue(now, key));
    s.at(4.0).run('a').run('b');
    // The hand-over timeout is 5 s.
    s.at(7.0);
    let now = s.now();
    assert!(!s.core('a').may_continue(now, key));
    assert!(s.core('a').end(key), "the hand-over waits for it");
    s.run('a').run('b');
    assert_eq!(s.core('b').begin(now, key), Ownership::Own);
    s.expect(expect![[r"
        0    a: writes, lists, waits until 2; owns 100; a→[]
        1    b: writes, lists, writes, waits until 1.2; owns 0; a→[] b→[a]
        2    a: writes, lists, waits until 2.2; owns 47; a→[] b→[a]
        2    b: lists, waits until 2.2; owns 0; a→[] b→[a]
        4    a: writes, lists, waits until 4.2; owns 47; a→[] b→[a]
        4    b: writes, lists, waits until 4.2; owns 0; a→[] b→[a]
        7    a: writes, lists, waits until 9; owns 47; a→[b] b→[a]
        7    b: writes, lists, waits until 9; owns 53; a→[b] b→[a]
    "]]);
}

#[test]
fn the_keys_of_a_dead_replica_move_when_its_lease_has_expired() {
    let mut s = Scenario::of("ab");
    s.at(0.0).run('a');
    s.at(1.0).run('b');
    s.at(2.0).run('a').run('b');
    // b is dead from here.
    for seconds in [4.0, 8.0, 12.0, 16.9, 18.9] {
        s.at(seconds).run('a');
    }
    s.expect(expect![[r"
        0    a: writes, lists, waits until 2; owns 100; a→[]
        1    b: writes, lists, writes, waits until 1.2; owns 0; a→[] b→[a]
        2    a: writes, lists, writes, waits until 2.2; owns 47; a→[b] b→[a]
        2    b: lists, waits until 3; owns 53; a→[b] b→[a]
        4    a: writes, lists, waits until 6; owns 47; a→[b] b→[a]
        8    a: writes, lists, waits until 10; owns 47; a→[b] b→[a]
        12   a: writes, lists, waits until 14; owns 47; a→[b] b→[a]
        16.9 a: writes, lists, waits until 18.9; owns 47; a→[b] b→[a]
        18.9 a: writes, lists, deletes b, lists, waits until 20.9; owns 100; a→[b]
    "]]);
}

#[test]
fn work_is_never_cut_off_if_the_hand_over_may_take_for_ever() {
    let mut s = Scenario::with("ab", MembershipTiming { hand_over_timeout: Duration::MAX, ..timing() });
    let key = s.key_that_moves('a', 'b');
    s.at(0.0).run('a');
    let now = s.now();
    assert_eq!(s.core('a').begin(now, key), Ownership::Own);
    s.at(1.0).run('b');
    s.at(2.0).run('a').run('b');
    s.at(4.0).run('a').run('b');
    s.at(7.0);
    let now = s.now();
    assert!(s.core('a').may_continue(now, key));
}

#[test]
fn a_replica_that_cannot_renew_stops_before_others_take_its_keys_and_joins_again() {
    let mut s = Scenario::of("ab");
    s.at(0.0).run('a');
    s.at(1.0).run('b');
    s.at(2.0).run('a').run('b');
    s.cut_off = Some('b');
    let key = s.key_that_moves('a', 'b');
    s.at(4.0).run('a').run('b');
    let now = s.now();
    assert_eq!(s.core('b').begin(now, key), Ownership::Own);
    s.at(10.9).run('a');
    let now = s.now();
    assert!(s.core('b').may_continue(now, key));
    s.at(11.0);
    let now = s.now();
    assert!(!s.core('b').may_continue(now, key), "no turn of the state machine is needed for that");
    s.run('b');
    s.core('b').end(key);
    s.cut_off = None;
    s.at(12.0).run('b');
    s.at(12.9).run('a').run('b');
    s.at(13.1).run('b');
    s.at(17.0).run('a').run('b');
    s.expect(expect![[r"
        0    a: writes, lists, waits until 2; owns 100; a→[]
        1    b: writes, lists, writes, waits until 1.2; owns 0; a→[] b→[a]
        2    a: writes, lists, writes, waits until 2.2; owns 47; a→[b] b→[a]
        2    b: lists, waits until 3; owns 53; a→[b] b→[a]
        4    a: writes, lists, waits until 6; owns 47; a→[b] b→[a]
        4    b: gets no answer, gets no answer, waits until 4.5; owns 53; a→[b] b→[a]
        10.9 a: writes, lists, waits until 12.9; owns 47; a→[b] b→[a]
        11   b: waits until 13; owns 0; a→[b] b→[a]
        12   b: writes, lists, writes, waits until 12.2; owns 0; a→[b] b→[a] f→[a]
        12.9 a: writes, lists, writes, waits until 13.1; owns 31; a→[b,f] b→[a] f→[a]
        12.9 b: lists, waits until 14; owns 51; a→[b,f] b→[a] f→[a]
        13.1 b: waits until 14; owns 51; a→[b,f] b→[a] f→[a]
        17   a: writes, lists, deletes b, lists, waits until 19; owns 49; a→[b,f] f→[a]
        17   b: writes, lists, waits until 19; owns 51; a→[b,f] f→[a]
    "]]);
}

/// Keys that were refused meanwhile are put aside until the owned_keys change: the owned_keys must change.
#[test]
fn a_renewal_that_is_answered_after_the_deadline_changes_the_rights() {
    let mut s = Scenario::of("a");
    s.at(0.0).run('a');
    let key = 7;
    let core = s.core('a');
    let seconds = Duration::from_secs_f64;
    assert!(matches!(core.next(seconds(9.0), 0xf), MembershipStep::Write { .. }));
    let before = core.owned_keys().clone();
    assert_eq!(core.begin(seconds(10.2), key), Ownership::Foreign);
    core.wrote(seconds(10.5), WriteResult::Written);
    assert_ne!(core.owned_keys(), &before);
    s.at(10.5).run('a');
    let core = s.core('a');
    assert!(!std::sync::Arc::ptr_eq(core.owned_keys(), &before));
    assert_eq!(core.begin(seconds(10.6), key), Ownership::Own);
}

#[test]
fn a_replica_that_leaves_gives_its_keys_up_at_once() {
    let mut s = Scenario::of("ab");
    s.at(0.0).run('a');
    s.at(1.0).run('b');
    s.at(2.0).run('a').run('b');
    s.core('b').leave();
    s.at(3.0).run('b');
    for seconds in [4.0, 8.0, 12.0, 18.9, 20.9] {
        s.at(seconds).run('a');
    }
    s.expect(expect![[r"
        0    a: writes, lists, waits until 2; owns 100; a→[]
        1    b: writes, lists, writes, waits until 1.2; owns 0; a→[] b→[a]
        2    a: writes, lists, writes, waits until 2.2; owns 47; a→[b] b→[a]
        2    b: lists, waits until 3; owns 53; a→[b] b→[a]
        3    b: writes, has left; owns 0; a→[b] b released→[a]
        4    a: writes, lists, waits until 6; owns 100; a→[b] b released→[a]
        8    a: writes, lists, waits until 10; owns 100; a→[] b released→[a]
        12   a: writes, lists, waits until 14; owns 100; a→[] b released→[a]
        18.9 a: writes, lists, waits until 20.9; owns 100; a→[] b released→[a]
        20.9 a: writes, lists, deletes b, lists, waits until 22.9; owns 100; a→[]
    "]]);
}

#[test]
fn a_lease_that_is_deleted_by_hand_frees_no_keys_before_it_would_have_expired() {
    let mut s = Scenario::of("ab");
    s.at(0.0).run('a');
    s.at(1.0).run('b');
    s.at(2.0).run('a').run('b');
    let name = s.core('b').name().to_owned();
    s.server.delete(&name);
    s.at(4.0).run('a').run('b');
    s.at(4.2).run('a').run('b');
    for seconds in [8.0, 12.0, 16.9, 17.1] {
        s.at(seconds).run('b').run('a');
    }
    s.expect(expect![[r"
        0    a: writes, lists, waits until 2; owns 100; a→[]
        1    b: writes, lists, writes, waits until 1.2; owns 0; a→[] b→[a]
        2    a: writes, lists, writes, waits until 2.2; owns 47; a→[b] b→[a]
        2    b: lists, waits until 3; owns 53; a→[b] b→[a]
        4    a: writes, lists, waits until 4.2; owns 47; a→[b]
        4    b: fails to write, writes, lists, writes, waits until 4.2; owns 0; a→[b] f→[a]
        4.2  a: lists, writes, waits until 4.4; owns 31; a→[b,f] f→[a]
        4.2  b: lists, waits until 6; owns 51; a→[b,f] f→[a]
        8    b: writes, lists, waits until 10; owns 51; a→[b,f] f→[a]
        8    a: writes, lists, waits until 8.2; owns 31; a→[b,f] f→[a]
        12   b: writes, lists, waits until 14; owns 51; a→[b,f] f→[a]
        12   a: writes, lists, waits until 12.2; owns 31; a→[b,f] f→[a]
        16.9 b: writes, lists, waits until 18.9; owns 51; a→[b,f] f→[a]
        16.9 a: writes, lists, waits until 17.1; owns 31; a→[b,f] f→[a]
        17.1 b: waits until 18.9; owns 51; a→[b,f] f→[a]
        17.1 a: lists, waits until 18.9; owns 49; a→[b,f] f→[a]
    "]]);
}

#[test]
fn two_that_join_at_once_wait_for_each_other() {
    let mut s = Scenario::of("ab");
    for name in ['a', 'b'] {
        // Both Leases are written before either is listed.
        let now = s.now();
        let step = s.core(name).next(now, 0);
        let (core, own) = s.replicas.get_mut(&name).expect("a replica");
        let reply = s.server.commit(&step, None);
        own.learn(core.name(), &reply);
        core.wrote(now, WriteResult::Written);
    }
    s.run('a').run('b');
    s.at(0.2).run('a').run('b');
    s.expect(expect![[r"
        0    a: lists, writes, waits until 0.2; owns 0; a→[b] b→[]
        0    b: lists, writes, waits until 0.2; owns 53; a→[b] b→[a]
        0.2  a: lists, waits until 2; owns 47; a→[b] b→[a]
        0.2  b: lists, waits until 2; owns 53; a→[b] b→[a]
    "]]);
}
