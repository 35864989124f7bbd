//! The work queue of a controller: one entry per key, delays, back-off and priorities.
//!
//! A [`WorkQueue`] holds keys, not objects. However often a key is added it waits once; a key that is being worked
//! on is never handed out a second time, and if it was added meanwhile it comes back when the first work is done.
//! That is client-go's `TypedRateLimitingInterface` with controller-runtime's priorities, built differently:
//!
//! - the state of a key is one atomic word; adding a key that is already queued takes no lock but the one of the table
//!   in which it is found;
//! - ready slots lie in FIFO lanes, one for each priority, with ageing so that a low priority is slow but never
//!   starves. Adders fill one set of lanes and workers empty another, which is exchanged for the first when it is
//!   empty: so the two do not fight over memory, and the lock of either half is held only while one entry is moved;
//! - delayed keys lie in a timer core. It reads no clock: the queue is a state machine that is told the time,
//!   [`WorkQueue`] is the thin shell that brings tokio's clock and its `get().await`.
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
pub use equivalent::Equivalent;
#[cfg(not(loom))]
pub use item::Item;
pub use limiter::RateLimiter;
pub use metrics::{Histogram, Snapshot};
#[cfg(not(loom))]
pub use work_queue::WorkQueue;

/// The state machine without its shell, for tests, simulators and benchmarks. It is not part of the stable interface.
#[doc(hidden)]
pub mod core {
    pub use crate::queue::{Config, Lease, Queue, Signal};
    pub use crate::tick::Tick;
}

/// The priority of keys that come from an initial list or a resync rather than from a change: controller-runtime's
/// `LowPriority`. Whatever changed just now goes first.
pub const LOW_PRIORITY: i32 = -100;
