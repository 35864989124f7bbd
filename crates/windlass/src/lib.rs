//! Windlass: write Kubernetes operators in Rust.
//!
//! This crate is a facade: a dependency on this crate provides everything that an operator needs, including
//! `kube` and `k8s_openapi`, in matching versions. Most programs begin with the [`prelude`]:
//!
//! ```no_run
//! use k8s_openapi::api::core::v1::{ConfigMap, Pod};
//! use windlass::prelude::*;
//!
//! async fn reconcile(key: ObjectKey, cx: Context<ConfigMap>) -> Result<Action> {
//!     let Some(config) = cx.get(&key)? else { return Ok(Action::done()) };
//!     tracing::info!(pods = cx.owned_by::<Pod>(&config)?.len(), "seen");
//!     Ok(Action::done())
//! }
//!
//! #[tokio::main]
//! async fn main() -> Result<()> {
//!     Manager::from_args().controller(Controller::of::<ConfigMap>(reconcile).owns::<Pod>()).run().await
//! }
//! ```
//!
//! A binary chooses the versions of Kubernetes' types and the TLS library, a library does not: enable one
//! `v1_*` feature of `k8s-openapi`, and `rustls-tls` with `ring` of `kube`.
//!
//! The feature `cli`, on by default, adds [`Manager::from_args`](cli::FromArgs::from_args) and the command line behind it;
//! see [`cli`].
//!
//! [Apply configurations](apply) of built-in kinds are behind a feature for each group and version: `core-v1`, `apps-v1`, `batch-v1`, …
#![forbid(unsafe_code)]

#[cfg(feature = "cli")]
pub mod cli;

#[cfg(doctest)]
mod book;

pub use k8s_openapi;
pub use kube;
#[doc(inline)]
/// # The examples, compiled
/// ```
/// use schemars::JsonSchema;
/// use serde::{Deserialize, Serialize};
/// use windlass::schema;
///
/// #[schema(exactly_one_of(host, address))]
/// #[derive(Serialize, Deserialize, JsonSchema)]
/// #[serde(rename_all = "camelCase")]
/// struct BackendSpec {
///     #[schema(max_length = 63, pattern = "^[a-z]+$", immutable)]
///     host: Option<String>,
///     address: Option<String>,
///     #[schema(minimum = 0, maximum = 100, multiple_of = 5, example = 50)]
///     weight: i32,
///     #[schema(list_type = "map", list_map_key = "name", max_items = 8)]
///     ports: Vec<Port>,
/// }
///
/// #[derive(Serialize, Deserialize, JsonSchema)]
/// struct Port {
///     name: String,
/// }
///
/// let schema = serde_json::to_value(schemars::schema_for!(BackendSpec)).unwrap();
/// assert_eq!(schema["properties"]["weight"]["multipleOf"], 5);
/// assert_eq!(schema["properties"]["host"]["x-kubernetes-validations"][0]["rule"], "self == oldSelf");
/// ```
///
/// ```compile_fail
/// #[windlass::schema]
/// #[derive(schemars::JsonSchema)]
/// struct Backend {
///     #[schema(max_length = 63)] // `max_length` is for a string, and this is a number
///     weight: i32,
/// }
/// ```
pub use windlass_derive::schema;
#[doc(inline)]
pub use windlass_runtime::*;

/// The items that most operators use: `use windlass::prelude::*;`.
pub mod prelude {
    #[cfg(feature = "cli")]
    pub use crate::cli::FromArgs as _;
    pub use kube::{CustomResource, CustomResourceExt, Resource, ResourceExt, core::PartialObjectMeta};
    pub use windlass_apply::ApplyConfiguration;
    pub use windlass_runtime::{
        Action, AdmissionContextExt as _, AdmissionWebhookExt as _, BoxError, Context, Controller, Delta,
        Error, KindRef, Lister, Manager, ObjectKey, ObjectKeyExt as _, Objects, OperationResult, Permission,
        Predicate, Reconciler, Result, RunContext, Runnable, Selector, Verb, Watch, conditions, kind,
        owner::Owned as _,
    };
}

/// Names for the output of macros. Not part of the public API: the module changes without notice.
#[doc(hidden)]
pub mod __private {
    pub use k8s_openapi;
    pub use kube;
    pub use windlass_runtime as runtime;
}
