//! Slots come back.

use windlass_workqueue::AddOptions;
use windlass_workqueue::core::{Config, Queue, Tick};

const KEYS: u64 = if cfg!(miri) { 20_000 } else { 1_000_000 };

fn work_off(queue: &Queue<u64>) {
    while let Some(lease) = queue.get(Tick::ZERO) {
        let _ = queue.done(lease, Tick::ZERO);
    }
}

#[test]
fn ever_new_keys_leave_nothing_behind() {
    let queue = Queue::new(&Config::default());
    for key in 0..KEYS {
        let _ = queue.add(key, AddOptions::new(), Tick::ZERO);
        work_off(&queue);
    }
    assert!(queue.slots() < 10_000, "{} slots", queue.slots());
}

#[test]
fn a_burst_leaves_nothing_behind() {
    let queue = Queue::new(&Config::default());
    for key in 0..KEYS {
        let _ = queue.add(key, AddOptions::new(), Tick::ZERO);
    }
    work_off(&queue);
    assert!(queue.slots() < 10_000, "{} slots", queue.slots());
}

#[test]
fn failures_are_remembered() {
    let queue = Queue::new(&Config::default());
    let _ = queue.add(u64::MAX, AddOptions::new().rate_limited(), Tick::ZERO);
    let later = queue.next_deadline().unwrap();
    let failed = queue.get(later).unwrap();
    let _ = queue.done(failed, later);
    for key in 0..20_000 {
        let _ = queue.add(key, AddOptions::new(), later);
        work_off(&queue);
    }
    assert_eq!(queue.num_requeues(&u64::MAX), 1);
}
