//! The shell around [`Queue`]: tokio's clock, and workers that sleep.

use crate::AddOptions;
use crate::gate::Gate;
use crate::metrics::Stripe;
use crate::queue::{Config, Lease, Queue, Signal};
use crate::seat::Seat;
use crate::slot::Place;
use crate::tick::Tick;
use crate::{Builder, Item, Snapshot};
use equivalent::Equivalent;
use std::hash::Hash;
use std::pin::pin;
use std::sync::Arc;
use std::sync::atomic::{AtomicU8, Ordering};
use std::time::Duration;
use tokio::sync::Notify;
use tokio::time::Instant;

/// A work queue for any number of adders and workers. Clones are handles to the same queue.
///
/// Adds never wait and may come from any thread. [`get`](Self::get) needs a tokio runtime with time enabled, and
/// follows its clock, paused or not. A worker does well to have a clone of its own: then workers share nothing but
/// the queue's lanes.
pub struct WorkQueue<K> {
    handle: Arc<Handle<K>>,
}

/// One clone's reference to the queue. Items count on it, so that workers with clones of their own do not fight
/// over one reference count.
pub(crate) struct Handle<K> {
    shared: Arc<Shared<K>>,
    /// The counters that this clone uses.
    stripe: Stripe,
}

struct Shared<K> {
    name: String,
    queue: Queue<K>,
    began: Instant,
    gate: Gate,
    /// Rung for one worker when a key is ready, for all when the queue shuts down.
    bell: Notify,
    /// Rung when the next deadline has moved forward.
    alarm: Notify,
    /// Clones ever made, to give each counters of its own.
    clones: AtomicU8,
    /// One of the sleeping workers sits here and watches the clock.
    seat: Seat,
    /// Rung once the queue has shut down and nothing is ready, after each piece of work.
    drained: Notify,
}

impl<K: Eq + Hash> WorkQueue<K> {
    /// An empty queue with the default settings. The name is what its metrics are labelled with, usually the
    /// controller's.
    pub fn new(name: impl Into<String>) -> Self {
        Self::builder(name).build()
    }

    /// Sets up a queue. The name is what its metrics are labelled with, usually the controller's.
    pub fn builder(name: impl Into<String>) -> Builder<K> {
        Builder::new(name.into())
    }

    pub(crate) fn with_config(name: String, config: &Config) -> Self {
        let shared = Shared {
            name,
            queue: Queue::new(config),
            began: Instant::now(),
            gate: Gate::new(),
            bell: Notify::new(),
            alarm: Notify::new(),
            clones: AtomicU8::new(1),
            seat: Seat::new(),
            drained: Notify::new(),
        };
        Self { handle: Arc::new(Handle { shared: Arc::new(shared), stripe: Stripe::default() }) }
    }

    /// The queue's name.
    pub fn name(&self) -> &str {
        &self.shared().name
    }

    /// Adds `key` at priority 0, to be handed out as soon as it is its turn. Nothing happens if it is queued already
    /// or the queue is shut down.
    pub fn add(&self, key: K) {
        self.add_with(key, AddOptions::new());
    }

    /// Adds `key` at priority 0, not before `delay` has passed.
    pub fn add_after(&self, key: K, delay: Duration) {
        self.add_with(key, AddOptions::new().after(delay));
    }

    /// Adds `key` at priority 0 as a failure: not before the rate limiter's delay has passed.
    pub fn add_rate_limited(&self, key: K) {
        self.add_with(key, AddOptions::new().rate_limited());
    }

    /// Adds `key` with a priority, a delay, or as a failure.
    pub fn add_with(&self, key: K, options: AddOptions) {
        if let Some(place) = self.shared().queue.place(key) {
            self.handle.add(&place, options);
        }
    }

    /// Adds the key that `key` equals and returns it. A key that the queue knows is cloned; only one that it does not
    /// know is made from `key`.
    ///
    /// ```
    /// # use std::sync::Arc;
    /// # use windlass_workqueue::{AddOptions, WorkQueue};
    /// let queue: WorkQueue<Arc<str>> = WorkQueue::new("pods");
    /// let first = queue.add_ref("default/web-0", AddOptions::new());
    /// let again = queue.add_ref("default/web-0", AddOptions::new());
    /// assert!(Arc::ptr_eq(&first, &again), "the key was allocated once");
    /// ```
    pub fn add_ref<Q>(&self, key: &Q, options: AddOptions) -> K
    where
        Q: Hash + Equivalent<K> + ?Sized,
        K: for<'q> From<&'q Q> + Clone,
    {
        let Some(place) = self.shared().queue.place_of_ref(key) else { return K::from(key) };
        self.handle.add(&place, options);
        place.key.clone()
    }

    /// The next key, as soon as there is one; `None` when the queue is shut down and nothing is left.
    ///
    /// May be dropped at any time; no key is lost by that. A worker whose keys are always ready yields to other tasks
    /// every now and then: each call takes from tokio's [cooperative budget](tokio::task::coop).
    pub async fn get(&self) -> Option<Item<K>> {
        tokio::task::consume_budget().await;
        Handle::get(&self.handle).await
    }

    /// The next key, if one is ready.
    pub fn try_get(&self) -> Option<Item<K>> {
        Handle::try_get(&self.handle)
    }

    /// Ends the row of failures of `key`: its next rate-limited add waits for the shortest delay again.
    pub fn forget(&self, key: &K) {
        self.shared().queue.forget(key);
    }

    /// Failures of `key` in a row: rate-limited adds since the last [`forget`](Self::forget), unless they
    /// [have expired](crate::RateLimiter::forget_after).
    pub fn num_requeues(&self, key: &K) -> u32 {
        let shared = self.shared();
        shared.queue.num_requeues(key, shared.now())
    }

    /// How many keys are ready. Keys that wait for a timer or are being worked on do not count.
    pub fn len(&self) -> usize {
        self.shared().queue.len()
    }

    /// No key is ready.
    pub fn is_empty(&self) -> bool {
        self.shared().queue.is_empty()
    }

    /// No more adds from now on. Keys that are ready, and keys that were added again while they were worked on, are
    /// still handed out; delayed ones are dropped.
    pub fn shut_down(&self) {
        let shared = self.shared();
        shared.queue.shut_down();
        shared.bell.notify_waiters();
        shared.drained.notify_waiters();
    }

    /// Shuts down, and waits until every key that was ready has been worked on. That needs workers; without any it
    /// waits for ever.
    pub async fn shut_down_with_drain(&self) {
        self.shut_down();
        loop {
            let mut worked = pin!(self.shared().drained.notified());
            worked.as_mut().enable();
            if self.shared().queue.is_drained() {
                return;
            }
            worked.await;
        }
    }

    /// [`shut_down`](Self::shut_down) has been called.
    pub fn is_shut_down(&self) -> bool {
        self.shared().queue.is_shut_down()
    }

    /// The metrics, to be exported under client-go's names. Takes time in proportion to the keys known.
    pub fn metrics(&self) -> Snapshot {
        let shared = self.shared();
        shared.queue.snapshot(shared.now())
    }
}

impl<K> WorkQueue<K> {
    fn shared(&self) -> &Shared<K> {
        &self.handle.shared
    }
}

impl<K> Handle<K> {
    async fn get(this: &Arc<Self>) -> Option<Item<K>> {
        match Self::try_get(this) {
            Some(item) => Some(item),
            // The wait is a large future, and would be moved about even by those who need not wait.
            None => Box::pin(Self::wait(this)).await,
        }
    }

    async fn wait(this: &Arc<Self>) -> Option<Item<K>> {
        let shared = &this.shared;
        loop {
            let mut rung = pin!(shared.bell.notified());
            let sleeping = shared.gate.enter();
            if rung.as_mut().enable() {
                shared.gate.heard();
                continue;
            }
            // Asked before the last look: what was added before the end is handed out.
            let shut_down = shared.queue.is_shut_down();
            if let Some(item) = Self::try_get(this) {
                return Some(item);
            }
            if shut_down {
                return None;
            }
            match shared.take_seat() {
                None => {
                    rung.await;
                    shared.gate.heard();
                }
                Some(_watch) => {
                    tokio::select! {
                        biased;
                        () = rung => shared.gate.heard(),
                        () = shared.alarm.notified() => {}
                        () = shared.deadline() => {}
                    }
                }
            }
            drop(sleeping);
            if let Some(item) = Self::try_get(this) {
                return Some(item);
            }
        }
    }

    #[inline]
    fn try_get(this: &Arc<Self>) -> Option<Item<K>> {
        let shared = &this.shared;
        let now = shared.now();
        let (lease, more) = shared.queue.get_on(this.stripe, now)?;
        // Whoever was woken wakes the next if there is more; so one bell does for many keys.
        if more {
            shared.signal(Signal::Ready, now);
        }
        Some(Item::new(Arc::clone(this), lease))
    }

    #[inline]
    fn add(&self, place: &Arc<Place<K>>, options: AddOptions)
    where
        K: Hash,
    {
        let shared = &self.shared;
        let mut now = Tick::ZERO;
        let signal = shared.queue.add_place(self.stripe, place, options, || {
            now = shared.now();
            now
        });
        shared.signal(signal, now);
    }

    pub(crate) fn requeue(&self, lease: &Lease<K>, options: AddOptions)
    where
        K: Hash,
    {
        self.add(lease.place(), options);
    }

    #[inline]
    pub(crate) fn done(&self, lease: Lease<K>) {
        let shared = &self.shared;
        let now = shared.now();
        shared.signal(shared.queue.done(lease, now), now);
        if shared.queue.is_shut_down() && shared.queue.is_empty() {
            shared.drained.notify_waiters();
        }
    }
}

impl<K> Shared<K> {
    fn now(&self) -> Tick {
        Tick::from(self.began.elapsed())
    }

    #[inline]
    fn signal(&self, signal: Signal, now: Tick) {
        match signal {
            Signal::Nothing => {}
            Signal::Ready => {
                if self.gate.opened(now) {
                    self.bell.notify_one();
                }
            }
            Signal::Earlier => self.set_alarm(),
        }
    }

    /// The next deadline has moved forward: tells whoever watches the clock, or wakes somebody who will.
    #[cold]
    fn set_alarm(&self) {
        if self.seat.is_taken() {
            self.alarm.notify_one();
        } else if self.gate.has_sleepers() {
            self.bell.notify_one();
        }
    }

    /// Sleeps until the next timer is due.
    async fn deadline(&self) {
        match self.queue.next_deadline() {
            Some(deadline) => tokio::time::sleep_until(self.began + Duration::from(deadline)).await,
            None => std::future::pending().await,
        }
    }

    /// The seat of the one who watches the clock, if it is free.
    fn take_seat(&self) -> Option<Watch<'_, K>> {
        self.seat.take().then(|| Watch(self))
    }
}

/// The worker that watches the clock has sat down, until this is dropped.
struct Watch<'a, K>(&'a Shared<K>);

impl<K> Drop for Watch<'_, K> {
    fn drop(&mut self) {
        if self.0.seat.leave(&self.0.gate) && self.0.queue.next_deadline().is_some() {
            self.0.bell.notify_one();
        }
    }
}

impl<K> Clone for WorkQueue<K> {
    fn clone(&self) -> Self {
        let shared = Arc::clone(&self.handle.shared);
        let stripe = Stripe(shared.clones.fetch_add(1, Ordering::Relaxed));
        Self { handle: Arc::new(Handle { shared, stripe }) }
    }
}

impl<K> std::fmt::Debug for WorkQueue<K> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("WorkQueue")
            .field("name", &self.shared().name)
            .field("len", &self.shared().queue.len())
            .finish_non_exhaustive()
    }
}
