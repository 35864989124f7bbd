//! Generators: from what an operator declares to the files of its project. Each is a function; nothing is read or written here.
//!
//! - [`Inventory`]: what an operator declares. Its hidden command `manifests` prints it as JSON.
//! - [`cluster_definitions`]: CustomResourceDefinitions as a cluster gets them; [`limit_integers`]: limits that an API server enforces.
//! - [`compatibility`]: the changes of a CustomResourceDefinition that break clients or stored objects.
//! - [`client`]: clientset, informers, listers, apply configurations and registration of kinds, as code-generator makes them for Go.
//! - [`types`]: Rust types from the schema of a CRD.
//! - [`bundle`]: a bundle for the Operator Lifecycle Manager; [`chart`]: a Helm chart. Both are made of the same model as the manifests.
//! - [`manifests`]: CustomResourceDefinitions, roles, webhook configurations, the Deployment and kustomizations made of it.
#![forbid(unsafe_code)]

#[cfg(feature = "generate")]
pub mod bundle;
#[cfg(feature = "generate")]
pub mod chart;
#[cfg(feature = "generate")]
pub mod client;
pub mod compatibility;
#[cfg(feature = "generate")]
pub mod definition;
mod definitions;
mod integers;
mod inventory;
#[cfg(feature = "generate")]
pub mod manifests;
#[cfg(feature = "generate")]
mod names;
mod schema;
#[cfg(feature = "generate")]
mod source_file;
#[cfg(feature = "generate")]
pub mod types;

pub use self::definitions::{DefinitionError, cluster_definitions};
pub use self::integers::limit_integers;
pub use self::inventory::{
    CertificateOrigin, ControllerItem, ConversionItem, ElectionItem, Inventory, MetricsItem, Rights,
    ServiceItem, WatchItem, WebhooksItem,
};
#[cfg(feature = "generate")]
pub use self::source_file::{HEADER, SourceFile};
