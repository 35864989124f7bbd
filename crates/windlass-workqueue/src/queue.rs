//! The queue as a state machine: the caller supplies the time and wakes whom a call names.

use crate::key_state::{AddEffect, DoneEffect, KeyState};
use crate::key_table::KeyTable;
use crate::metrics::{Counters, Snapshot, StripeIndex};
use crate::rate_limiter::Limiter;
use crate::ready_queue::{Claimed, ReadyQueue};
use crate::sync::{Arc, AtomicU64, Mutex, Ordering};
use crate::timers::Timers;
use crate::timestamp::Timestamp;
use crate::{AddOptions, RateLimiter};
#[cfg(not(loom))]
use equivalent::Equivalent;
use std::hash::Hash;
use std::time::Duration;

const NO_DEADLINE: u64 = u64::MAX;

/// The least time between two sweeps for expired failures.
const MIN_SWEEP_INTERVAL: Duration = Duration::from_secs(1);

/// The settings of a queue; [`Builder`](crate::WorkQueue::builder) explains each setting.
#[derive(Clone, Debug)]
pub struct Config {
    /// The delays of rate-limited adds.
    pub rate_limiter: RateLimiter,
    /// The seed of the jitter.
    pub seed: u64,
    /// One key in this many is of a lower priority while a higher priority has keys. Clamped to 2..=1024.
    pub ageing: u32,
}

impl Default for Config {
    fn default() -> Self {
        Self { rate_limiter: RateLimiter::default(), seed: 0, ageing: 16 }
    }
}

/// Whom the caller must wake after a call.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[must_use = "a waiting worker may have to be woken"]
pub enum Wake {
    /// No worker.
    None,
    /// A worker: a key has become ready.
    Worker,
    /// The worker that waits for [`Queue::next_deadline`]. The deadline is now earlier.
    TimerWatcher,
}

/// A key that was handed out. The key is not handed out again before [`Queue::done`].
#[must_use = "a key that is never done is never handed out again"]
pub struct InFlight<K> {
    state: Arc<KeyState<K>>,
    priority: i32,
    stripe: StripeIndex,
}

impl<K> InFlight<K> {
    /// Returns the key.
    pub fn key(&self) -> &K {
        &self.state.key
    }

    /// Returns the priority with which the key was queued.
    pub fn priority(&self) -> i32 {
        self.priority
    }

    #[cfg(not(loom))]
    pub(crate) fn state(&self) -> &Arc<KeyState<K>> {
        &self.state
    }

    /// Resets the failures of the key.
    pub fn forget(&self) {
        self.state.forget();
    }

    /// Returns the failures of the key: rate-limited adds since the last [`forget`](Self::forget).
    pub fn num_requeues(&self) -> u32 {
        self.state.failures()
    }
}

impl<K: std::fmt::Debug> std::fmt::Debug for InFlight<K> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("InFlight")
            .field("key", self.key())
            .field("priority", &self.priority())
            .finish_non_exhaustive()
    }
}

/// The work queue as a state machine: it reads no clock, starts no task, and holds its locks only briefly.
///
/// All methods may be called from any thread. `now` should not go backwards between calls; otherwise delays
/// are wrong by the difference.
pub struct Queue<K> {
    keys: KeyTable<K>,
    ready: ReadyQueue<K>,
    timers: Mutex<Timers<K>>,
    /// The earliest deadline in `timers`, readable without the lock.
    next_deadline: AtomicU64,
    limiter: Limiter,
    counters: Counters,
}

impl<K> Queue<K> {
    /// Creates an empty queue.
    pub fn new(config: &Config) -> Self {
        let limiter = Limiter::new(&config.rate_limiter, config.seed);
        Self {
            keys: KeyTable::new(limiter.forget_after().max(MIN_SWEEP_INTERVAL)),
            ready: ReadyQueue::new(config.ageing.clamp(2, 1024)),
            timers: Mutex::new(Timers::new()),
            next_deadline: AtomicU64::new(NO_DEADLINE),
            limiter,
            counters: Counters::new(),
        }
    }

    /// Adds `key`.
    pub fn add(&self, key: K, options: AddOptions, now: Timestamp) -> Wake
    where
        K: Eq + Hash,
    {
        self.state_of(key)
            .map_or(Wake::None, |state| self.add_state(StripeIndex::default(), &state, options, || now))
    }

    /// Returns the state of `key` for [`add_state`](Self::add_state), or `None` after the shut-down.
    pub(crate) fn state_of(&self, key: K) -> Option<Arc<KeyState<K>>>
    where
        K: Eq + Hash,
    {
        (!self.is_shut_down()).then(|| self.keys.get_or_insert(key))
    }

    /// Returns the state of the key that `key` equals, or `None` after the shut-down.
    #[cfg(not(loom))]
    pub(crate) fn state_of_ref<Q>(&self, key: &Q) -> Option<Arc<KeyState<K>>>
    where
        Q: Hash + Equivalent<K> + ?Sized,
        K: for<'q> From<&'q Q>,
    {
        (!self.is_shut_down()).then(|| self.keys.get_or_insert_ref(key))
    }

    /// Adds the key of `state`. Calls `clock` only if the add may change something.
    #[inline]
    pub(crate) fn add_state(
        &self,
        stripe: StripeIndex,
        state: &Arc<KeyState<K>>,
        options: AddOptions,
        clock: impl FnOnce() -> Timestamp,
    ) -> Wake
    where
        K: Hash,
    {
        // The most frequent add has no effect, and needs neither a lock nor the time.
        let merges = !options.rate_limited && state.covers(options.priority);
        if merges || self.is_shut_down() {
            return Wake::None;
        }
        let now = clock();
        // Keys that were due before this add are ready earlier.
        let fired = self.fire_due_timers(now);
        let wake = self.add_now(stripe, state, options, now);
        if fired { Wake::Worker } else { wake }
    }

    #[inline]
    fn add_now(
        &self,
        stripe: StripeIndex,
        state: &Arc<KeyState<K>>,
        options: AddOptions,
        now: Timestamp,
    ) -> Wake
    where
        K: Hash,
    {
        if state.failures() > 0 && state.failures_at(now) == 0 {
            state.forget();
        }
        let delay = if options.rate_limited {
            Some(self.count_failure(stripe, state, options, now))
        } else {
            options.after
        };
        match delay {
            Some(delay) if delay > Duration::ZERO => self.add_delayed(state, options.priority, now + delay),
            _ => match self.ready.add(state, |state| state.add(options.priority, now)) {
                Some(effect) => effect.wake(),
                None => self.add_and_remove_timer(state, options.priority, now),
            },
        }
    }

    /// Counts a failure and returns the resulting delay, or the delay of the options if that delay is shorter.
    #[cold]
    fn count_failure(
        &self,
        stripe: StripeIndex,
        state: &KeyState<K>,
        options: AddOptions,
        now: Timestamp,
    ) -> Duration
    where
        K: Hash,
    {
        self.counters.count_retry(stripe);
        let delay = self.limiter.delay(&state.key, state.fail(), options.at_least, now);
        state.set_failures_expire(now + delay + self.limiter.forget_after());
        options.after.map_or(delay, |after| after.min(delay))
    }

    /// Adds a key without a delay that had a timer a moment ago.
    #[cold]
    fn add_and_remove_timer(&self, state: &Arc<KeyState<K>>, priority: i32, now: Timestamp) -> Wake {
        let mut timers = self.timers.lock();
        // Under the lock the timer neither fires nor is set.
        if state.delayed_priority().is_some() {
            timers.remove(state);
            let _ = self.publish_next_deadline(&timers);
        }
        self.add_without_timer(state, priority, now)
    }

    /// Adds a key without a delay whose timer has been removed. The caller holds the timers' lock.
    fn add_without_timer(&self, state: &Arc<KeyState<K>>, priority: i32, now: Timestamp) -> Wake {
        let effect = self.ready.add(state, |state| Some(state.add_and_clear_delay(priority, now)));
        effect.map_or(Wake::None, AddEffect::wake)
    }

    fn add_delayed(&self, state: &Arc<KeyState<K>>, priority: i32, deadline: Timestamp) -> Wake {
        let mut timers = self.timers.lock();
        // The shut-down drops all timers under this lock.
        if self.is_shut_down() {
            return Wake::None;
        }
        loop {
            match state.delay(priority) {
                Some(false) => timers.set(state, deadline),
                Some(true) => timers.bring_forward(state, deadline),
                // The key is ready: at most the priority rises. If the key has been handed out since, start
                // over.
                None => match self.ready.add(state, |state| state.raise(priority)) {
                    Some(effect) => return effect.wake(),
                    None => continue,
                },
            }
            return self.publish_next_deadline(&timers);
        }
    }

    /// Hands out the next key that is ready at `now`.
    pub fn get(&self, now: Timestamp) -> Option<InFlight<K>> {
        self.take(StripeIndex::default(), now).map(|(in_flight, _)| in_flight)
    }

    /// Hands out the next key that is ready at `now`, and returns whether there may be more.
    #[inline]
    pub(crate) fn take(&self, stripe: StripeIndex, now: Timestamp) -> Option<(InFlight<K>, bool)> {
        self.fire_due_timers(now);
        let Claimed { state, priority, more } = self.ready.pop()?;
        self.counters.observe_queued(stripe, now.since(state.since()));
        state.set_handed_out(now);
        Some((InFlight { state, priority, stripe }, more))
    }

    /// Makes keys with an expired delay ready. Returns whether there were such keys.
    #[inline]
    fn fire_due_timers(&self, now: Timestamp) -> bool {
        let due = self.next_deadline.load(Ordering::Acquire) <= now.as_nanos();
        if due {
            self.fire_timers(now);
        }
        due
    }

    #[cold]
    fn fire_timers(&self, now: Timestamp) {
        let mut timers = self.timers.lock();
        while let Some(state) = timers.pop(now) {
            let priority = state.delayed_priority().unwrap_or_default();
            // The caller wakes one worker for all keys; a worker that takes a key wakes the next worker.
            let _ = self.add_without_timer(&state, priority, now);
        }
        let _ = self.publish_next_deadline(&timers);
    }

    fn publish_next_deadline(&self, timers: &Timers<K>) -> Wake {
        let next = timers.next_deadline().map_or(NO_DEADLINE, Timestamp::as_nanos);
        let before = self.next_deadline.swap(next, Ordering::AcqRel);
        if next < before { Wake::TimerWatcher } else { Wake::None }
    }

    /// Ends the work on a key. A key that was added since the hand-out is ready again.
    #[inline]
    pub fn done(&self, in_flight: InFlight<K>, now: Timestamp) -> Wake {
        let InFlight { state, stripe, .. } = in_flight;
        let time = now.since(state.since());
        let wake = match state.done() {
            DoneEffect::Requeued { priority, version } => {
                self.ready.requeue(priority, state, version);
                Wake::Worker
            }
            DoneEffect::Idle => {
                self.keys.release(state, now);
                Wake::None
            }
        };
        self.counters.observe_worked(stripe, time);
        wake
    }

    /// Resets the failures of `key`.
    pub fn forget(&self, key: &K)
    where
        K: Eq + Hash,
    {
        self.keys.inspect(key, KeyState::forget);
    }

    /// Returns the failures of `key`: rate-limited adds since the last `forget` that have not expired at `now`.
    pub fn num_requeues(&self, key: &K, now: Timestamp) -> u32
    where
        K: Eq + Hash,
    {
        self.keys.inspect(key, |state| state.failures_at(now)).unwrap_or(0)
    }

    /// Returns the number of ready keys. Delayed keys and keys in flight do not count.
    pub fn len(&self) -> usize {
        self.ready.len()
    }

    /// Returns whether no key is ready.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// Returns the number of delayed keys.
    pub fn delayed(&self) -> usize {
        self.timers.lock().len()
    }

    /// Returns the number of keys that the queue has in memory, including idle keys.
    pub fn known_keys(&self) -> usize {
        self.keys.len()
    }

    /// Returns when the next delay ends.
    pub fn next_deadline(&self) -> Option<Timestamp> {
        match self.next_deadline.load(Ordering::Acquire) {
            NO_DEADLINE => None,
            nanos => Some(Timestamp::from_nanos(nanos)),
        }
    }

    /// Ends all adds and drops delayed keys. Ready keys, and keys in flight that were added again, are still handed out.
    pub fn shut_down(&self) {
        let mut timers = self.timers.lock();
        self.ready.close();
        while let Some(state) = timers.pop(Timestamp::MAX) {
            state.clear_delay();
        }
        let _ = self.publish_next_deadline(&timers);
    }

    /// Returns whether [`shut_down`](Self::shut_down) has been called.
    pub fn is_shut_down(&self) -> bool {
        self.ready.is_closed()
    }

    /// Returns whether no key is ready or in flight.
    pub fn is_drained(&self) -> bool {
        // In this order, every counted end belongs to a key that is counted as ready.
        let worked = self.counters.total_worked();
        self.ready.total_ready() == worked
    }

    /// Returns the metrics.
    pub fn snapshot(&self, now: Timestamp) -> Snapshot {
        let mut unfinished_work = Duration::ZERO;
        let mut longest_running_processor = Duration::ZERO;
        self.keys.inspect_all(|state| {
            if let Some(since) = state.in_flight_since() {
                let time = now.since(since);
                unfinished_work = unfinished_work.saturating_add(time);
                longest_running_processor = longest_running_processor.max(time);
            }
        });
        Snapshot {
            depth: self.ready.depths(),
            adds: self.ready.total_adds(),
            retries: self.counters.total_retries(),
            queue_duration: self.counters.queue_duration(),
            work_duration: self.counters.work_duration(),
            unfinished_work,
            longest_running_processor,
        }
    }
}

impl AddEffect {
    #[inline]
    fn wake(self) -> Wake {
        match self {
            Self::Queued { .. } | Self::Raised { .. } => Wake::Worker,
            Self::QueuedAfterDone | Self::Merged => Wake::None,
        }
    }
}
