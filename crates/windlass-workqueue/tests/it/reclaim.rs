//! Slots come back.

use windlass_workqueue::{AddOptions, Config, KeyRef, Queue, Tick};

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
fn failures_and_held_slots_are_remembered() {
    let queue = Queue::new(&Config::default());
    let held = queue.intern(u64::MAX);
    let limited = AddOptions::new().rate_limited();
    let _ = queue.add(u64::MAX - 1, limited, Tick::ZERO);
    let later = queue.next_deadline().unwrap();
    let failed = queue.get(later).unwrap();
    let _ = queue.done(failed, later);
    for key in 0..20_000 {
        let _ = queue.add(key, AddOptions::new(), later);
        work_off(&queue);
    }
    assert_eq!(queue.num_requeues(&(u64::MAX - 1)), 1);
    let _ = queue.add_slot(&held, AddOptions::new(), later);
    let _ = queue.add(u64::MAX, AddOptions::new(), later);
    assert_eq!(queue.len(), 1, "by slot and by key is the same entry");
}

/// Two parts of a key, in places of their own.
struct Parts<'a>(&'a str, &'a str, &'a std::cell::Cell<usize>);

impl std::hash::Hash for Parts<'_> {
    fn hash<H: std::hash::Hasher>(&self, state: &mut H) {
        (self.0, self.1).hash(state);
    }
}

impl KeyRef<(String, String)> for Parts<'_> {
    fn is(&self, key: &(String, String)) -> bool {
        (self.0, self.1) == (key.0.as_str(), key.1.as_str())
    }

    fn to_key(&self) -> (String, String) {
        self.2.set(self.2.get() + 1);
        (self.0.to_owned(), self.1.to_owned())
    }
}

#[test]
fn a_key_that_is_known_is_not_made_again() {
    let queue = Queue::new(&Config::default());
    let made = std::cell::Cell::new(0);
    let _ = queue.add(("default".to_owned(), "a".to_owned()), AddOptions::new(), Tick::ZERO);
    let _ = queue.add_slot(&queue.intern_ref(&Parts("default", "a", &made)), AddOptions::new(), Tick::ZERO);
    assert_eq!((queue.len(), made.get()), (1, 0), "it is the same key");
    let _ = queue.add_slot(&queue.intern_ref(&Parts("default", "b", &made)), AddOptions::new(), Tick::ZERO);
    assert_eq!((queue.len(), made.get()), (2, 1));
}
