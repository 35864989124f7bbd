//! Apply configurations: the fields of an object that one field manager sets by [server-side
//! apply](https://kubernetes.io/docs/reference/using-api/server-side-apply/), and no other fields.
//!
//! An object of `k8s_openapi` serializes fields that the author never set. The controller would then own
//! fields that the controller does not care about. An [`ApplyConfiguration`] serializes only fields that were
//! set.
//!
//! ```
//! # #[cfg(feature = "apps-v1")] {
//! use windlass_apply::{
//!     ApplyConfiguration as _,
//!     apps::v1::deployment,
//!     core::v1::{container, pod_template_spec},
//!     meta::v1::label_selector,
//! };
//!
//! let web = deployment("web", "default")
//!     .label("app", "web")
//!     .replicas(3)
//!     .selector(label_selector().match_labels([("app", "web")]))
//!     .template(pod_template_spec().label("app", "web").containers([container("main").image("nginx")]));
//!
//! assert_eq!(serde_json::to_value(deployment("web", "default").replicas(3))?, serde_json::json!({
//!     "apiVersion": "apps/v1", "kind": "Deployment",
//!     "metadata": { "name": "web", "namespace": "default" },
//!     "spec": { "replicas": 3 },
//! }));
//! # drop(web); }
//! # Ok::<_, serde_json::Error>(())
//! ```
//!
//! The crate knows no client: the runtime's `Context::apply` sends a configuration.
//!
//! # Configurations of built-in kinds
//!
//! The modules have the names of `k8s_openapi`'s modules. Each module is behind the feature of a group and
//! version: `apps-v1`, `core-v1`, … A feature enables the features of all groups in the group's types:
//! `apps-v1` enables `core-v1`. `full` enables all. The modules need the types of Kubernetes 1.36 (the
//! feature `v1_36` of `k8s-openapi`). An API server may be older, because the server receives only fields
//! that were set.
//!
//! - A function makes a configuration: `deployment(name, namespace)`, `namespace(name)`, and
//!   `deployment_spec()` for a part of a kind. The function of an item in a list with keys takes the keys:
//!   `container("main")`, `container_port(80)`.
//! - A setter of a list or map **adds** to it. A call with an empty list sets an empty list, and the empty
//!   list is sent.
//! - A kind and a template have the setters of their `spec`, too: `deployment(..).replicas(3)` is
//!   `deployment(..).spec(deployment_spec().replicas(3))`, and keeps the other fields of the spec.
//! - All fields are public, for changes that setters do not offer, and for tests.
//!
//! # Configurations of your own kinds
//!
//! `#[derive(ApplyConfiguration)]` makes a configuration for a custom resource; see
//! [`derive@ApplyConfiguration`].
#![forbid(unsafe_code)]

// From the surface down: a module uses only modules further down.
mod macros;
#[macro_use]
mod rows;

mod generated;

mod field;
mod leaf;
mod members;

mod configuration;

pub use windlass_derive::ApplyConfiguration;

pub use self::{configuration::ApplyConfiguration, field::ApplyField, generated::*, leaf::IntoLeaf};

/// Names for the output of macros. Not part of the public API: the module changes without notice.
#[doc(hidden)]
pub mod __private {
    pub use k8s_openapi;
    pub use kube_core;
    pub use serde;
    pub use serde_json;

    pub use crate::members::{Configuration, Member, Members, debug, equal, serialize};
}
