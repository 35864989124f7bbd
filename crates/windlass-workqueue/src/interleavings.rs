//! Every interleaving that loom finds of the steps that take no lock.
//!
//! ```text
//! RUSTFLAGS="--cfg loom" cargo test -p windlass-workqueue --release --lib
//! ```

use crate::gate::Gate;
use crate::sync::{Arc, AtomicBool, Ordering};
use crate::{AddOptions, Config, LOW_PRIORITY, Queue, Tick};
use loom::thread;
use std::time::Duration;

const NOW: Tick = Tick::ZERO;
const USUAL: AddOptions = AddOptions { priority: 0, after: None, rate_limited: false };
const LOW: AddOptions = AddOptions { priority: LOW_PRIORITY, after: None, rate_limited: false };
const LATER: AddOptions =
    AddOptions { priority: 0, after: Some(Duration::from_nanos(1)), rate_limited: false };

fn queue() -> Arc<Queue<u8>> {
    Arc::new(Queue::new(&Config::default()))
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
        let slot = queue.intern(1);
        let other = {
            let (queue, slot) = (Arc::clone(&queue), slot.clone());
            thread::spawn(move || queue.add_slot(&slot, USUAL, NOW))
        };
        let _ = queue.add_slot(&slot, USUAL, NOW);
        let _ = other.join().unwrap();
        assert_eq!(work_off(&queue, NOW), 1);
        assert_empty(&queue);
    });
}

#[test]
fn an_add_during_the_work_is_never_lost() {
    loom::model(|| {
        let queue = queue();
        let slot = queue.intern(1);
        let _ = queue.add_slot(&slot, USUAL, NOW);
        let first = queue.get(NOW).unwrap();
        let adder = {
            let (queue, slot) = (Arc::clone(&queue), slot.clone());
            thread::spawn(move || queue.add_slot(&slot, USUAL, NOW))
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
        let slot = queue.intern(1);
        let busy = Arc::new(AtomicBool::new(false));
        let _ = queue.add_slot(&slot, USUAL, NOW);
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
        let _ = queue.add_slot(&slot, USUAL, NOW);
        work(&queue, &busy);
        worker.join().unwrap();
        work_off(&queue, NOW);
        assert_empty(&queue);
    });
}

#[test]
fn a_raise_and_a_claim_hand_the_key_out_once() {
    loom::model(|| {
        let queue = queue();
        let slot = queue.intern(1);
        let _ = queue.add_slot(&slot, LOW, NOW);
        let worker = {
            let queue = Arc::clone(&queue);
            thread::spawn(move || queue.get(NOW))
        };
        let _ = queue.add_slot(&slot, USUAL, NOW);
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
        let slot = queue.intern(1);
        let _ = queue.add_slot(&slot, LATER, NOW);
        let due = Tick::from_nanos(1);
        let worker = {
            let queue = Arc::clone(&queue);
            thread::spawn(move || queue.get(due))
        };
        let _ = queue.add_slot(&slot, USUAL, NOW);
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
        let slot = queue.intern(1);
        let _ = queue.add_slot(&slot, USUAL, NOW);
        let lease = queue.get(NOW).unwrap();
        let adder = {
            let (queue, slot) = (Arc::clone(&queue), slot.clone());
            thread::spawn(move || queue.add_slot(&slot, LATER, NOW))
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
        let slot = queue.intern(1);
        let adder = {
            let (queue, slot) = (Arc::clone(&queue), slot.clone());
            thread::spawn(move || queue.add_slot(&slot, LATER, NOW))
        };
        queue.shut_down();
        let _ = adder.join().unwrap();
        assert_eq!(queue.waiting(), 0);
        assert_eq!(queue.next_deadline(), None);
        assert_empty(&queue);
    });
}

#[test]
fn a_sleeper_never_misses_the_bell() {
    loom::model(|| {
        let gate = Arc::new(Gate::new());
        let work = Arc::new(AtomicBool::new(false));
        let bell = Arc::new(loom::sync::Notify::new());
        let sleeper = {
            let (gate, work, bell) = (Arc::clone(&gate), Arc::clone(&work), Arc::clone(&bell));
            thread::spawn(move || {
                // The shell's `get`, without its timers.
                while !work.load(Ordering::Relaxed) {
                    let sleeping = gate.enter();
                    if work.load(Ordering::Relaxed) {
                        break;
                    }
                    bell.wait();
                    gate.heard();
                    drop(sleeping);
                }
            })
        };
        work.store(true, Ordering::Relaxed);
        if gate.opened() {
            bell.notify();
        }
        sleeper.join().unwrap();
    });
}

#[test]
fn a_worker_that_was_rung_for_sees_what_came_after() {
    loom::model(|| {
        let gate = Arc::new(Gate::new());
        let work = Arc::new(loom::sync::atomic::AtomicUsize::new(0));
        let bell = Arc::new(loom::sync::Notify::new());
        let sleeper = {
            let (gate, work, bell) = (Arc::clone(&gate), Arc::clone(&work), Arc::clone(&bell));
            thread::spawn(move || {
                while work.load(Ordering::Relaxed) < 2 {
                    let _sleeping = gate.enter();
                    if work.load(Ordering::Relaxed) == 2 {
                        break;
                    }
                    bell.wait();
                    gate.heard();
                }
            })
        };
        for _ in 0..2 {
            work.fetch_add(1, Ordering::Relaxed);
            if gate.opened() {
                bell.notify();
            }
        }
        sleeper.join().unwrap();
    });
}
