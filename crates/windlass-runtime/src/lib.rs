//! The runtime of an operator: watches feed a queue of keys, workers reconcile the keys, a manager runs all parts.
//!
//! The terms are controller-runtime's, the types are kube's:
//!
//! - [`Reconciler`]: the user's code, a function from a key to an [`Action`], with a [`Context`] for reads and writes.
//! - [`Controller`]: a reconciler, the watched kinds, and the options of both. [`KindRef`] is the argument for a kind.
//! - [`Manager`]: starts controllers in order and stops the controllers gracefully; with leader election, metrics and health.
//! - [`client`]: the constructor of every `kube::Client`. Reads see the writes of such a client at once
//!   ([`read_your_writes`]).
//! - [`informer`]: shared caches, a single watch per kind and selector.
//!
//! Beside these: [`source`]s of keys other than watches, [`events`], [`finalizer`], [`owner`], [`conditions`], [`leader_election`],
//! [`webhook`]s, [`storage_migration`].
#![forbid(unsafe_code)]

// From the surface down: a module uses only modules further down.
pub mod conditions;
#[doc(hidden)]
pub mod detached;
pub mod finalizer;
pub mod owner;
pub mod storage_migration;

mod webhooks;

pub mod manager;

mod cache_declaration;
mod controller;
pub mod crds;
mod health;

mod reconcile;
mod shared_state;
mod shutdown;
pub mod source;
mod watch;
mod webhook_declaration;

mod handler;
mod observer;
mod predicate;
pub mod sharding;

mod context;
pub mod leader_election;

mod api_reader;
mod cluster_state;
mod discovery;
mod leader_deadline;
mod lister;
pub mod permission;

mod kind_cache;
mod objects;

pub mod informer;
mod undecodable;

pub mod events;
mod kind_ref;

pub mod client;
mod kind;
mod supervisor;

pub mod env;
mod metrics;
pub mod read_your_writes;

mod error;
mod namespaced_name;

mod reader;
mod resource_path;

mod path_segment;

pub use prometheus_client;
/// Server-side apply: sparse objects that have only the fields to own. The crate `windlass-apply`.
pub mod apply {
    // A module, and not a renamed crate: error messages of the compiler name types by a path that a user can write.
    #[doc(inline)]
    pub use windlass_apply::*;
}
/// Webhooks: defaulters, validators, converters, and the server. The crate `windlass-webhook`.
pub mod webhook {
    #[doc(inline)]
    pub use windlass_webhook::*;
}
/// The work queue: one entry per key. The crate `windlass-workqueue`.
pub mod workqueue {
    #[doc(inline)]
    pub use windlass_workqueue::*;
}

pub use windlass_cache::{Delta, ObjectKey, ParseKeyError, RawObject, Selector};
pub use windlass_workqueue::{AddOptions, LOW_PRIORITY, RateLimiter};

pub use self::{
    api_reader::ApiReader,
    context::{
        ApplyRequest, Context, DeleteRequest, OperationResult, PatchRequest, StatusRequest, WriteResult,
    },
    controller::{Controller, ControllerHandle, WatchId},
    error::{BoxError, Error, FieldConflict, Result},
    handler::{Enqueuer, EventHandler, HandlerContext, QueueKey},
    health::Check,
    kind::{AsObject, Object, ObjectKeyExt},
    kind_ref::{IntoKind, KindRef, kind},
    lister::Lister,
    manager::{Manager, QueueMetricsGuard, RunContext, Runnable},
    metrics::Metrics,
    objects::Objects,
    permission::{Permission, Permissions, Verb},
    predicate::Predicate,
    reconcile::{Action, Reconciler},
    shutdown::Shutdown,
    watch::Watch,
    webhooks::{AdmissionContextExt, AdmissionWebhookExt},
};
