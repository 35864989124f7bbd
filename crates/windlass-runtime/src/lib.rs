//! The runtime of an operator: watches feed a queue of keys, workers reconcile them, a manager runs it all.
//!
//! The words are controller-runtime's, the types are kube's:
//!
//! - [`Reconciler`]: what a person writes, a function from a key to an [`Action`], with a [`Context`] to read and write by.
//! - [`Controller`]: a reconciler, the kinds it watches, and how it is run.
//! - [`Manager`]: runs controllers in order and stops them gracefully; leader election, metrics and health belong to it.
//! - [`client`]: the one constructor of every `kube::Client`; what is written through it is seen by reads at once
//!   ([`read_your_writes`]).
//! - [`informer`]: shared caches, one watch per kind and selector.
//!
//! Beside these: [`events`], [`finalizer`], [`owner`], [`conditions`], [`leader_election`].
#![forbid(unsafe_code)]

mod error;

pub mod env;

mod supervisor;

pub mod client;
pub mod read_your_writes;

pub mod informer;

mod handler;
mod namespaced_name;
mod predicate;
mod source;

mod context;
mod reconcile;

mod controller;

pub mod conditions;
pub mod events;
pub mod finalizer;
pub mod owner;

mod health;
mod metrics;

pub mod leader_election;

pub mod manager;

pub use windlass_cache::{ObjectKey, RawObject, Selector};
pub use windlass_workqueue::{AddOptions, LOW_PRIORITY, RateLimiter};

pub use self::{
    context::{Context, Lister, Objects},
    controller::{Controller, ControllerHandle, WatchId},
    error::{BoxError, Error, Result},
    handler::{Event, EventHandler, Keys, MapContext, QueueKey},
    health::Check,
    manager::{Manager, RunContext, Runnable, Shutdown},
    metrics::Metrics,
    predicate::Predicate,
    reconcile::{Action, Reconciler},
    source::{Owned, Watch},
};
