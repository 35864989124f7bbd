//! The queue itself: a state machine that is told the time and says whom to wake.

use crate::limiter::Limiter;
use crate::metrics::{Meters, Snapshot, Stripe};
use crate::ready::{Ready, Taken};
use crate::slot::{Added, Finished, Place};
use crate::sync::{Arc, AtomicU64, Mutex, Ordering};
use crate::table::Table;
use crate::tick::Tick;
use crate::timers::Timers;
use crate::{AddOptions, RateLimiter};
#[cfg(not(loom))]
use equivalent::Equivalent;
use std::hash::Hash;
use std::time::Duration;

const NEVER: u64 = u64::MAX;

/// Keys whose failures have expired are looked for no more often than this.
const SWEEP_INTERVAL: Duration = Duration::from_secs(1);

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
    stripe: Stripe,
}

impl Added {
    #[inline]
    fn signal(self) -> Signal {
        match self {
            Self::Ready { .. } | Self::Raised { .. } => Signal::Ready,
            Self::AfterDone | Self::Merged => Signal::Nothing,
        }
    }
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

    #[cfg(not(loom))]
    pub(crate) fn place(&self) -> &Arc<Place<K>> {
        &self.place
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
            .field("priority", &self.priority())
            .finish_non_exhaustive()
    }
}

/// The work queue as a state machine: it reads no clock, starts no task and blocks nobody for long.
///
/// Calls may come from any thread. `now` is the caller's; it should not run backwards, and nothing breaks if it does.
pub struct Queue<K> {
    table: Table<K>,
    ready: Ready<K>,
    timers: Mutex<Timers<K>>,
    /// The timers' next deadline, to be looked at without their lock.
    next_deadline: AtomicU64,
    limiter: Limiter,
    meters: Meters,
}

impl<K> Queue<K> {
    /// An empty queue.
    pub fn new(config: &Config) -> Self {
        let limiter = Limiter::new(&config.rate_limiter, config.seed);
        Self {
            table: Table::new(limiter.forget_after.max(SWEEP_INTERVAL)),
            ready: Ready::new(config.ageing.clamp(2, 1024)),
            timers: Mutex::new(Timers::new()),
            next_deadline: AtomicU64::new(NEVER),
            limiter,
            meters: Meters::new(),
        }
    }

    /// Adds `key`.
    pub fn add(&self, key: K, options: AddOptions, now: Tick) -> Signal
    where
        K: Eq + Hash,
    {
        self.place(key)
            .map_or(Signal::Nothing, |place| self.add_place(Stripe::default(), &place, options, || now))
    }

    /// Where `key` is to be added; nowhere after the end.
    pub(crate) fn place(&self, key: K) -> Option<Arc<Place<K>>>
    where
        K: Eq + Hash,
    {
        (!self.is_shut_down()).then(|| self.table.intern(key))
    }

    /// Where the key that `key` equals is to be added; nowhere after the end.
    #[cfg(not(loom))]
    pub(crate) fn place_of_ref<Q>(&self, key: &Q) -> Option<Arc<Place<K>>>
    where
        Q: Hash + Equivalent<K> + ?Sized,
        K: for<'q> From<&'q Q>,
    {
        (!self.is_shut_down()).then(|| self.table.intern_ref(key))
    }

    #[inline]
    pub(crate) fn add_place(
        &self,
        stripe: Stripe,
        place: &Arc<Place<K>>,
        options: AddOptions,
        clock: impl FnOnce() -> Tick,
    ) -> Signal
    where
        K: Hash,
    {
        // The most frequent add changes nothing, and needs no clock to find that out.
        let merges = !options.rate_limited && place.covers(options.priority);
        if merges || self.is_shut_down() {
            return Signal::Nothing;
        }
        let now = clock();
        // Keys whose time came before this add go before it.
        let fired = self.fire(now);
        let signal = self.add_one(stripe, place, options, now);
        if fired { Signal::Ready } else { signal }
    }

    #[inline]
    fn add_one(&self, stripe: Stripe, place: &Arc<Place<K>>, options: AddOptions, now: Tick) -> Signal
    where
        K: Hash,
    {
        if place.failures() > 0 && place.failures_at(now) == 0 {
            place.forget();
        }
        let delay = if options.rate_limited {
            Some(self.limit(stripe, place, options.after, now))
        } else {
            options.after
        };
        match delay {
            Some(delay) if delay > Duration::ZERO => self.add_later(place, options.priority, now + delay),
            _ => match self.ready.admit(place, |place| place.add(options.priority, now)) {
                Some(added) => added.signal(),
                None => self.add_waiting(place, options.priority, now),
            },
        }
    }

    #[cold]
    fn limit(&self, stripe: Stripe, place: &Place<K>, after: Option<Duration>, now: Tick) -> Duration
    where
        K: Hash,
    {
        self.meters.retried(stripe);
        let delay = self.limiter.delay(&place.key, place.fail(), now);
        place.remember_failures_until(now + delay + self.limiter.forget_after);
        after.map_or(delay, |after| after.min(delay))
    }

    /// Adds a key that seems to wait for a timer.
    #[cold]
    fn add_waiting(&self, place: &Arc<Place<K>>, priority: i32, now: Tick) -> Signal {
        let mut timers = self.timers.lock();
        // Under this lock a timer neither comes nor goes. The end takes all of them.
        if place.waiting_priority().is_some() {
            timers.remove(place);
            let _ = self.publish_deadline(&timers);
        }
        self.admit_due(place, priority, now)
    }

    /// Makes a key ready whose timer has been taken out. The caller holds the timers' lock.
    fn admit_due(&self, place: &Arc<Place<K>>, priority: i32, now: Tick) -> Signal {
        let added = self.ready.admit(place, |place| Some(place.add_and_disarm(priority, now)));
        added.map_or(Signal::Nothing, Added::signal)
    }

    fn add_later(&self, place: &Arc<Place<K>>, priority: i32, deadline: Tick) -> Signal {
        let mut timers = self.timers.lock();
        // Timers are set, and all dropped at the end, under this lock.
        if self.is_shut_down() {
            return Signal::Nothing;
        }
        loop {
            match place.arm(priority) {
                Some(false) => timers.set(place, deadline),
                Some(true) => timers.bring_forward(place, deadline),
                // It is ready already: at most its priority rises. Or it has just been handed out: then again.
                None => match self.ready.admit(place, |place| place.raise(priority)) {
                    Some(added) => return added.signal(),
                    None => continue,
                },
            }
            return self.publish_deadline(&timers);
        }
    }

    /// Hands out the next key that is ready at `now`.
    pub fn get(&self, now: Tick) -> Option<Lease<K>> {
        self.get_on(Stripe::default(), now).map(|(lease, _)| lease)
    }

    /// The next key that is ready at `now`, and whether there are others, which may be void.
    #[inline]
    pub(crate) fn get_on(&self, stripe: Stripe, now: Tick) -> Option<(Lease<K>, bool)> {
        self.fire(now);
        let Taken { place, priority, more } = self.ready.take()?;
        self.meters.queued_for(stripe, now.since(place.since()));
        place.start(now);
        Some((Lease { place, priority, stripe }, more))
    }

    /// Makes ready what is due: whether there was anything.
    #[inline]
    fn fire(&self, now: Tick) -> bool {
        let due = self.next_deadline.load(Ordering::Acquire) <= now.as_nanos();
        if due {
            self.fire_timers(now);
        }
        due
    }

    #[cold]
    fn fire_timers(&self, now: Tick) {
        let mut timers = self.timers.lock();
        while let Some(place) = timers.pop(now) {
            let priority = place.waiting_priority().unwrap_or_default();
            // One signal does for all: whoever gets a key looks whether there are more.
            let _ = self.admit_due(&place, priority, now);
        }
        let _ = self.publish_deadline(&timers);
    }

    fn publish_deadline(&self, timers: &Timers<K>) -> Signal {
        let next = timers.next_deadline().map_or(NEVER, Tick::as_nanos);
        let before = self.next_deadline.swap(next, Ordering::AcqRel);
        if next < before { Signal::Earlier } else { Signal::Nothing }
    }

    /// Ends the work on a key. If it was added meanwhile it is ready again.
    #[inline]
    pub fn done(&self, lease: Lease<K>, now: Tick) -> Signal {
        let Lease { place, stripe, .. } = lease;
        let time = now.since(place.since());
        let signal = match place.finish() {
            Finished::Again { priority, ticket } => {
                self.ready.push_again(priority, place, ticket);
                Signal::Ready
            }
            Finished::Idle => {
                self.table.release(place, now);
                Signal::Nothing
            }
        };
        self.meters.worked_for(stripe, time);
        signal
    }

    /// Ends the row of failures of `key`.
    pub fn forget(&self, key: &K)
    where
        K: Eq + Hash,
    {
        self.table.look_up(key, Place::forget);
    }

    /// Failures of `key` in a row at `now`: rate-limited adds since the last `forget`, unless they have expired.
    pub fn num_requeues(&self, key: &K, now: Tick) -> u32
    where
        K: Eq + Hash,
    {
        self.table.look_up(key, |place| place.failures_at(now)).unwrap_or(0)
    }

    /// How many keys are ready. Keys that wait for a timer or are being worked on do not count.
    pub fn len(&self) -> usize {
        self.ready.len()
    }

    /// No key is ready.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
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
        self.ready.close();
        while let Some(place) = timers.pop(Tick::from_nanos(u64::MAX)) {
            place.disarm();
        }
        let _ = self.publish_deadline(&timers);
    }

    /// [`shut_down`](Self::shut_down) has been called.
    pub fn is_shut_down(&self) -> bool {
        self.ready.is_closed()
    }

    /// No key is ready and none is being worked on.
    pub fn is_drained(&self) -> bool {
        // The ends first: each of them is then among what had become ready.
        let finished = self.meters.finished();
        self.ready.entered() == finished
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
            depth: self.ready.depths(),
            adds: self.ready.added(),
            retries: self.meters.retries(),
            queue_duration: self.meters.queue_duration(),
            work_duration: self.meters.work_duration(),
            unfinished_work,
            longest_running_processor,
        }
    }
}
