//! Random schedules: joins, leaves, kills, suspensions, partitions, lost and late replies, clocks that run at different rates.

use std::time::Duration;

use fastrand::Rng;

use super::{
    super::{
        membership::{Membership, MembershipStep, WriteResult},
        owned_keys::Ownership,
        rendezvous::hash,
    },
    replica,
    server::{OwnLease, Reply, Server},
};

const TICK: Duration = Duration::from_millis(20);
const KEYS: u64 = 24;
/// The time without faults in which the keys must find owners: a lease duration for the last dead replica, by
/// a slow clock, and some round trips.
const QUIET: Duration = Duration::from_secs(60);

/// A process with a membership, and the process's work.
struct Process {
    core: Membership,
    own: OwnLease,
    alive: bool,
    /// The clock of the process: the time at the start, and the rate.
    clock: (Duration, f64),
    suspended_until: Duration,
    cut_off_until: Duration,
    request: Option<Request>,
    wake: Duration,
    /// The keys in work, and when the work ends.
    work: Vec<(u64, Duration)>,
    leaves: bool,
}

struct Request {
    step: MembershipStep,
    replaces: Option<String>,
    /// The time at which the request reaches the server; `None` if the request never arrives, or has arrived.
    commit: Option<Duration>,
    reply: Option<(Duration, Option<Reply>)>,
    timeout: Duration,
}

impl Process {
    fn now(&self, time: Duration) -> Duration {
        self.clock.0 + time.mul_f64(self.clock.1)
    }

    /// Returns whether the process would continue the work on a key at this time.
    fn works_on(&self, key: u64, time: Duration) -> bool {
        self.alive
            && self.work.iter().any(|(working, _)| *working == key)
            && self.core.may_continue(self.now(time), key)
    }
}

struct World {
    random: Rng,
    time: Duration,
    server: Server,
    processes: Vec<Process>,
    /// Requests with senders that have given up. The requests reach the server later.
    stray: Vec<(Duration, MembershipStep, Option<String>)>,
    faults: bool,
    begun: usize,
}

impl World {
    fn new(seed: u64) -> Self {
        Self {
            random: Rng::with_seed(seed),
            time: Duration::ZERO,
            server: Server::default(),
            processes: Vec::new(),
            stray: Vec::new(),
            faults: true,
            begun: 0,
        }
    }

    fn chance(&mut self, one_in: u32) -> bool {
        self.faults && self.random.u32(..one_in) == 0
    }

    fn milliseconds(&mut self, range: std::ops::Range<u64>) -> Duration {
        Duration::from_millis(self.random.u64(range))
    }

    fn start_process(&mut self) {
        let (name, offset) = (self.random.u64(..), self.milliseconds(0..100_000));
        // Within the stated bound: 1.1 / 0.9 is less than 15 / 10.
        let rate = 0.9 + 0.2 * self.random.f64();
        self.processes.push(Process {
            core: replica(name),
            own: OwnLease::default(),
            alive: true,
            clock: (offset, rate),
            suspended_until: Duration::ZERO,
            cut_off_until: Duration::ZERO,
            request: None,
            wake: Duration::ZERO,
            work: Vec::new(),
            leaves: false,
        });
    }

    fn living(&self) -> usize {
        self.processes.iter().filter(|process| process.alive && !process.leaves).count()
    }

    fn tick(&mut self) {
        self.time += TICK;
        self.break_something();
        let time = self.time;
        let (due, stray) = self.stray.drain(..).partition(|(at, ..)| *at <= time);
        self.stray = stray;
        let due: Vec<_> = due;
        for (_, step, replaces) in due {
            self.server.commit(&step, replaces.as_deref());
        }
        for number in 0..self.processes.len() {
            self.transmit(number);
            let process = &self.processes[number];
            if process.alive && process.suspended_until <= self.time {
                self.work(number);
                self.step(number);
            }
        }
    }

    fn break_something(&mut self) {
        if self.living() < 2 || (self.living() < 5 && self.chance(400)) {
            self.start_process();
        }
        for number in 0..self.processes.len() {
            if !self.processes[number].alive {
                continue;
            }
            if self.chance(2000) {
                self.kill(number);
            }
            if self.chance(2000) {
                self.processes[number].leaves = true;
                self.processes[number].core.leave();
            }
            if self.chance(1500) {
                self.processes[number].suspended_until = self.time + self.milliseconds(100..40_000);
            }
            if self.chance(1500) {
                self.processes[number].cut_off_until = self.time + self.milliseconds(100..30_000);
            }
        }
    }

    fn kill(&mut self, number: usize) {
        let process = &mut self.processes[number];
        process.alive = false;
        process.work.clear();
        if let Some(Request { step, replaces, commit: Some(at), .. }) = process.request.take() {
            self.stray.push((at, step, replaces));
        }
    }

    /// Moves the request of a process to the server, and the reply back.
    fn transmit(&mut self, number: usize) {
        let time = self.time;
        let process = &mut self.processes[number];
        let Some(request) = &mut process.request else { return };
        if request.commit.is_some_and(|at| at <= time) {
            request.commit = None;
            let reply = self.server.commit(&request.step, request.replaces.as_deref());
            if let Some((_, slot)) = &mut request.reply {
                *slot = Some(reply);
            }
        }
        if !process.alive || process.suspended_until > time {
            return;
        }
        let arrived = matches!(&request.reply, Some((at, Some(_))) if *at <= time);
        if !arrived && time < request.timeout {
            return;
        }
        let Some(Request { step, replaces, commit, reply, .. }) = process.request.take() else { return };
        let now = process.now(time);
        let reply = reply.and_then(|(_, reply)| reply).filter(|_| arrived);
        if reply.is_none()
            && let Some(at) = commit
        {
            self.stray.push((at, step.clone(), replaces));
        }
        match (&step, reply) {
            (MembershipStep::Write { name, .. }, Some(reply @ Reply::Written(result, _))) => {
                process.own.learn(name, &reply);
                process.core.wrote(now, result);
            }
            (MembershipStep::Write { .. }, _) => process.core.wrote(now, WriteResult::Failed),
            (MembershipStep::List, Some(Reply::Listed(leases))) => process.core.listed(now, Some(&leases)),
            (MembershipStep::List, _) => process.core.listed(now, None),
            _ => {}
        }
        process.wake = Duration::ZERO;
    }

    /// Runs the process until the process waits.
    fn step(&mut self, number: usize) {
        let random = self.random.u64(..);
        let process = &mut self.processes[number];
        let now = process.now(self.time);
        if process.request.is_some() || now < process.wake {
            return;
        }
        match process.core.next(now, random) {
            MembershipStep::WaitUntil(until) => process.wake = until,
            MembershipStep::Left => {
                assert!(process.work.is_empty(), "left with work");
                process.alive = false;
            }
            step => self.send(number, step),
        }
    }

    fn send(&mut self, number: usize, step: MembershipStep) {
        let (there, back) = (self.latency(), self.latency());
        let lost = self.chance(30) || self.processes[number].cut_off_until > self.time;
        let reply_lost = self.chance(30);
        let process = &mut self.processes[number];
        let limit = process.core.request_timeout(process.now(self.time)).div_f64(process.clock.1);
        let replaces = match &step {
            MembershipStep::Write { name, .. } => process.own.version(name),
            _ => None,
        };
        process.request = Some(Request {
            step,
            replaces,
            commit: (!lost).then_some(self.time + there),
            reply: (!lost && !reply_lost).then_some((self.time + there + back, None)),
            timeout: self.time + limit,
        });
    }

    fn latency(&mut self) -> Duration {
        if self.chance(20) { self.milliseconds(0..8_000) } else { self.milliseconds(0..60) }
    }

    fn work(&mut self, number: usize) {
        let (time, before) = (self.time, self.processes[number].work.len());
        let process = &mut self.processes[number];
        let now = process.now(time);
        let Process { core, work, .. } = process;
        work.retain(|(key, ends)| {
            let goes_on = *ends > time && core.may_continue(now, *key);
            if !goes_on {
                core.end(*key);
            }
            goes_on
        });
        if work.len() < before {
            process.wake = Duration::ZERO;
        }
        if process.work.len() >= 8 {
            return;
        }
        let key = hash(&format!("default/{}", self.random.u64(..KEYS)));
        let process = &mut self.processes[number];
        if process.work.iter().any(|(working, _)| *working == key)
            || process.core.begin(now, key) != Ownership::Own
        {
            return;
        }
        self.begun += 1;
        let others: Vec<usize> = (0..self.processes.len()).filter(|other| *other != number).collect();
        for other in others {
            assert!(
                !self.processes[other].works_on(key, time),
                "at {time:?}, replicas {number} and {other} work on the same key; Leases: {}",
                self.server.describe()
            );
        }
        // Some reconciles take longer than the hand-over timeout.
        let ends = time + self.milliseconds(0..8_000);
        self.processes[number].work.push((key, ends));
    }

    fn run(&mut self, duration: Duration) {
        let end = self.time + duration;
        while self.time < end {
            self.tick();
        }
    }

    fn assert_each_key_has_an_owner(&self) {
        for key in 0..KEYS {
            let key = hash(&format!("default/{key}"));
            let owners = self.processes.iter().filter(|process| {
                process.alive && !process.leaves && process.core.owned_keys().ownership(key) == Ownership::Own
            });
            assert_eq!(owners.count(), 1, "Leases: {}", self.server.describe());
        }
    }
}

#[test]
fn a_key_never_has_two_owners_and_gets_one_in_the_end() {
    let (mut begun, mut hand_overs, mut processes) = (0, 0, 0);
    for seed in 0..60 {
        let mut world = World::new(seed);
        world.run(Duration::from_secs(120));
        world.faults = false;
        for process in &mut world.processes {
            process.suspended_until = Duration::ZERO;
            process.cut_off_until = Duration::ZERO;
        }
        world.run(QUIET);
        world.assert_each_key_has_an_owner();
        begun += world.begun;
        processes += world.processes.len();
        hand_overs += world.processes.iter().map(|process| process.core.hand_overs()).sum::<u64>();
    }
    // The schedules reach the intended states.
    assert!(begun > 15_000, "{begun} reconciles");
    assert!(hand_overs > 100, "{hand_overs} hand-overs");
    assert!(processes > 500, "{processes} replicas");
}
