//! Generators: from what an operator declares to the files of its project.
//!
//! - [`Inventory`]: what an operator declares. Its hidden command `manifests` prints it as JSON.
//! - [`manifests`]: CustomResourceDefinitions, roles, webhook configurations, the Deployment and kustomizations made of it.
#![forbid(unsafe_code)]

mod inventory;
#[cfg(feature = "generate")]
pub mod manifests;

pub use self::inventory::{
    CertificateOrigin, ControllerItem, ConversionItem, ElectionItem, Inventory, MetricsItem, Rights,
    ServiceItem, WatchItem, WebhooksItem,
};
