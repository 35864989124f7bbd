//! The work queue of a controller: one entry per key, delays, back-off and priorities.
//!
//! A [`WorkQueue`] holds keys, not objects. However often a key is added it waits once; a key that is being worked
//! on is never handed out a second time, and if it was added meanwhile it comes back when the first work is done.
//! That is client-go's `TypedRateLimitingInterface` with controller-runtime's priorities, built differently:
//!
//! - every key owns a *slot*, whose state is one atomic word (see [`slot`](Slot)); adding a key that is already
//!   queued is one load;
//! - ready slots lie in FIFO lanes, one for each priority, with ageing so that a low priority is slow but never
//!   starves. Adders fill one set of lanes and workers empty another, which is exchanged for the first when it is
//!   empty: so the two do not fight over memory, and the lock of either half is held only while one entry is moved;
//! - delayed keys lie in a timer core. It reads no clock: [`Queue`] is a state machine that is told the time,
//!   [`WorkQueue`] is the thin shell that brings tokio's clock and its `get().await`.
//!
//! ```
//! # #[tokio::main(flavor = "current_thread")] async fn main() {
//! use windlass_workqueue::{AddOptions, LOW_PRIORITY, WorkQueue};
//!
//! let queue = WorkQueue::builder("pods").build();
//! queue.add_with("default/slow", AddOptions::new().priority(LOW_PRIORITY));
//! queue.add("default/quick");
//! queue.add("default/quick");
//! assert_eq!(queue.len(), 2);
//!
//! let item = queue.get().await.expect("the queue is open");
//! assert_eq!(*item.key(), "default/quick");
//! item.forget(); // the work went well: the next failure starts at the shortest delay again
//! item.done();
//!
//! queue.shut_down();
//! assert!(queue.get().await.is_some(), "what was queued is still handed out");
//! assert!(queue.get().await.is_none());
//! # }
//! ```
#![forbid(unsafe_code)]

mod sync;
mod tick;

mod add_options;

mod slot;
mod table;

mod lanes;
mod ready;
mod timers;

mod bucket;
mod limiter;

mod metrics;

mod queue;

#[cfg(not(loom))]
mod builder;
#[cfg(not(loom))]
mod item;
#[cfg(not(loom))]
mod work_queue;

mod gate;
mod seat;

#[cfg(all(test, loom))]
mod interleavings;

pub use add_options::AddOptions;
#[cfg(not(loom))]
pub use builder::Builder;
#[cfg(not(loom))]
pub use item::Item;
pub use limiter::RateLimiter;
pub use metrics::{Histogram, Snapshot};
pub use queue::{Config, Lease, Queue, Signal};
pub use slot::Slot;
pub use tick::Tick;
#[cfg(not(loom))]
pub use work_queue::WorkQueue;

/// What a key must be: small, cheap to clone, comparable.
///
/// Implemented for every type that can be; there is nothing to write.
pub trait Key: Eq + std::hash::Hash + Clone + Send + Sync + 'static {}

impl<K: Eq + std::hash::Hash + Clone + Send + Sync + 'static> Key for K {}

/// What stands for a key until one is needed: the queue makes the key only if it does not know it.
///
/// It hashes as the key itself does.
pub trait KeyRef<K>: std::hash::Hash {
    /// Whether this stands for `key`.
    fn is(&self, key: &K) -> bool;

    /// The key.
    fn to_key(&self) -> K;
}

/// The priority of keys that come from an initial list or a resync rather than from a change: controller-runtime's
/// `LowPriority`. Whatever changed just now goes first.
pub const LOW_PRIORITY: i32 = -100;
