//! Shared caches: one watch per kind and selector in a process, any number of readers and handlers.
//!
//! The state machines are in `windlass-cache`; this module adds the requests, the clock and the tasks around them.
//!
//! ```no_run
//! use kube_core::ApiResource;
//! use windlass_runtime::{Delta, informer::{HandlerOptions, SharedInformerFactory, WatchOptions}};
//! # async fn example(client: kube_client::Client) -> Result<(), Box<dyn std::error::Error>> {
//! let factory = SharedInformerFactory::new(client);
//! let pods = factory.informer(&ApiResource::erase::<k8s_openapi::api::core::v1::Pod>(&()), WatchOptions::default())?;
//! let registration = pods.add_handler(
//!     |delta: &Delta| match delta {
//!         Delta::Added { object, .. } => println!("added {}", object.key()),
//!         Delta::Updated { new, .. } => println!("updated {}", new.key()),
//!         Delta::Deleted { last, .. } => println!("deleted {}", last.key()),
//!     },
//!     HandlerOptions::default(),
//! );
//! factory.start();
//! factory.wait_for_cache_sync(std::time::Duration::from_secs(30)).await?;
//! println!("{} pods", pods.store().len());
//! drop(registration);
//! factory.shutdown().await;
//! # Ok(())
//! # }
//! ```

mod options;
mod request;

mod delivery;
mod driver;
mod factory;
mod feed;
mod log;
mod metrics;
mod shared;
mod undecodable;

#[cfg(test)]
mod tests;

pub use windlass_cache::{
    BackoffConfig, Decoder, FieldPath, IndexFn, InformerMetrics, Notice, Query, ReflectorConfig, Store, Tier,
    Transform, WatchError,
};

pub(crate) use self::metrics::CacheMetrics;
pub use self::{
    delivery::{DeltaHandler, HandlerResult},
    factory::{InformerError, SharedInformerFactory},
    options::WatchOptions,
    shared::{HandlerOptions, HandlerRegistration, SharedInformer},
};
