//! From an event handler to the queue.

use std::{collections::HashSet, hash::Hash};

use windlass_workqueue::{AddOptions, Equivalent, WorkQueue};

use super::QueueKey;
use crate::read_your_writes::{KeyJournal, Transition};

/// The number of keys above which a lookup in a set is cheaper than a comparison with each key.
const FEW: usize = 8;

/// Queues the keys of an event: each key once, in the order of the calls.
pub struct Enqueuer<'q, Q: QueueKey> {
    queue: &'q WorkQueue<Q>,
    options: AddOptions,
    /// The writes of the keys, and the change of the event.
    own: Option<(&'q KeyJournal<Q>, Transition)>,
    priority: i32,
    /// The first key. Most events have a single key, which needs no allocation.
    first: Option<Q>,
    /// The keys after the first, as long as there are at most [`FEW`] keys in all.
    few: Vec<Q>,
    /// All keys, if there are more.
    many: HashSet<Q>,
}

impl<'q, Q: QueueKey> Enqueuer<'q, Q> {
    pub(crate) fn new(queue: &'q WorkQueue<Q>, priority: i32) -> Self {
        let options = AddOptions::new().priority(priority);
        Self { queue, options, own: None, priority, first: None, few: Vec::new(), many: HashSet::new() }
    }

    /// Leaves out the keys whose last reconcile made the change of the event.
    pub(crate) fn without_own(mut self, own: &'q KeyJournal<Q>, change: Transition) -> Self {
        self.own = Some((own, change));
        self
    }

    /// Queues `key`, unless `key` has been added before.
    pub fn add(&mut self, key: Q) {
        if self.is_new(&key) {
            self.remember(key.clone());
            if self.own.as_ref().is_none_or(|(own, change)| own.admits(&key, change, self.priority)) {
                self.queue.add_with(key, self.options);
            }
        }
    }

    /// Queues the key that `key` equals, unless the key has been added before. The key is made only if the queue does not
    /// have the key.
    pub(crate) fn add_ref<R>(&mut self, key: &R)
    where
        R: Hash + Equivalent<Q>,
        Q: for<'r> From<&'r R>,
    {
        if !self.many.is_empty() || self.own.is_some() {
            self.add(Q::from(key));
        } else if !self.first_few().any(|added| key.equivalent(added)) {
            let key = self.queue.add_ref(key, self.options);
            self.remember(key);
        }
    }

    fn is_new(&self, key: &Q) -> bool {
        if self.many.is_empty() {
            return !self.first_few().any(|added| added == key);
        }
        !self.many.contains(key)
    }

    fn remember(&mut self, key: Q) {
        if !self.many.is_empty() {
            self.many.insert(key);
        } else if self.first.is_none() {
            self.first = Some(key);
        } else {
            self.few.push(key);
            if self.few.len() == FEW {
                self.many.extend(self.first.take().into_iter().chain(self.few.drain(..)));
            }
        }
    }

    fn first_few(&self) -> impl Iterator<Item = &Q> {
        self.first.iter().chain(&self.few)
    }
}

impl<Q: QueueKey> std::fmt::Debug for Enqueuer<'_, Q> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let added = self.first_few().chain(&self.many);
        f.debug_set().entries(added.map(ToString::to_string)).finish()
    }
}

#[cfg(test)]
mod tests {
    use windlass_cache::ObjectKey;

    use super::*;
    use crate::namespaced_name::NamespacedName;

    /// Takes all ready keys, in order, and finishes the keys.
    fn work_off<Q: QueueKey>(queue: &WorkQueue<Q>) -> Vec<Q> {
        std::iter::from_fn(|| queue.try_get().map(|item| item.key().clone())).collect()
    }

    #[test]
    fn each_key_is_queued_once_and_in_order_however_many_there_are() {
        for count in [0, 1, 2, 7, 8, 9, 10, 1000] {
            let queue = WorkQueue::new("test");
            let mut keys = Enqueuer::new(&queue, 0);
            let mut queued = Vec::new();
            // 611 has no divisor in common with any count: every number, in no order.
            let numbers: Vec<u32> = (0..count).map(|n| n * 611 % count).collect();
            for (nth, &number) in numbers.iter().enumerate() {
                keys.add(number);
                // Also when a worker has already taken and finished the key.
                if nth % 3 == 0 {
                    queued.extend(work_off(&queue));
                }
                keys.add(number);
                keys.add(numbers[nth / 2]);
            }
            numbers.iter().for_each(|&number| keys.add(number));
            queued.extend(work_off(&queue));
            assert_eq!(queued, numbers, "{count} keys");
        }
    }

    #[test]
    fn a_key_and_its_parts_are_one_key() {
        for count in [1, 7, 8, 9, 20] {
            let queue: WorkQueue<ObjectKey> = WorkQueue::new("test");
            let mut keys = Enqueuer::new(&queue, 0);
            let names: Vec<String> = (0..count).map(|n| format!("web-{n}")).collect();
            let mut queued = Vec::new();
            for (nth, name) in names.iter().enumerate() {
                let parts = NamespacedName::new(Some("default"), name);
                let key = ObjectKey::namespaced("default", name);
                if nth % 2 == 0 {
                    keys.add_ref(&parts);
                    queued.extend(work_off(&queue));
                    keys.add(key);
                } else {
                    keys.add(key);
                    queued.extend(work_off(&queue));
                    keys.add_ref(&parts);
                }
            }
            queued.extend(work_off(&queue));
            let names: Vec<ObjectKey> =
                names.iter().map(|name| ObjectKey::namespaced("default", name)).collect();
            assert_eq!(queued, names, "{count} keys");
        }
    }

    #[test]
    fn keys_are_queued_with_the_options_of_the_event() {
        let queue = WorkQueue::new("test");
        let mut keys = Enqueuer::new(&queue, -100);
        keys.add(1);
        assert_eq!(queue.try_get().map(|item| item.priority()), Some(-100));
    }
}
