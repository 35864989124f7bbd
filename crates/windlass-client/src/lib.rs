//! Typed clientsets, shared informer factories and listers, in the words of
//! [client-go](https://github.com/kubernetes/client-go).
//!
//! A [`Controller`](windlass_runtime::Controller) does not need this crate. The crate is for programs in the
//! style of client-go: a clientset for writes, an informer factory for caches and event handlers, a lister
//! for reads, and a work queue between handlers and workers. `windlass generate` writes the same clients for
//! the kinds of a project.
//!
//! ```no_run
//! # #[cfg(feature = "core-v1")] mod example {
//! use std::time::Duration;
//!
//! use windlass_client::{
//!     ListOptions, ResourceEventHandlerFuncs, SharedInformerFactory, clientset::Clientset,
//!     informers::GroupInformers as _,
//! };
//! use windlass_runtime::{ObjectKey, ObjectKeyExt as _, Result, Selector, workqueue::WorkQueue};
//!
//! # pub async fn example(client: kube_client::Client) -> Result<()> {
//! let clientset = Clientset::new(client.clone());
//! let nodes = clientset.core_v1().nodes().list(&ListOptions::default()).await?;
//!
//! let factory = SharedInformerFactory::new(client, Duration::from_secs(30));
//! let pods = factory.core().v1().pods();
//! let queue = WorkQueue::new("Pods");
//! let added = queue.clone();
//! pods.informer()?.add_event_handler(
//!     ResourceEventHandlerFuncs::new().add_func(move |pod| added.add(ObjectKey::of(&**pod))),
//! );
//! factory.start();
//! factory.wait_for_cache_sync(Duration::from_secs(30)).await?;
//! println!("{} nodes, {} pods", nodes.items.len(), pods.lister()?.list(&Selector::everything())?.len());
//! factory.shutdown().await;
//! # Ok(()) }
//! # }
//! ```
//!
//! # Built-in kinds
//!
//! [`clientset`], [`informers`], [`listers`] and [`register`] have the built-in kinds. Each group and version
//! is behind a feature: `core-v1`, `apps-v1`, … `full` enables all. The modules need the types of Kubernetes
//! 1.36 (the feature `v1_36` of `k8s-openapi`).
#![forbid(unsafe_code)]

// From the surface down: a module uses only modules further down.
mod generated;
mod rows;

mod lister;
mod resource_informer;
mod typed_client;

mod options;
pub mod scheme;
pub mod verb;

pub use self::{
    generated::*,
    lister::NamespacedLister,
    options::{
        ApplyOptions, CreateOptions, DeleteOptions, GetOptions, ListOptions, PatchOptions, UpdateOptions,
        WatchOptions,
    },
    resource_informer::informer_for_resource,
    typed_client::TypedClient,
};

pub use kube_client::Client;
pub use kube_core::DynamicObject;
#[doc(inline)]
pub use windlass_apply as apply;
pub use windlass_runtime::{
    Error, Lister, ObjectKey, ObjectKeyExt, Objects, Result, Selector,
    informer::{
        CacheOptions, HandlerOptions, ResourceEventHandler, ResourceEventHandlerFuncs,
        ResourceEventHandlerRegistration, SharedInformer, SharedInformerFactory,
        SharedInformerFactoryBuilder,
    },
    kind,
};

/// Names for generated code and macros. Not part of the public API: the module changes without notice.
#[doc(hidden)]
pub mod __private {
    pub use k8s_openapi;
    pub use kube_core;
}
