//! The work queue of a controller: one entry per key, delays, back-off and priorities.
//!
//! A [`WorkQueue`] holds keys, not objects. A key that is added several times is queued once. A key in flight
//! is never handed out a second time; a key that is added while in flight is queued when the worker is done.
//!
//! ```
//! # #[tokio::main(flavor = "current_thread")] async fn main() {
//! use windlass_workqueue::{AddOptions, LOW_PRIORITY, WorkQueue};
//!
//! let queue = WorkQueue::new("pods");
//! queue.add_with("default/slow", AddOptions::new().priority(LOW_PRIORITY));
//! queue.add("default/quick");
//! queue.add("default/quick");
//! assert_eq!(queue.len(), 2);
//!
//! let item = queue.get().await.expect("the queue is not shut down");
//! assert_eq!(*item.key(), "default/quick");
//! item.forget(); // after a success, the next failure starts at the shortest delay
//! item.done();
//!
//! queue.shut_down();
//! assert!(queue.get().await.is_some(), "ready keys are still handed out");
//! assert!(queue.get().await.is_none());
//! # }
//! ```
//!
//! # For users of client-go
//!
//! The interface is client-go's `TypedRateLimitingInterface` with controller-runtime's priorities:
//!
//! | client-go | here |
//! |---|---|
//! | `Add`, `AddAfter`, `AddRateLimited` | [`add`](WorkQueue::add), [`add_after`](WorkQueue::add_after), [`add_rate_limited`](WorkQueue::add_rate_limited) |
//! | `AddWithOpts` (controller-runtime) | [`add_with`](WorkQueue::add_with) |
//! | `Get` | [`get`](WorkQueue::get), which returns an [`Item`], or `None` where client-go returns `shutdown` |
//! | `Done(key)` | [`Item::done`], or dropping the item: a worker that returns early or panics cannot leave a key in flight |
//! | `Forget`, `NumRequeues` | [`forget`](WorkQueue::forget), [`num_requeues`](WorkQueue::num_requeues); the same methods of [`Item`] need no look-up |
//! | `ShutDown`, `ShutDownWithDrain`, `ShuttingDown` | [`shut_down`](WorkQueue::shut_down), [`shut_down_with_drain`](WorkQueue::shut_down_with_drain), [`is_shut_down`](WorkQueue::is_shut_down) |
//! | `Len` | [`len`](WorkQueue::len) |
//!
//! Two things differ. Failures that are not forgotten expire when the key stays idle (see
//! [`RateLimiter::forget_after`]); in client-go such failures occupy memory for ever. And
//! [`RateLimiter::default`] has a jitter, but no token bucket for all keys together;
//! [`RateLimiter::client_go`] is client-go's default.
//!
//! # Design
//!
//! - The state of a key is one atomic word. Adding a key that is already queued takes only the lock of the hash table's
//!   shard.
//! - Ready keys are in FIFO lanes, one for each priority, with ageing across lanes, which prevents starvation
//!   of low priorities. Adders fill one set of lanes and workers empty the other set; an empty worker set
//!   takes over the adders' set. Adders and workers therefore rarely contend, and a lock is held only while
//!   an entry is moved.
//! - Delayed keys are in a timer core that reads no clock. The queue is a state machine that is told the time;
//!   [`WorkQueue`] adds tokio's clock and the sleeping of workers.
#![forbid(unsafe_code)]

// From the surface down: a module uses only modules further down.
#[cfg(not(loom))]
mod work_queue;

mod queue;
mod sleepers;

mod add_options;
mod key_table;
mod metrics;
mod rate_limiter;
mod ready_queue;
mod timers;

mod lanes;

mod key_state;

mod sync;
mod timestamp;

#[cfg(all(test, loom))]
mod interleavings;

pub use add_options::AddOptions;
pub use equivalent::Equivalent;
pub use metrics::{Histogram, Snapshot};
pub use rate_limiter::RateLimiter;
#[cfg(not(loom))]
pub use work_queue::{Builder, Item, WorkQueue};

/// The queue as a state machine, for tests, simulators and benchmarks. Not covered by semantic versioning.
#[doc(hidden)]
pub mod core {
    pub use crate::queue::{Config, InFlight, Queue, Wake};
    pub use crate::timestamp::Timestamp;
}

/// The priority of keys from an initial list or a resync: controller-runtime's `LowPriority`. Keys of objects that have
/// just changed go first.
pub const LOW_PRIORITY: i32 = -100;
