//! Models of the lock-free steps, checked in every interleaving by loom.
//!
//! ```text
//! RUSTFLAGS="--cfg loom" cargo test -p windlass-workqueue --release --lib
//! ```

use crate::core::{Config, Queue, Timestamp, Wake};
use crate::key_state::KeyState;
use crate::metrics::StripeIndex;
use crate::sleepers::{Sleepers, Sleeping, TimerWatch};
use crate::sync::{Arc, AtomicBool, Mutex, Ordering};
use crate::{AddOptions, LOW_PRIORITY};
use loom::thread;
use std::time::Duration;

const NOW: Timestamp = Timestamp::ZERO;
const NORMAL: AddOptions = AddOptions::new();
const LOW: AddOptions = AddOptions::new().priority(LOW_PRIORITY);
const DELAYED: AddOptions = AddOptions::new().after(Duration::from_nanos(1));

fn queue() -> Arc<Queue<u8>> {
    Arc::new(Queue::new(&Config::default()))
}

/// Adds a key whose state is known, without the lock of the hash table.
fn add(queue: &Queue<u8>, state: &Arc<KeyState<u8>>, options: AddOptions) -> Wake {
    queue.add_state(StripeIndex::default(), state, options, || NOW)
}

/// Takes and finishes all keys that are ready. Returns the number of keys.
fn work_off(queue: &Queue<u8>, now: Timestamp) -> usize {
    let mut worked = 0;
    while let Some(item) = queue.get(now) {
        let _ = queue.done(item, now);
        worked += 1;
    }
    worked
}

fn assert_empty(queue: &Queue<u8>) {
    assert!(queue.is_drained());
    assert_eq!(queue.len(), 0, "no stale entry is miscounted");
    assert_eq!(queue.delayed(), 0);
}

#[test]
fn two_adds_of_a_key_are_one_entry() {
    loom::model(|| {
        let queue = queue();
        let state = queue.state_of(1).unwrap();
        let other = {
            let (queue, state) = (Arc::clone(&queue), state.clone());
            thread::spawn(move || add(&queue, &state, NORMAL))
        };
        let _ = add(&queue, &state, NORMAL);
        let _ = other.join().unwrap();
        assert_eq!(work_off(&queue, NOW), 1);
        assert_empty(&queue);
    });
}

#[test]
fn an_add_while_the_work_ends_is_not_lost() {
    loom::model(|| {
        let queue = queue();
        let state = queue.state_of(1).unwrap();
        let _ = add(&queue, &state, NORMAL);
        let first = queue.get(NOW).unwrap();
        let adder = {
            let (queue, state) = (Arc::clone(&queue), state.clone());
            thread::spawn(move || add(&queue, &state, NORMAL))
        };
        let _ = queue.done(first, NOW);
        let _ = adder.join().unwrap();
        assert_eq!(work_off(&queue, NOW), 1);
        assert_empty(&queue);
    });
}

#[test]
fn a_key_is_handed_to_one_worker_at_a_time() {
    loom::model(|| {
        let queue = queue();
        let state = queue.state_of(1).unwrap();
        let busy = Arc::new(AtomicBool::new(false));
        let _ = add(&queue, &state, NORMAL);
        let work = |queue: &Queue<u8>, busy: &AtomicBool| {
            if let Some(item) = queue.get(NOW) {
                assert!(!busy.swap(true, Ordering::SeqCst));
                busy.store(false, Ordering::SeqCst);
                let _ = queue.done(item, NOW);
            }
        };
        let worker = {
            let (queue, busy) = (Arc::clone(&queue), Arc::clone(&busy));
            thread::spawn(move || work(&queue, &busy))
        };
        let _ = add(&queue, &state, NORMAL);
        work(&queue, &busy);
        worker.join().unwrap();
        work_off(&queue, NOW);
        assert_empty(&queue);
    });
}

#[test]
fn a_worker_sees_what_was_written_before_an_add_that_merged() {
    loom::model(|| {
        let queue = queue();
        let state = queue.state_of(1).unwrap();
        let _ = add(&queue, &state, NORMAL);
        let written = Arc::new(AtomicBool::new(false));
        let worker = {
            let (queue, written) = (Arc::clone(&queue), Arc::clone(&written));
            thread::spawn(move || {
                let item = queue.get(NOW).unwrap();
                let seen = written.load(Ordering::Relaxed);
                let _ = queue.done(item, NOW);
                seen
            })
        };
        written.store(true, Ordering::Relaxed);
        let _ = add(&queue, &state, NORMAL);
        let seen = worker.join().unwrap();
        assert!(seen || work_off(&queue, NOW) == 1, "the add merged, but the worker read the old value");
    });
}

#[test]
fn a_raise_and_a_claim_hand_the_key_out_once() {
    loom::model(|| {
        let queue = queue();
        let state = queue.state_of(1).unwrap();
        let _ = add(&queue, &state, LOW);
        let worker = {
            let queue = Arc::clone(&queue);
            thread::spawn(move || queue.get(NOW))
        };
        let _ = add(&queue, &state, NORMAL);
        let item = worker.join().unwrap();
        let rest = work_off(&queue, NOW);
        match item {
            // The raise came after the claim: the key is queued again when the first work is done.
            Some(item) if item.priority() == LOW_PRIORITY => {
                assert_eq!(rest, 0);
                let _ = queue.done(item, NOW);
                assert_eq!(work_off(&queue, NOW), 1);
            }
            Some(item) => {
                assert_eq!(rest, 0);
                let _ = queue.done(item, NOW);
            }
            // The worker found the stale entry before the new entry was pushed.
            None => assert_eq!(rest, 1),
        }
        assert_empty(&queue);
    });
}

#[test]
fn a_timer_that_fires_and_an_add_are_one_entry() {
    loom::model(|| {
        let queue = queue();
        let state = queue.state_of(1).unwrap();
        let _ = add(&queue, &state, DELAYED);
        let due = Timestamp::from_nanos(1);
        let worker = {
            let queue = Arc::clone(&queue);
            thread::spawn(move || queue.get(due))
        };
        let _ = add(&queue, &state, NORMAL);
        let mut worked = 0;
        if let Some(item) = worker.join().unwrap() {
            let _ = queue.done(item, due);
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
        let state = queue.state_of(1).unwrap();
        let _ = add(&queue, &state, NORMAL);
        let item = queue.get(NOW).unwrap();
        let adder = {
            let (queue, state) = (Arc::clone(&queue), state.clone());
            thread::spawn(move || add(&queue, &state, DELAYED))
        };
        let _ = queue.done(item, NOW);
        let _ = adder.join().unwrap();
        assert_eq!(queue.delayed(), 1);
        assert_eq!(work_off(&queue, Timestamp::from_nanos(1)), 1);
        assert_empty(&queue);
    });
}

#[test]
fn no_timer_outlives_a_shut_down() {
    loom::model(|| {
        let queue = queue();
        let state = queue.state_of(1).unwrap();
        let adder = {
            let (queue, state) = (Arc::clone(&queue), state.clone());
            thread::spawn(move || add(&queue, &state, DELAYED))
        };
        queue.shut_down();
        let _ = adder.join().unwrap();
        assert_eq!(queue.delayed(), 0);
        assert_eq!(queue.next_deadline(), None);
        assert_empty(&queue);
    });
}

#[test]
fn an_add_that_races_with_the_shut_down_is_handed_out_or_refused() {
    loom::model(|| {
        let queue = queue();
        let state = queue.state_of(1).unwrap();
        let adder = {
            let (queue, state) = (Arc::clone(&queue), state.clone());
            thread::spawn(move || add(&queue, &state, NORMAL))
        };
        queue.shut_down();
        // A worker that has seen the shut-down looks once more, and leaves.
        work_off(&queue, NOW);
        let _ = adder.join().unwrap();
        assert_empty(&queue);
    });
}

/// Work behind a lock, as in the queue.
struct Work(Mutex<usize>);

impl Work {
    fn add(&self) {
        *self.0.lock() += 1;
    }

    fn take_all(&self) -> usize {
        std::mem::take(&mut self.0.lock())
    }
}

/// Takes `wanted` pieces of work as `WorkQueue::get` does, without timers.
fn take_or_sleep(sleepers: &Sleepers, work: &Work, wake: &loom::sync::Notify, wanted: usize) {
    let mut taken = 0;
    while taken < wanted {
        let _sleeping = sleepers.sleep();
        taken += work.take_all();
        if taken == wanted {
            break;
        }
        wake.wait();
        sleepers.awake();
        taken += work.take_all();
    }
}

/// Adds `adds` pieces of work in sequence, for a worker that may sleep in between.
fn a_worker_gets(adds: usize) {
    loom::model(move || {
        let sleepers = Arc::new(Sleepers::new());
        let work = Arc::new(Work(Mutex::new(0)));
        let wake = Arc::new(loom::sync::Notify::new());
        let worker = {
            let (sleepers, work, wake) = (Arc::clone(&sleepers), Arc::clone(&work), Arc::clone(&wake));
            thread::spawn(move || take_or_sleep(&sleepers, &work, &wake, adds))
        };
        for _ in 0..adds {
            work.add();
            if sleepers.must_wake(NOW) {
                wake.notify();
            }
        }
        // loom reports a missed wake-up: the worker would wait for ever.
        worker.join().unwrap();
    });
}

#[test]
fn a_sleeping_worker_never_misses_its_wake_up() {
    a_worker_gets(1);
}

#[test]
fn a_woken_worker_sees_work_that_was_added_after_the_wake_up() {
    a_worker_gets(2);
}

/// The steps of `WorkQueue` that watch deadlines, with flags instead of notifications.
struct Deadlines {
    sleepers: Sleepers,
    timer: TimerWatch,
    /// True if there is a deadline. The queue writes the deadline under the timers' lock and reads the
    /// deadline without a lock.
    deadline: AtomicBool,
    /// A sleeping worker will be woken, and will take the timer.
    wake: AtomicBool,
    /// The worker that holds the timer, or takes it next, will read the deadline again.
    deadline_moved: AtomicBool,
}

impl Deadlines {
    fn new(deadline: bool) -> Arc<Self> {
        Arc::new(Self {
            sleepers: Sleepers::new(),
            timer: TimerWatch::new(),
            deadline: AtomicBool::new(deadline),
            wake: AtomicBool::new(false),
            deadline_moved: AtomicBool::new(false),
        })
    }

    /// Puts a worker to sleep for good. Returns whether the worker watches the deadline.
    fn sleep(&self) -> bool {
        std::mem::forget(self.sleepers.sleep());
        self.timer.take() && self.deadline.load(Ordering::Acquire)
    }

    fn give_up_timer(&self, sleeping: Sleeping<'_>) {
        if self.timer.give_up(&self.sleepers) && self.deadline.load(Ordering::Acquire) {
            self.wake.store(true, Ordering::Release);
        }
        drop(sleeping);
    }

    fn set_deadline(&self) {
        self.deadline.swap(true, Ordering::AcqRel);
        if self.timer.is_taken() {
            self.deadline_moved.store(true, Ordering::Release);
        } else if self.sleepers.any() {
            self.wake.store(true, Ordering::Release);
        }
    }

    /// Returns whether, after all threads are done, the deadline is watched, or a worker will be woken for
    /// the deadline.
    fn is_watched(&self, by_sleeper: bool) -> bool {
        let moved = self.timer.is_taken() && self.deadline_moved.load(Ordering::Acquire);
        by_sleeper || moved || self.wake.load(Ordering::Acquire)
    }
}

#[test]
fn a_deadline_is_watched_when_the_timer_is_given_up_while_a_worker_falls_asleep() {
    loom::model(|| {
        let deadlines = Deadlines::new(true);
        let holder = deadlines.sleepers.sleep();
        assert!(deadlines.timer.take());
        let other = {
            let deadlines = Arc::clone(&deadlines);
            thread::spawn(move || deadlines.sleep())
        };
        deadlines.give_up_timer(holder);
        let watches = other.join().unwrap();
        assert!(deadlines.is_watched(watches));
    });
}

#[test]
fn a_deadline_that_is_set_while_the_timer_changes_hands_is_watched() {
    loom::model(|| {
        let deadlines = Deadlines::new(false);
        let holder = deadlines.sleepers.sleep();
        assert!(deadlines.timer.take());
        let other = {
            let deadlines = Arc::clone(&deadlines);
            thread::spawn(move || deadlines.sleep())
        };
        let adder = {
            let deadlines = Arc::clone(&deadlines);
            thread::spawn(move || deadlines.set_deadline())
        };
        deadlines.give_up_timer(holder);
        let watches = other.join().unwrap();
        adder.join().unwrap();
        assert!(deadlines.is_watched(watches));
    });
}
