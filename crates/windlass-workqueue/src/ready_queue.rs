//! The ready keys, in an inbox for adders and an outbox for workers.

use crate::key_state::{AddEffect, KeyState, Version};
use crate::lanes::{Ageing, LaneSet, Lanes};
use crate::sync::{Arc, AtomicBool, Mutex, Ordering, Padded, PlainU8};

/// The ready keys in two halves with a lock each. Adders push to the inbox, workers pop from the outbox, and
/// a worker that finds the outbox empty moves the whole inbox there. Adders and workers therefore do not
/// contend for the same cache lines with every key, which would be the largest cost.
///
/// The order is strict: the keys of a priority are handed out in the order in which they became ready, and a
/// higher priority is noticed at once. Code that takes both locks takes the outbox's lock first.
///
/// Every add that changes a key is decided under the inbox's lock. The shut-down happens under the same lock:
/// a worker that has seen the shut-down sees every earlier add, and later adds have no effect.
pub(crate) struct ReadyQueue<K> {
    inbox: Padded<Mutex<Inbox<K>>>,
    /// The lanes in which the inbox has entries, as the bits of a [`LaneSet`]. Written under the inbox's
    /// lock, and only if the set changes, because most entries do not change the set.
    inbox_lanes: Padded<PlainU8>,
    /// The queue is shut down. Written under the inbox's lock.
    closed: AtomicBool,
    outbox: Padded<Mutex<Outbox<K>>>,
}

struct Inbox<K> {
    lanes: Lanes<K>,
    /// Adds that queued an idle key.
    queued: u64,
    /// Adds that made a key in flight dirty.
    queued_after_done: u64,
    /// Dirty keys that were queued again when the worker was done.
    requeued: u64,
}

struct Outbox<K> {
    lanes: Lanes<K>,
    ageing: Ageing,
}

/// A key that was taken from the ready queue.
pub(crate) struct Claimed<K> {
    pub(crate) state: Arc<KeyState<K>>,
    pub(crate) priority: i32,
    /// There is at least one more entry. The entry may be stale.
    pub(crate) more: bool,
}

impl<K> ReadyQueue<K> {
    pub(crate) fn new(ageing: u32) -> Self {
        let inbox = Inbox { lanes: Lanes::new(), queued: 0, queued_after_done: 0, requeued: 0 };
        Self {
            inbox: Padded(Mutex::new(inbox)),
            inbox_lanes: Padded(PlainU8::new(0)),
            closed: AtomicBool::new(false),
            outbox: Padded(Mutex::new(Outbox { lanes: Lanes::new(), ageing: Ageing::new(ageing) })),
        }
    }

    /// Changes the state of a key with `add` and pushes the key if the key becomes ready. Returns the result
    /// of `add`. After the shut-down, returns [`AddEffect::Merged`] without a call of `add`.
    #[inline]
    pub(crate) fn add(
        &self,
        state: &Arc<KeyState<K>>,
        add: impl FnOnce(&KeyState<K>) -> Option<AddEffect>,
    ) -> Option<AddEffect> {
        let mut inbox = self.inbox.lock();
        if self.is_closed() {
            return Some(AddEffect::Merged);
        }
        let effect = add(state)?;
        match effect {
            AddEffect::Queued { priority, version } => {
                inbox.queued += 1;
                self.push(&mut inbox.lanes, priority, Arc::clone(state), version);
            }
            AddEffect::Raised { from, priority, version } => {
                inbox.lanes.count_stale(from);
                self.announce(from);
                self.push(&mut inbox.lanes, priority, Arc::clone(state), version);
            }
            AddEffect::QueuedAfterDone => inbox.queued_after_done += 1,
            AddEffect::Merged => {}
        }
        Some(effect)
    }

    /// Pushes a dirty key after the worker is done, also after the shut-down.
    pub(crate) fn requeue(&self, priority: i32, state: Arc<KeyState<K>>, version: Version) {
        let mut inbox = self.inbox.lock();
        inbox.requeued += 1;
        self.push(&mut inbox.lanes, priority, state, version);
    }

    #[inline]
    fn push(&self, lanes: &mut Lanes<K>, priority: i32, state: Arc<KeyState<K>>, version: Version) {
        lanes.push(priority, state, version);
        self.announce(priority);
    }

    /// Records that the inbox has an entry in the lane of `priority`. The caller holds the inbox's lock.
    #[inline]
    fn announce(&self, priority: i32) {
        let before = LaneSet::from_bits(self.inbox_lanes.load(Ordering::Relaxed));
        let after = before.union(LaneSet::of(priority));
        if after != before {
            self.inbox_lanes.store(after.bits(), Ordering::Relaxed);
        }
    }

    /// Shuts the queue down: ends all adds. A worker that sees this, and then finds no key, has not missed any.
    pub(crate) fn close(&self) {
        let _inbox = self.inbox.lock();
        self.closed.store(true, Ordering::SeqCst);
    }

    /// Returns whether [`close`](Self::close) has been called.
    #[inline]
    pub(crate) fn is_closed(&self) -> bool {
        self.closed.load(Ordering::SeqCst)
    }

    /// Claims the next key. Looks under both locks before returning `None`, or a key without `more`: an adder
    /// that pushes afterwards sees every earlier write of the caller.
    #[inline]
    pub(crate) fn pop(&self) -> Option<Claimed<K>> {
        let mut outbox = self.outbox.lock();
        let outbox = &mut *outbox;
        outbox.ageing.start_turn();
        let mut fetched = false;
        let (state, priority) = loop {
            if self.must_fetch(&outbox.lanes) {
                self.fetch(&mut outbox.lanes);
                fetched = true;
            }
            if let Some(popped) = outbox.lanes.pop(&mut outbox.ageing) {
                break popped;
            }
            if fetched && outbox.lanes.is_empty() {
                return None;
            }
        };
        if outbox.lanes.is_empty() && !fetched {
            self.fetch(&mut outbox.lanes);
        }
        Some(Claimed { state, priority, more: !outbox.lanes.is_empty() })
    }

    #[inline]
    fn must_fetch(&self, lanes: &Lanes<K>) -> bool {
        lanes.is_empty() || lanes.depend_on(LaneSet::from_bits(self.inbox_lanes.load(Ordering::Relaxed)))
    }

    /// Moves the inbox to `outbox`.
    #[inline]
    fn fetch(&self, outbox: &mut Lanes<K>) {
        let mut inbox = self.inbox.lock();
        // The set is written only under the lock, and is therefore exact under the lock.
        let lanes = LaneSet::from_bits(self.inbox_lanes.load(Ordering::Relaxed));
        if lanes != LaneSet::default() {
            outbox.append(&mut inbox.lanes, lanes);
            self.inbox_lanes.store(0, Ordering::Relaxed);
        }
    }

    /// Returns how often a key has become ready.
    pub(crate) fn total_ready(&self) -> u64 {
        let inbox = self.inbox.lock();
        inbox.queued + inbox.requeued
    }

    /// Returns the number of adds that made a key ready, at once or when the worker was done.
    pub(crate) fn total_adds(&self) -> u64 {
        let inbox = self.inbox.lock();
        inbox.queued + inbox.queued_after_done
    }

    /// Returns the number of ready keys.
    pub(crate) fn len(&self) -> usize {
        let outbox = self.outbox.lock();
        let depth = outbox.lanes.depth() + self.inbox.lock().lanes.depth();
        usize::try_from(depth).unwrap_or(0)
    }

    /// Returns the number of ready keys by priority, in descending order of priority. Priorities without a ready key are
    /// left out, except 0.
    pub(crate) fn depths(&self) -> Vec<(i32, usize)> {
        let mut outbox = self.outbox.lock();
        self.fetch(&mut outbox.lanes);
        let depths =
            outbox.lanes.depths().map(|(priority, depth)| (priority, usize::try_from(depth).unwrap_or(0)));
        depths.filter(|&(priority, depth)| depth > 0 || priority == 0).collect()
    }
}
