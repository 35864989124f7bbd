//! Every interleaving that loom finds of the steps that take no lock.
//!
//! ```text
//! RUSTFLAGS="--cfg loom" cargo test -p windlass-workqueue --release --lib
//! ```

use crate::core::{Config, Queue, Signal, Tick};
use crate::gate::{Gate, Sleeping};
use crate::metrics::Stripe;
use crate::seat::Seat;
use crate::slot::Place;
use crate::sync::{Arc, AtomicBool, Mutex, Ordering};
use crate::{AddOptions, LOW_PRIORITY};
use loom::thread;
use std::time::Duration;

const NOW: Tick = Tick::ZERO;
const USUAL: AddOptions = AddOptions::new();
const LOW: AddOptions = AddOptions::new().priority(LOW_PRIORITY);
const LATER: AddOptions = AddOptions::new().after(Duration::from_nanos(1));

fn queue() -> Arc<Queue<u8>> {
    Arc::new(Queue::new(&Config::default()))
}

fn add(queue: &Queue<u8>, place: &Arc<Place<u8>>, options: AddOptions) -> Signal {
    queue.add_place(Stripe::default(), place, options, || NOW)
}

/// Works off what is ready: how many keys that was.
fn work_off(queue: &Queue<u8>, now: Tick) -> usize {
    let mut worked = 0;
    while let Some(lease) = queue.get(now) {
        let _ = queue.done(lease, now);
        worked += 1;
    }
    worked
}

fn assert_empty(queue: &Queue<u8>) {
    assert!(queue.is_drained());
    assert_eq!(queue.len(), 0, "no void entry is miscounted");
    assert_eq!(queue.waiting(), 0);
}

#[test]
fn two_adds_of_a_key_are_one_entry() {
    loom::model(|| {
        let queue = queue();
        let place = queue.place(1).unwrap();
        let other = {
            let (queue, place) = (Arc::clone(&queue), place.clone());
            thread::spawn(move || add(&queue, &place, USUAL))
        };
        let _ = add(&queue, &place, USUAL);
        let _ = other.join().unwrap();
        assert_eq!(work_off(&queue, NOW), 1);
        assert_empty(&queue);
    });
}

#[test]
fn an_add_during_the_work_is_never_lost() {
    loom::model(|| {
        let queue = queue();
        let place = queue.place(1).unwrap();
        let _ = add(&queue, &place, USUAL);
        let first = queue.get(NOW).unwrap();
        let adder = {
            let (queue, place) = (Arc::clone(&queue), place.clone());
            thread::spawn(move || add(&queue, &place, USUAL))
        };
        let _ = queue.done(first, NOW);
        let _ = adder.join().unwrap();
        assert_eq!(work_off(&queue, NOW), 1);
        assert_empty(&queue);
    });
}

#[test]
fn a_key_is_in_one_pair_of_hands() {
    loom::model(|| {
        let queue = queue();
        let place = queue.place(1).unwrap();
        let busy = Arc::new(AtomicBool::new(false));
        let _ = add(&queue, &place, USUAL);
        let work = |queue: &Queue<u8>, busy: &AtomicBool| {
            if let Some(lease) = queue.get(NOW) {
                assert!(!busy.swap(true, Ordering::SeqCst));
                busy.store(false, Ordering::SeqCst);
                let _ = queue.done(lease, NOW);
            }
        };
        let worker = {
            let (queue, busy) = (Arc::clone(&queue), Arc::clone(&busy));
            thread::spawn(move || work(&queue, &busy))
        };
        let _ = add(&queue, &place, USUAL);
        work(&queue, &busy);
        worker.join().unwrap();
        work_off(&queue, NOW);
        assert_empty(&queue);
    });
}

#[test]
fn what_was_written_before_an_add_is_seen_by_the_work_that_it_merges_with() {
    loom::model(|| {
        let queue = queue();
        let place = queue.place(1).unwrap();
        let _ = add(&queue, &place, USUAL);
        let state = Arc::new(AtomicBool::new(false));
        let worker = {
            let (queue, state) = (Arc::clone(&queue), Arc::clone(&state));
            thread::spawn(move || {
                let lease = queue.get(NOW).unwrap();
                let seen = state.load(Ordering::Relaxed);
                let _ = queue.done(lease, NOW);
                seen
            })
        };
        state.store(true, Ordering::Relaxed);
        let _ = add(&queue, &place, USUAL);
        let seen = worker.join().unwrap();
        assert!(seen || work_off(&queue, NOW) == 1, "the work has read what was there before the add");
    });
}

#[test]
fn a_raise_and_a_claim_hand_the_key_out_once() {
    loom::model(|| {
        let queue = queue();
        let place = queue.place(1).unwrap();
        let _ = add(&queue, &place, LOW);
        let worker = {
            let queue = Arc::clone(&queue);
            thread::spawn(move || queue.get(NOW))
        };
        let _ = add(&queue, &place, USUAL);
        let lease = worker.join().unwrap();
        let rest = work_off(&queue, NOW);
        match lease {
            // The raise came after the claim: once more, when the first work is done.
            Some(lease) if lease.priority() == LOW_PRIORITY => {
                assert_eq!(rest, 0);
                let _ = queue.done(lease, NOW);
                assert_eq!(work_off(&queue, NOW), 1);
            }
            Some(lease) => {
                assert_eq!(rest, 0);
                let _ = queue.done(lease, NOW);
            }
            // It met the void entry before the good one was there.
            None => assert_eq!(rest, 1),
        }
        assert_empty(&queue);
    });
}

#[test]
fn a_timer_that_fires_and_an_add_are_one_entry() {
    loom::model(|| {
        let queue = queue();
        let place = queue.place(1).unwrap();
        let _ = add(&queue, &place, LATER);
        let due = Tick::from_nanos(1);
        let worker = {
            let queue = Arc::clone(&queue);
            thread::spawn(move || queue.get(due))
        };
        let _ = add(&queue, &place, USUAL);
        let mut worked = 0;
        if let Some(lease) = worker.join().unwrap() {
            let _ = queue.done(lease, due);
            worked = 1;
        }
        worked += work_off(&queue, due);
        assert!((1..=2).contains(&worked), "{worked}");
        assert_empty(&queue);
    });
}

#[test]
fn a_delay_set_while_the_work_ends_is_kept() {
    loom::model(|| {
        let queue = queue();
        let place = queue.place(1).unwrap();
        let _ = add(&queue, &place, USUAL);
        let lease = queue.get(NOW).unwrap();
        let adder = {
            let (queue, place) = (Arc::clone(&queue), place.clone());
            thread::spawn(move || add(&queue, &place, LATER))
        };
        let _ = queue.done(lease, NOW);
        let _ = adder.join().unwrap();
        assert_eq!(queue.waiting(), 1);
        assert_eq!(work_off(&queue, Tick::from_nanos(1)), 1);
        assert_empty(&queue);
    });
}

#[test]
fn no_timer_outlives_a_shut_down() {
    loom::model(|| {
        let queue = queue();
        let place = queue.place(1).unwrap();
        let adder = {
            let (queue, place) = (Arc::clone(&queue), place.clone());
            thread::spawn(move || add(&queue, &place, LATER))
        };
        queue.shut_down();
        let _ = adder.join().unwrap();
        assert_eq!(queue.waiting(), 0);
        assert_eq!(queue.next_deadline(), None);
        assert_empty(&queue);
    });
}

#[test]
fn an_add_that_races_with_the_end_is_handed_out_or_refused() {
    loom::model(|| {
        let queue = queue();
        let place = queue.place(1).unwrap();
        let adder = {
            let (queue, place) = (Arc::clone(&queue), place.clone());
            thread::spawn(move || add(&queue, &place, USUAL))
        };
        queue.shut_down();
        // A worker looks once more after it has seen the end, and leaves.
        work_off(&queue, NOW);
        let _ = adder.join().unwrap();
        assert_empty(&queue);
    });
}

/// Work behind a lock, as the queue's is.
struct Work(Mutex<usize>);

impl Work {
    fn add(&self) {
        *self.0.lock() += 1;
    }

    fn take_all(&self) -> usize {
        std::mem::take(&mut self.0.lock())
    }
}

/// The shell's `get`, without its timers: takes `wanted` pieces of work.
fn take_and_sleep(gate: &Gate, work: &Work, bell: &loom::sync::Notify, wanted: usize) {
    let mut taken = 0;
    while taken < wanted {
        let _sleeping = gate.enter();
        taken += work.take_all();
        if taken == wanted {
            break;
        }
        bell.wait();
        gate.heard();
        taken += work.take_all();
    }
}

/// `adds` pieces of work, one after the other, for a worker that sleeps in between or does not.
fn a_worker_gets(adds: usize) {
    loom::model(move || {
        let gate = Arc::new(Gate::new());
        let work = Arc::new(Work(Mutex::new(0)));
        let bell = Arc::new(loom::sync::Notify::new());
        let sleeper = {
            let (gate, work, bell) = (Arc::clone(&gate), Arc::clone(&work), Arc::clone(&bell));
            thread::spawn(move || take_and_sleep(&gate, &work, &bell, adds))
        };
        for _ in 0..adds {
            work.add();
            if gate.opened(NOW) {
                bell.notify();
            }
        }
        // If the bell is missed it waits for ever, which loom reports.
        sleeper.join().unwrap();
    });
}

#[test]
fn a_sleeper_never_misses_the_bell() {
    a_worker_gets(1);
}

#[test]
fn a_worker_that_was_rung_for_sees_what_came_after() {
    a_worker_gets(2);
}

/// What the shell's sleepers and adders do about deadlines, with flags for the bells.
struct Clock {
    gate: Gate,
    seat: Seat,
    /// As in the queue: written under the timers' lock, read without.
    deadline: AtomicBool,
    /// Somebody who sleeps will be woken, and will sit down.
    bell: AtomicBool,
    /// Whoever sits, or sits down next, will look for the deadline again.
    alarm: AtomicBool,
}

impl Clock {
    fn new(deadline: bool) -> Arc<Self> {
        Arc::new(Self {
            gate: Gate::new(),
            seat: Seat::new(),
            deadline: AtomicBool::new(deadline),
            bell: AtomicBool::new(false),
            alarm: AtomicBool::new(false),
        })
    }

    /// Falls asleep for good: whether it watches the deadline there is.
    fn sleep(&self) -> bool {
        std::mem::forget(self.gate.enter());
        self.seat.take() && self.deadline.load(Ordering::Acquire)
    }

    fn get_up(&self, sleeping: Sleeping<'_>) {
        if self.seat.leave(&self.gate) && self.deadline.load(Ordering::Acquire) {
            self.bell.store(true, Ordering::Release);
        }
        drop(sleeping);
    }

    fn set_deadline(&self) {
        self.deadline.swap(true, Ordering::AcqRel);
        if self.seat.is_taken() {
            self.alarm.store(true, Ordering::Release);
        } else if self.gate.has_sleepers() {
            self.bell.store(true, Ordering::Release);
        }
    }

    /// When all is quiet: the deadline is looked at by a sleeper that watches, or one will be woken for it.
    fn is_watched(&self, by_sleeper: bool) -> bool {
        let alarmed = self.seat.is_taken() && self.alarm.load(Ordering::Acquire);
        by_sleeper || alarmed || self.bell.load(Ordering::Acquire)
    }
}

#[test]
fn a_deadline_is_watched_when_the_watcher_gets_up_and_another_falls_asleep() {
    loom::model(|| {
        let clock = Clock::new(true);
        let watcher = clock.gate.enter();
        assert!(clock.seat.take());
        let other = {
            let clock = Arc::clone(&clock);
            thread::spawn(move || clock.sleep())
        };
        clock.get_up(watcher);
        let watches = other.join().unwrap();
        assert!(clock.is_watched(watches));
    });
}

#[test]
fn a_deadline_is_watched_when_it_is_set_while_the_watcher_gets_up_and_another_falls_asleep() {
    loom::model(|| {
        let clock = Clock::new(false);
        let watcher = clock.gate.enter();
        assert!(clock.seat.take());
        let other = {
            let clock = Arc::clone(&clock);
            thread::spawn(move || clock.sleep())
        };
        let adder = {
            let clock = Arc::clone(&clock);
            thread::spawn(move || clock.set_deadline())
        };
        clock.get_up(watcher);
        let watches = other.join().unwrap();
        adder.join().unwrap();
        assert!(clock.is_watched(watches));
    });
}
