//! Shared caches: a single watch per kind and selector in a process, any number of readers and handlers.
//!
//! The state machines are in `windlass-cache`; this module adds the requests, the clock and the tasks.
//!
//! ```no_run
//! use k8s_openapi::api::core::v1::Pod;
//! use kube_core::ResourceExt as _;
//! use std::time::Duration;
//! use windlass_runtime::{informer::{ResourceEventHandlerFuncs, SharedInformerFactory}, kind};
//! # async fn example(client: kube_client::Client) -> windlass_runtime::Result<()> {
//! let factory = SharedInformerFactory::new(client, Duration::ZERO);
//! let pods = factory.informer_for(kind::<Pod>())?;
//! let registration = pods.add_event_handler(
//!     ResourceEventHandlerFuncs::new()
//!         .add_func(|pod: &std::sync::Arc<Pod>| println!("added {}", pod.name_any()))
//!         .update_func(|_, pod| println!("updated {}", pod.name_any()))
//!         .delete_func(|pod| println!("deleted {}", pod.name_any())),
//! );
//! factory.start();
//! factory.wait_for_cache_sync(Duration::from_secs(30)).await?;
//! println!("{} pods", pods.lister().all()?.len());
//! pods.remove_event_handler(&registration);
//! factory.shutdown().await;
//! # Ok(())
//! # }
//! ```

mod options;
mod request;

mod delivery;
mod driver;
mod event_handler;
mod feed;
mod log;
mod metrics;
mod pipeline;
mod registration;
mod shared;
mod undecodable;

mod defaults;
mod factory;

#[cfg(test)]
mod tests;

pub use windlass_cache::{
    BackoffConfig, Decoder, FieldPath, IndexFn, InformerMetrics, MemoryEstimate, ObjectEncoding, Query,
    ReflectorConfig, ReflectorEvent, Store, Transform, WatchError,
};

pub(crate) use self::metrics::CacheMetrics;
pub use self::{
    defaults::SharedInformerFactoryBuilder,
    delivery::HandlerResult,
    event_handler::{ResourceEventHandler, ResourceEventHandlerFuncs},
    factory::{InformerError, SharedInformerFactory},
    options::CacheOptions,
    registration::{DeltaSubscription, ResourceEventHandlerRegistration},
    shared::{HandlerOptions, SharedInformer},
};
