//! The memory of idle keys is reclaimed.

use std::time::Duration;
use windlass_workqueue::core::{Config, Queue, Timestamp};
use windlass_workqueue::{AddOptions, RateLimiter};

const KEYS: u64 = if cfg!(miri) { 20_000 } else { 200_000 };

fn work_off(queue: &Queue<u64>) {
    while let Some(item) = queue.get(Timestamp::ZERO) {
        let _ = queue.done(item, Timestamp::ZERO);
    }
}

#[test]
fn keys_that_come_once_leave_nothing_behind() {
    let queue = Queue::new(&Config::default());
    for key in 0..KEYS {
        let _ = queue.add(key, AddOptions::new(), Timestamp::ZERO);
        work_off(&queue);
    }
    assert!(queue.known_keys() < 10_000, "{} keys", queue.known_keys());
}

#[test]
fn a_burst_leaves_nothing_behind() {
    let queue = Queue::new(&Config::default());
    for key in 0..KEYS {
        let _ = queue.add(key, AddOptions::new(), Timestamp::ZERO);
    }
    work_off(&queue);
    assert!(queue.known_keys() < 10_000, "{} keys", queue.known_keys());
}

#[test]
fn failures_are_remembered() {
    let queue = Queue::new(&Config::default());
    let _ = queue.add(u64::MAX, AddOptions::new().rate_limited(), Timestamp::ZERO);
    let later = queue.next_deadline().unwrap();
    let failed = queue.get(later).unwrap();
    let _ = queue.done(failed, later);
    for key in 0..20_000 {
        let _ = queue.add(key, AddOptions::new(), later);
        work_off(&queue);
    }
    assert_eq!(queue.num_requeues(&u64::MAX, later), 1);
}

#[test]
fn keys_whose_failures_are_never_forgotten_leave_nothing_behind() {
    // Failures expire after a minute, and 6000 keys come and go in a minute.
    let rate_limiter = RateLimiter::exponential(Duration::from_millis(1), Duration::from_secs(1));
    let queue = Queue::new(&Config { rate_limiter, ..Config::default() });
    for key in 0..KEYS / 2 {
        let now = Timestamp::from(Duration::from_millis(10 * key));
        let _ = queue.add(key, AddOptions::new().rate_limited(), now);
        while let Some(item) = queue.get(now) {
            let _ = queue.done(item, now);
        }
    }
    // The seed of the hashes decides the order in which the sweep meets keys.
    assert!(queue.known_keys() < 30_000, "{} keys", queue.known_keys());
}
