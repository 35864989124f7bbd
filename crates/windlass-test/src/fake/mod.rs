//! Unit tests of a reconciler, without a cluster.
//!
//! A [`FakeCluster`] is an API server in memory: the cluster makes a [`Context`](windlass_runtime::Context), records the
//! context's writes, and refuses requests on demand.
//!
//! ```
//! use k8s_openapi::api::core::v1::{ConfigMap, Secret};
//! use kube_core::ObjectMeta;
//! use windlass_runtime::{
//!     Action, Context, ObjectKey, Result,
//!     owner::Owned,
//! };
//! use windlass_test::{Fault, fake::FakeCluster};
//!
//! // The reconciler: each ConfigMap has a Secret of its name.
//! async fn reconcile(key: ObjectKey, cx: Context<ConfigMap>) -> Result<Action> {
//!     let Some(parent) = cx.get_not_terminating(&key)? else { return Ok(Action::done()) };
//!     if cx.owned_by::<Secret>(&parent)?.is_empty() {
//!         let secret = Secret { metadata: named(key.name()), ..Secret::default() };
//!         cx.create(secret.controlled_by(parent.as_ref())?).await?;
//!     }
//!     Ok(Action::done())
//! }
//!
//! fn named(name: &str) -> ObjectMeta {
//!     ObjectMeta { name: Some(name.to_owned()), namespace: Some("default".to_owned()), ..ObjectMeta::default() }
//! }
//!
//! # #[tokio::main(flavor = "current_thread")]
//! # async fn main() -> Result<()> {
//! let fake = FakeCluster::new([ConfigMap { metadata: named("a"), ..ConfigMap::default() }]);
//! let key = ObjectKey::namespaced("default", "a");
//!
//! fake.inject(Fault::Forbidden.on_create::<Secret>());
//! let error = reconcile(key.clone(), fake.context()).await.unwrap_err();
//! assert!(error.is_forbidden());
//!
//! reconcile(key.clone(), fake.context()).await?;
//! assert_eq!(fake.take_writes(), ["create Secret default/a"]);
//!
//! // A write is read back: the second reconcile has nothing to do.
//! reconcile(key, fake.context()).await?;
//! assert!(fake.writes().is_empty());
//! # Ok(()) }
//! ```
//!
//! # Like a server
//!
//! - A context reads from caches that show every change at once, and [`Context::client`](windlass_runtime::Context::client) sends any other
//!   request to the same objects.
//! - Uids, resource versions, generations, creation times and generated names are assigned, and are the same in every run.
//! - A create of an existing name is refused with `AlreadyExists`; an update with a stale resource version, or of a successor, with
//!   `Conflict`; a failing test of a JSON patch with `Invalid`. A write that changes nothing keeps the resource version.
//! - Every kind has a status subresource: writes of an object leave the status alone, and writes of the
//!   status leave everything else alone. The status of a new object is dropped.
//! - A deleted object with finalizers stays, with a deletion time, until the last one is removed.
//! - Server-side apply knows the owners of fields: an apply without force of a field that another manager
//!   owns is refused with the manager's name, a forced apply takes the field over, and a field that a manager
//!   leaves out is removed unless another manager owns the field. Updates and other patches own the changed
//!   fields; fields that the test writes belong to the manager `test`.
//! - Label selectors, field selectors over any field, dry runs, and the subresources `status`, `scale` and `finalize` work.
//!
//! # Unlike a server
//!
//! - Objects are neither validated nor defaulted, and any kind can be written; a namespace need not exist.
//!   Test the CRD's schema with [`TestCluster`](crate::TestCluster).
//! - There are no controllers: pods do not change, and are gone when deleted. Dependents of a deleted object
//!   stay, unless the fake is built with [`collect_garbage`](FakeClusterBuilder::collect_garbage).
//! - There are no watches, and no RBAC.
//! - A strategic merge patch and server-side apply merge lists of objects by the first of the fields `name`, `type`, `uid`,
//!   `mountPath` and `containerPort` that all items have, and replace other lists: the kinds' schemas are not known here. Objects have
//!   no `managedFields`, and a conflict does not say when an update was.

mod builder;
mod cluster;
mod collection;
mod event;
mod fault;
mod metadata;
mod operation;
mod owners;
mod patch;
mod request;
mod scale;
mod selector;
mod server;
mod status;
mod storage;
mod world;
mod write;

#[cfg(test)]
mod tests;

pub use self::{
    builder::FakeClusterBuilder,
    cluster::FakeCluster,
    event::Event,
    write::{Verb, Write},
};
