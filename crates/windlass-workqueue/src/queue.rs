//! The queue itself: a state machine that is told the time and says whom to wake.

use crate::lanes::Lanes;
use crate::limiter::Limiter;
use crate::metrics::{Meters, Snapshot};
use crate::slot::{Added, Finished, Place, Slot};
use crate::sync::{Arc, AtomicBool, AtomicU64, Mutex, Ordering};
use crate::table::Table;
use crate::tick::Tick;
use crate::timers::Timers;
use crate::{Key, RateLimiter};
use std::time::Duration;

const NEVER: u64 = u64::MAX;

/// How an add is meant.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct AddOptions {
    /// Higher goes first. Of several adds the highest counts. 0 is usual, [`LOW_PRIORITY`](crate::LOW_PRIORITY) is
    /// for initial lists and resyncs.
    pub priority: i32,
    /// Not before this time has passed. Of several adds the earliest counts.
    pub after: Option<Duration>,
    /// Counts as a failure of the key, and not before the limiter's delay has passed. With `after` too: the shorter
    /// of the two.
    pub rate_limited: bool,
}

/// How a queue is made; see [`Builder`](crate::WorkQueue::builder) for the meaning.
#[derive(Clone, Debug)]
pub struct Config {
    /// How long failing keys wait.
    pub rate_limiter: RateLimiter,
    /// What the jitter is drawn from.
    pub seed: u64,
    /// One in this many turns goes to a lower priority when both have work; from 2 to 1024.
    pub ageing: u32,
}

impl Default for Config {
    fn default() -> Self {
        Self { rate_limiter: RateLimiter::default(), seed: 0, ageing: 16 }
    }
}

/// What a call changed for those who wait.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[must_use = "someone may be waiting for this"]
pub enum Signal {
    /// Nothing.
    Nothing,
    /// A key has become ready: wake one worker.
    Ready,
    /// [`Queue::next_deadline`] is earlier than it was.
    Earlier,
}

/// A key handed out to be worked on. It is nobody else's until it is given to [`Queue::done`].
#[must_use = "a key that is never done is never handed out again"]
pub struct Lease<K> {
    place: Arc<Place<K>>,
    priority: i32,
}

impl<K> Lease<K> {
    /// The key.
    pub fn key(&self) -> &K {
        &self.place.key
    }

    /// The priority at which it was queued.
    pub fn priority(&self) -> i32 {
        self.priority
    }

    /// The key's slot.
    pub fn slot(&self) -> Slot<K> {
        Slot(Arc::clone(&self.place))
    }

    /// Ends the key's row of failures.
    pub fn forget(&self) {
        self.place.forget();
    }

    /// Failures in a row: rate-limited adds since the last [`forget`](Self::forget).
    pub fn num_requeues(&self) -> u32 {
        self.place.failures()
    }
}

impl<K: std::fmt::Debug> std::fmt::Debug for Lease<K> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Lease")
            .field("key", self.key())
            .field("priority", &self.priority)
            .finish_non_exhaustive()
    }
}

/// The work queue as a state machine: it reads no clock, starts no task and blocks nobody for long.
///
/// Calls may come from any thread. `now` is the caller's; it should not run backwards, and nothing breaks if it does.
pub struct Queue<K> {
    table: Table<K>,
    lanes: Lanes<K>,
    timers: Mutex<Timers<K>>,
    /// The timers' next deadline, to be looked at without their lock.
    next_deadline: AtomicU64,
    limiter: Limiter,
    meters: Meters,
    shut_down: AtomicBool,
}

impl<K: Key> Queue<K> {
    /// An empty queue.
    pub fn new(config: &Config) -> Self {
        Self {
            table: Table::new(),
            lanes: Lanes::new(config.ageing.clamp(2, 1024)),
            timers: Mutex::new(Timers::new()),
            next_deadline: AtomicU64::new(NEVER),
            limiter: Limiter::new(&config.rate_limiter, config.seed),
            meters: Meters::new(),
            shut_down: AtomicBool::new(false),
        }
    }

    /// The slot of `key`, which it keeps for as long as the slot is held.
    pub fn intern(&self, key: K) -> Slot<K> {
        Slot(self.table.intern(key))
    }

    /// Adds `key`.
    pub fn add(&self, key: K, options: AddOptions, now: Tick) -> Signal {
        if self.is_shut_down() {
            return Signal::Nothing;
        }
        self.add_place(&self.table.intern(key), options, now)
    }

    /// Adds the key of `slot`, which must be one of this queue's.
    pub fn add_slot(&self, slot: &Slot<K>, options: AddOptions, now: Tick) -> Signal {
        if self.is_shut_down() {
            return Signal::Nothing;
        }
        self.add_place(&slot.0, options, now)
    }

    /// Adds the key of a lease: it comes back when the lease is done, or later.
    pub fn add_leased(&self, lease: &Lease<K>, options: AddOptions, now: Tick) -> Signal {
        if self.is_shut_down() {
            return Signal::Nothing;
        }
        self.add_place(&lease.place, options, now)
    }

    fn add_place(&self, place: &Arc<Place<K>>, options: AddOptions, now: Tick) -> Signal {
        // Keys whose time came before this add go before it.
        let fired = self.fire(now);
        let signal = self.add_one(place, options, now);
        if fired { Signal::Ready } else { signal }
    }

    fn add_one(&self, place: &Arc<Place<K>>, options: AddOptions, now: Tick) -> Signal {
        let delay =
            if options.rate_limited { Some(self.limit(place, options.after, now)) } else { options.after };
        match delay {
            Some(delay) if delay > Duration::ZERO => {
                self.add_later(place, options.priority, now, now + delay)
            }
            _ => match place.add(options.priority, now) {
                Added::Waiting => self.add_waiting(place, options.priority, now),
                added => self.admit(place, added),
            },
        }
    }

    fn limit(&self, place: &Place<K>, after: Option<Duration>, now: Tick) -> Duration {
        self.meters.retried(place.hash);
        let delay = self.limiter.delay(&place.key, place.fail(), now);
        after.map_or(delay, |after| after.min(delay))
    }

    /// Adds a key that seems to wait for a timer.
    fn add_waiting(&self, place: &Arc<Place<K>>, priority: i32, now: Tick) -> Signal {
        let added = {
            let mut timers = self.timers.lock();
            let (added, armed) = place.add_and_disarm(priority, now);
            if armed {
                timers.remove(place);
                let _ = self.publish_deadline(&timers);
            }
            added
        };
        self.admit(place, added)
    }

    fn add_later(&self, place: &Arc<Place<K>>, priority: i32, now: Tick, deadline: Tick) -> Signal {
        let mut timers = self.timers.lock();
        if self.is_shut_down() {
            return Signal::Nothing;
        }
        match place.arm(priority) {
            Some(false) => timers.set(place, deadline),
            Some(true) => timers.bring_forward(place, deadline),
            None => {
                // It is ready already; at most its priority rises.
                drop(timers);
                return match place.add(priority, now) {
                    // It has been handed out and finished meanwhile.
                    Added::Waiting => self.add_waiting(place, priority, now),
                    added => self.admit(place, added),
                };
            }
        }
        self.publish_deadline(&timers)
    }

    /// Puts a key where it belongs.
    fn admit(&self, place: &Arc<Place<K>>, added: Added) -> Signal {
        match added {
            Added::Ready { priority, ticket } => {
                self.meters.added(place.hash);
                self.lanes.push(priority, Arc::clone(place), ticket);
                Signal::Ready
            }
            Added::Raised { from, priority, ticket } => {
                self.lanes.void(from);
                self.lanes.push(priority, Arc::clone(place), ticket);
                Signal::Ready
            }
            Added::AfterDone => {
                self.meters.added(place.hash);
                Signal::Nothing
            }
            Added::Merged | Added::Waiting => Signal::Nothing,
        }
    }

    /// Hands out the next key that is ready at `now`.
    pub fn get(&self, now: Tick) -> Option<Lease<K>> {
        self.fire(now);
        let (place, priority) = self.lanes.pop()?;
        place.start(now);
        self.meters.queued_for(place.hash, now.since(place.queued_at()));
        Some(Lease { place, priority })
    }

    /// Makes ready what is due: whether there was anything.
    fn fire(&self, now: Tick) -> bool {
        if self.next_deadline.load(Ordering::Acquire) > now.as_nanos() {
            return false;
        }
        let mut timers = self.timers.lock();
        while let Some(place) = timers.pop(now) {
            let priority = place.waiting_priority().unwrap_or_default();
            let (added, _) = place.add_and_disarm(priority, now);
            // One signal does for all: whoever gets a key looks whether there are more.
            let _ = self.admit(&place, added);
        }
        let _ = self.publish_deadline(&timers);
        true
    }

    fn publish_deadline(&self, timers: &Timers<K>) -> Signal {
        let next = timers.next_deadline().map_or(NEVER, Tick::as_nanos);
        let before = self.next_deadline.swap(next, Ordering::AcqRel);
        if next < before { Signal::Earlier } else { Signal::Nothing }
    }

    /// Ends the work on a key. If it was added meanwhile it is ready again.
    pub fn done(&self, lease: Lease<K>, now: Tick) -> Signal {
        let Lease { place, .. } = lease;
        self.meters.worked_for(place.hash, now.since(place.started_at()));
        match place.finish() {
            Finished::Again { priority, ticket } => {
                self.lanes.push(priority, place, ticket);
                Signal::Ready
            }
            Finished::Idle => {
                self.table.idled(&place);
                Signal::Nothing
            }
        }
    }

    /// Ends the row of failures of `key`.
    pub fn forget(&self, key: &K) {
        if let Some(place) = self.table.find(key) {
            place.forget();
            self.table.idled(&place);
        }
    }

    /// Failures of `key` in a row: rate-limited adds since the last `forget`.
    pub fn num_requeues(&self, key: &K) -> u32 {
        self.table.find(key).map_or(0, |place| place.failures())
    }

    /// How many keys are ready. Keys that wait for a timer or are being worked on do not count.
    pub fn len(&self) -> usize {
        self.lanes.len()
    }

    /// No key is ready.
    pub fn is_empty(&self) -> bool {
        self.lanes.is_empty()
    }

    /// How many keys wait for a timer.
    pub fn waiting(&self) -> usize {
        self.timers.lock().len()
    }

    /// How many slots the queue keeps, idle ones included.
    pub fn slots(&self) -> usize {
        self.table.len()
    }

    /// When the next timer is due.
    pub fn next_deadline(&self) -> Option<Tick> {
        match self.next_deadline.load(Ordering::Acquire) {
            NEVER => None,
            nanos => Some(Tick::from_nanos(nanos)),
        }
    }

    /// No more adds. What is ready is still handed out, what waits for a timer is dropped.
    pub fn shut_down(&self) {
        let mut timers = self.timers.lock();
        self.shut_down.store(true, Ordering::SeqCst);
        while let Some(place) = timers.pop(Tick::from_nanos(u64::MAX)) {
            place.disarm();
        }
        let _ = self.publish_deadline(&timers);
    }

    /// [`shut_down`](Self::shut_down) has been called.
    pub fn is_shut_down(&self) -> bool {
        self.shut_down.load(Ordering::Acquire)
    }

    /// No key is ready and none is being worked on.
    pub fn is_drained(&self) -> bool {
        if !self.lanes.is_empty() {
            return false;
        }
        let mut active = false;
        self.table.for_each(|place| active |= place.is_active());
        !active
    }

    /// The metrics.
    pub fn snapshot(&self, now: Tick) -> Snapshot {
        let mut unfinished_work = Duration::ZERO;
        let mut longest_running_processor = Duration::ZERO;
        self.table.for_each(|place| {
            if let Some(since) = place.running_since() {
                let time = now.since(since);
                unfinished_work = unfinished_work.saturating_add(time);
                longest_running_processor = longest_running_processor.max(time);
            }
        });
        Snapshot {
            depth: self.lanes.depths(),
            adds: self.meters.adds(),
            retries: self.meters.retries(),
            queue_duration: self.meters.queue_duration(),
            work_duration: self.meters.work_duration(),
            unfinished_work,
            longest_running_processor,
        }
    }
}
