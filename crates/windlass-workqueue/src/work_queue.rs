//! The asynchronous interface of [`Queue`]: tokio's clock and sleeping workers.

mod builder;
mod item;

pub use self::builder::Builder;
pub use self::item::Item;
use crate::AddOptions;
use crate::Snapshot;
use crate::key_state::KeyState;
use crate::metrics::StripeIndex;
use crate::queue::{Config, InFlight, Queue, Wake};
use crate::sleepers::{Sleepers, TimerWatch};
use crate::timestamp::Timestamp;
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
/// Adds never wait and may come from any thread. [`get`](Self::get) needs a tokio runtime with time enabled
/// and follows the runtime's clock, paused or not. Give each worker a separate clone: workers then do not
/// contend for reference counts and counters.
pub struct WorkQueue<K> {
    handle: Arc<Handle<K>>,
}

/// One clone of a queue. The items of the clone share a reference count and counters.
pub(crate) struct Handle<K> {
    inner: Arc<Inner<K>>,
    stripe: StripeIndex,
}

struct Inner<K> {
    name: String,
    queue: Queue<K>,
    created: Instant,
    sleepers: Sleepers,
    timer: TimerWatch,
    /// Wakes one worker when a key is ready, all when the queue is shut down.
    wake: Notify,
    /// Wakes the worker that holds the timer when the next deadline is earlier than before.
    deadline_moved: Notify,
    /// Wakes drains when, after the shut-down, a worker is done and no key is ready.
    drained: Notify,
    /// The number of handles ever created. Each handle takes a stripe from this number.
    handles: AtomicU8,
}

impl<K: Eq + Hash> WorkQueue<K> {
    /// Creates an empty queue with the default settings. Metrics are labelled with `name`, usually the controller's.
    pub fn new(name: impl Into<String>) -> Self {
        Self::builder(name).build()
    }

    /// Returns a builder. Metrics are labelled with `name`, usually the controller's.
    pub fn builder(name: impl Into<String>) -> Builder<K> {
        Builder::new(name.into())
    }

    pub(crate) fn with_config(name: String, config: &Config) -> Self {
        let inner = Inner {
            name,
            queue: Queue::new(config),
            created: Instant::now(),
            sleepers: Sleepers::new(),
            timer: TimerWatch::new(),
            wake: Notify::new(),
            deadline_moved: Notify::new(),
            drained: Notify::new(),
            handles: AtomicU8::new(1),
        };
        Self { handle: Arc::new(Handle { inner: Arc::new(inner), stripe: StripeIndex::default() }) }
    }

    /// Returns the name of the queue.
    pub fn name(&self) -> &str {
        &self.inner().name
    }

    /// Adds `key` at priority 0. Does nothing if the key is already queued, or after the shut-down. A key in
    /// flight is queued when the worker is done.
    pub fn add(&self, key: K) {
        self.add_with(key, AddOptions::new());
    }

    /// Adds `key` at priority 0 after `delay`. If the key is delayed already, the shorter delay wins.
    pub fn add_after(&self, key: K, delay: Duration) {
        self.add_with(key, AddOptions::new().after(delay));
    }

    /// Adds `key` at priority 0 after the rate limiter's delay, and counts a failure of the key.
    pub fn add_rate_limited(&self, key: K) {
        self.add_with(key, AddOptions::new().rate_limited());
    }

    /// Adds `key` with a priority, a delay, or rate limited.
    pub fn add_with(&self, key: K, options: AddOptions) {
        if let Some(state) = self.inner().queue.state_of(key) {
            self.handle.add(&state, options);
        }
    }

    /// Adds the key that equals `key`, and returns that key. A known key is cloned; `key` is converted only
    /// if the queue does not know the key.
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
        let Some(state) = self.inner().queue.state_of_ref(key) else { return K::from(key) };
        self.handle.add(&state, options);
        state.key.clone()
    }

    /// Waits for the next key. Returns `None` once the queue is shut down and no key is ready.
    ///
    /// Dropping the future loses no key. Each call consumes tokio's [cooperative budget](tokio::task::coop),
    /// and a worker with ready keys at all times therefore yields to other tasks.
    pub async fn get(&self) -> Option<Item<K>> {
        tokio::task::consume_budget().await;
        match Handle::try_get(&self.handle) {
            Some(item) => Some(item),
            // Boxed, because the future is large, and a worker that need not wait would move the large future
            // about.
            None => Box::pin(Handle::wait(&self.handle)).await,
        }
    }

    /// Returns the next key if a key is ready.
    pub fn try_get(&self) -> Option<Item<K>> {
        Handle::try_get(&self.handle)
    }

    /// Resets the failures of `key`: the next rate-limited add has the shortest delay.
    pub fn forget(&self, key: &K) {
        self.inner().queue.forget(key);
    }

    /// Returns the failures of `key`: rate-limited adds since the last [`forget`](Self::forget) that have not
    /// [expired](crate::RateLimiter::forget_after).
    pub fn num_requeues(&self, key: &K) -> u32 {
        let inner = self.inner();
        inner.queue.num_requeues(key, inner.now())
    }

    /// Returns the number of ready keys. Delayed keys and keys in flight do not count.
    pub fn len(&self) -> usize {
        self.inner().queue.len()
    }

    /// Returns whether no key is ready.
    pub fn is_empty(&self) -> bool {
        self.inner().queue.is_empty()
    }

    /// Ends all adds and drops delayed keys. Ready keys, and keys in flight that were added again, are still handed out.
    pub fn shut_down(&self) {
        let inner = self.inner();
        inner.queue.shut_down();
        inner.wake.notify_waiters();
        inner.drained.notify_waiters();
    }

    /// Shuts down, and waits until no key is ready or in flight. Needs workers: without workers, the call
    /// waits for ever if a key is ready.
    pub async fn shut_down_with_drain(&self) {
        self.shut_down();
        loop {
            let mut worked = pin!(self.inner().drained.notified());
            worked.as_mut().enable();
            if self.inner().queue.is_drained() {
                return;
            }
            worked.await;
        }
    }

    /// Returns whether the queue has been shut down.
    pub fn is_shut_down(&self) -> bool {
        self.inner().queue.is_shut_down()
    }

    /// Returns the metrics, for export under client-go's names. Takes time in proportion to the number of known keys.
    pub fn metrics(&self) -> Snapshot {
        let inner = self.inner();
        inner.queue.snapshot(inner.now())
    }
}

impl<K> WorkQueue<K> {
    fn inner(&self) -> &Inner<K> {
        &self.handle.inner
    }
}

impl<K> Handle<K> {
    async fn wait(this: &Arc<Self>) -> Option<Item<K>> {
        let inner = &this.inner;
        loop {
            let mut woken = pin!(inner.wake.notified());
            let sleeping = inner.sleepers.sleep();
            if woken.as_mut().enable() {
                inner.sleepers.awake();
                continue;
            }
            // Read before the last look for a key: a key that was added before the shut-down is handed out.
            let shut_down = inner.queue.is_shut_down();
            if let Some(item) = Self::try_get(this) {
                return Some(item);
            }
            if shut_down {
                return None;
            }
            match inner.take_timer() {
                None => {
                    woken.await;
                    inner.sleepers.awake();
                }
                Some(_timer) => {
                    tokio::select! {
                        biased;
                        () = woken => inner.sleepers.awake(),
                        () = inner.deadline_moved.notified() => {}
                        () = inner.sleep_until_deadline() => {}
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
        let inner = &this.inner;
        let now = inner.now();
        let (in_flight, more) = inner.queue.take(this.stripe, now)?;
        // A woken worker wakes the next worker: an adder need not wake a worker for each key.
        if more {
            inner.wake(Wake::Worker, now);
        }
        Some(Item::new(Arc::clone(this), in_flight))
    }

    #[inline]
    fn add(&self, state: &Arc<KeyState<K>>, options: AddOptions)
    where
        K: Hash,
    {
        let inner = &self.inner;
        let mut now = Timestamp::ZERO;
        let wake = inner.queue.add_state(self.stripe, state, options, || {
            now = inner.now();
            now
        });
        inner.wake(wake, now);
    }

    pub(crate) fn requeue(&self, in_flight: &InFlight<K>, options: AddOptions)
    where
        K: Hash,
    {
        self.add(in_flight.state(), options);
    }

    #[inline]
    pub(crate) fn done(&self, in_flight: InFlight<K>) {
        let inner = &self.inner;
        let now = inner.now();
        inner.wake(inner.queue.done(in_flight, now), now);
        if inner.queue.is_shut_down() && inner.queue.is_empty() {
            inner.drained.notify_waiters();
        }
    }
}

impl<K> Inner<K> {
    fn now(&self) -> Timestamp {
        Timestamp::from(self.created.elapsed())
    }

    #[inline]
    fn wake(&self, wake: Wake, now: Timestamp) {
        match wake {
            Wake::None => {}
            Wake::Worker => {
                if self.sleepers.must_wake(now) {
                    self.wake.notify_one();
                }
            }
            Wake::TimerWatcher => self.wake_timer_watcher(),
        }
    }

    /// Notifies the worker that holds the timer of an earlier deadline, or wakes a worker for the timer.
    #[cold]
    fn wake_timer_watcher(&self) {
        if self.timer.is_taken() {
            self.deadline_moved.notify_one();
        } else if self.sleepers.any() {
            self.wake.notify_one();
        }
    }

    async fn sleep_until_deadline(&self) {
        match self.queue.next_deadline() {
            Some(deadline) => tokio::time::sleep_until(self.created + Duration::from(deadline)).await,
            None => std::future::pending().await,
        }
    }

    fn take_timer(&self) -> Option<TimerGuard<'_, K>> {
        self.timer.take().then(|| TimerGuard(self))
    }
}

/// A worker's hold of the timer. Dropping it hands the timer to another sleeping worker.
struct TimerGuard<'a, K>(&'a Inner<K>);

impl<K> Drop for TimerGuard<'_, K> {
    fn drop(&mut self) {
        if self.0.timer.give_up(&self.0.sleepers) && self.0.queue.next_deadline().is_some() {
            self.0.wake.notify_one();
        }
    }
}

impl<K> Clone for WorkQueue<K> {
    fn clone(&self) -> Self {
        let inner = Arc::clone(&self.handle.inner);
        let stripe = StripeIndex(inner.handles.fetch_add(1, Ordering::Relaxed));
        Self { handle: Arc::new(Handle { inner, stripe }) }
    }
}

impl<K> std::fmt::Debug for WorkQueue<K> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let inner = self.inner();
        f.debug_struct("WorkQueue")
            .field("name", &inner.name)
            .field("len", &inner.queue.len())
            .finish_non_exhaustive()
    }
}
