//! Shared caches: one watch per kind and selector in a process, any number of readers and handlers.
//!
//! The state machines are in `windlass-cache`; here are the requests, the clock and the tasks around them.
//!
//! ```no_run
//! use kube_core::ApiResource;
//! use windlass_runtime::informer::{SharedInformerFactory, WatchOptions};
//! # async fn example(client: kube_client::Client) -> Result<(), Box<dyn std::error::Error>> {
//! let factory = SharedInformerFactory::new(client);
//! let pods = factory.informer(&ApiResource::erase::<k8s_openapi::api::core::v1::Pod>(&()), WatchOptions::default())?;
//! factory.start();
//! factory.wait_for_cache_sync(std::time::Duration::from_secs(30)).await?;
//! println!("{} pods", pods.store().len());
//! factory.shutdown().await;
//! # Ok(())
//! # }
//! ```

mod options;
mod request;

mod driver;
mod factory;
mod log;
mod shared;

#[cfg(test)]
mod tests;

pub use windlass_cache::{Handler, InformerMetrics, Notice, Tier, Transform, WatchError};

pub use self::{
    factory::{InformerError, SharedInformerFactory},
    options::WatchOptions,
    shared::{HandlerOptions, HandlerRegistration, SharedInformer},
};
