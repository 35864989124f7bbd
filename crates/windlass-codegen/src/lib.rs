//! Generators: from the declarations of an operator to the files of a project. Each generator is a function
//! without I/O.
//!
//! - [`Inventory`]: the declarations of an operator. The operator's hidden command `manifests` prints the
//!   inventory as JSON.
//! - [`cluster_definitions`]: CustomResourceDefinitions for a cluster; [`limit_integers`]: limits that an API
//!   server enforces.
//! - [`compatibility`]: the changes of a CustomResourceDefinition that break clients or stored objects.
//! - [`client`]: clientset, informers, listers, apply configurations and registration of kinds, in the style
//!   of Go's code-generator.
//! - [`types`]: Rust types from the schema of a CRD.
//! - [`bundle`]: a bundle for the Operator Lifecycle Manager; [`chart`]: a Helm chart. Both are made of the same model as the manifests.
//! - [`manifests`]: CustomResourceDefinitions, roles, webhook configurations, the Deployment and
//!   kustomizations.
#![forbid(unsafe_code)]

// From the surface down: a module uses only modules further down.
#[cfg(feature = "generate")]
pub mod bundle;
#[cfg(feature = "generate")]
pub mod chart;
pub mod compatibility;
#[cfg(feature = "generate")]
pub mod types;

#[cfg(feature = "generate")]
pub mod client;
#[cfg(feature = "generate")]
pub mod manifests;

#[cfg(feature = "generate")]
pub mod definition;
mod definitions;
#[cfg(feature = "generate")]
mod groups;
mod inventory;
#[cfg(feature = "generate")]
mod names;
#[cfg(feature = "generate")]
mod source_file;

mod schema;

mod integers;

pub use self::definitions::{DefinitionError, cluster_definitions};
pub use self::integers::limit_integers;
pub use self::inventory::{
    CertificateOrigin, ControllerDeclaration, ConversionDeclaration, ElectionDeclaration, Inventory,
    MetricsDeclaration, Rights, ServiceDeclaration, WatchDeclaration, WebhooksDeclaration,
};
#[cfg(feature = "generate")]
pub use self::source_file::{HEADER, SourceFile};
