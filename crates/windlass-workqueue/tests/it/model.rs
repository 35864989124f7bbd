//! Random calls, in sequence, compared with a naive queue.

use proptest::prelude::*;
use std::collections::{BTreeMap, BTreeSet};
use std::time::Duration;
use windlass_workqueue::core::{Config, InFlight, Queue, Timestamp};
use windlass_workqueue::{AddOptions, RateLimiter};

#[derive(Clone, Debug)]
enum Call {
    Add { key: u8, priority: i32, after: Option<u64> },
    Get,
    Done { nth: usize },
    Pass { time: u64 },
}

fn call() -> impl Strategy<Value = Call> {
    let priority = prop_oneof![3 => Just(0), 2 => Just(-100), 1 => -3..4_i32];
    let after = prop_oneof![2 => Just(None), 1 => (0..50_u64).prop_map(Some)];
    prop_oneof![
        6 => (0..6_u8, priority, after).prop_map(|(key, priority, after)| Call::Add { key, priority, after }),
        4 => Just(Call::Get),
        4 => (0..8_usize).prop_map(|nth| Call::Done { nth }),
        2 => (0..40_u64).prop_map(|time| Call::Pass { time }),
    ]
}

/// A queue that searches a list of all entries from the front.
#[derive(Default)]
struct Naive {
    /// In order of arrival.
    ready: Vec<(u8, i32)>,
    delayed: Vec<Delayed>,
    running: BTreeSet<u8>,
    dirty: BTreeMap<u8, i32>,
}

#[derive(Clone, Copy)]
struct Delayed {
    key: u8,
    priority: i32,
    deadline: u64,
}

impl Naive {
    fn add(&mut self, key: u8, priority: i32, after: Option<u64>, now: u64) {
        let ready = self.ready.iter().find(|&&(k, _)| k == key).map(|&(_, p)| p);
        let ready = ready.or(self.dirty.get(&key).copied());
        if ready.is_some_and(|p| p >= priority) {
            return;
        }
        self.fire(now);
        let ready =
            ready.is_some() || self.ready.iter().any(|&(k, _)| k == key) || self.dirty.contains_key(&key);
        match after {
            Some(after) if after > 0 && !ready => {
                self.delay(Delayed { key, priority, deadline: now + after });
            }
            _ => self.make_ready(key, priority),
        }
    }

    fn delay(&mut self, new: Delayed) {
        let Some(at) = self.delayed.iter().position(|old| old.key == new.key) else {
            return self.delayed.push(new);
        };
        self.delayed[at].priority = self.delayed[at].priority.max(new.priority);
        if new.deadline < self.delayed[at].deadline {
            let old = self.delayed.remove(at);
            self.delayed.push(Delayed { deadline: new.deadline, ..old });
        }
    }

    fn make_ready(&mut self, key: u8, mut priority: i32) {
        if let Some(at) = self.delayed.iter().position(|timer| timer.key == key) {
            priority = priority.max(self.delayed.remove(at).priority);
        }
        if self.running.contains(&key) {
            let dirty = self.dirty.entry(key).or_insert(priority);
            *dirty = priority.max(*dirty);
            return;
        }
        if let Some(at) = self.ready.iter().position(|&(k, _)| k == key) {
            if self.ready[at].1 >= priority {
                return;
            }
            self.ready.remove(at);
        }
        self.ready.push((key, priority));
    }

    fn fire(&mut self, now: u64) {
        // The sort is stable: equals stay in the order they were set.
        let mut due: Vec<Delayed> =
            self.delayed.iter().copied().filter(|timer| timer.deadline <= now).collect();
        due.sort_by_key(|timer| timer.deadline);
        for timer in due {
            self.make_ready(timer.key, timer.priority);
        }
    }

    fn get(&mut self, now: u64) -> Option<(u8, i32)> {
        self.fire(now);
        let highest = self.ready.iter().map(|&(_, priority)| priority).max()?;
        let at = self.ready.iter().position(|&(_, priority)| priority == highest)?;
        let (key, priority) = self.ready.remove(at);
        self.running.insert(key);
        Some((key, priority))
    }

    fn done(&mut self, key: u8) {
        self.running.remove(&key);
        if let Some(priority) = self.dirty.remove(&key) {
            self.ready.push((key, priority));
        }
    }
}

proptest! {
    #![proptest_config(ProptestConfig { cases: if cfg!(miri) { 8 } else { 2000 }, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn behaves_like_the_naive_queue(calls in prop::collection::vec(call(), 1..120)) {
        let rate_limiter = RateLimiter::default();
        // Too few calls for ageing to favour a lower priority.
        let queue = Queue::new(&Config { rate_limiter, ageing: 1024, ..Config::default() });
        let mut naive = Naive::default();
        let mut in_flight: Vec<InFlight<u8>> = Vec::new();
        let mut now = 0;
        for call in calls {
            let tick = Timestamp::from_nanos(now);
            match call {
                Call::Add { key, priority, after } => {
                    let options = AddOptions::new().priority(priority);
                    let options = after.map_or(options, |after| options.after(Duration::from_nanos(after)));
                    let _ = queue.add(key, options, tick);
                    naive.add(key, priority, after, now);
                }
                Call::Get => {
                    let item = queue.get(tick);
                    prop_assert_eq!(item.as_ref().map(|l| (*l.key(), l.priority())), naive.get(now));
                    in_flight.extend(item);
                }
                Call::Done { nth } if !in_flight.is_empty() => {
                    let item = in_flight.remove(nth % in_flight.len());
                    naive.done(*item.key());
                    let _ = queue.done(item, tick);
                }
                Call::Done { .. } => {}
                Call::Pass { time } => now += time,
            }
            prop_assert_eq!(queue.len(), naive.ready.len());
            prop_assert_eq!(queue.delayed(), naive.delayed.len());
            let next = naive.delayed.iter().map(|wait| Timestamp::from_nanos(wait.deadline)).min();
            prop_assert_eq!(queue.next_deadline(), next);
        }
    }
}
