//! The context of a reconcile: reads, writes, events, time.

mod apply;
mod caches;
mod clusters;
mod create_or_update;
mod delete;
mod known_kinds;
mod patch;
mod preconditions;
mod target;
mod typed_listers;
mod uncertain_creates;
mod write;
mod write_result;

use std::{marker::PhantomData, sync::Arc};

use jiff::Timestamp;
use kube_client::Client;
use kube_core::ApiResource;
use serde::de::DeserializeOwned;
use windlass_cache::ObjectKey;

pub use self::write::without_nulls;
pub use self::{
    apply::ApplyRequest,
    delete::DeleteRequest,
    patch::PatchRequest,
    write::StatusRequest,
    write_result::{OperationResult, WriteResult},
};
pub(crate) use self::{
    caches::{Caches, UndeclaredCaches},
    clusters::Clusters,
    known_kinds::KnownKinds,
    target::Target,
};
use crate::{
    api_reader::ApiReader, client::ApiClient, env::Env, error::Result, events::Recorder, kind::Object,
    kind_ref::IntoKind, lister::Lister, metrics::Metrics, objects::Objects,
};

/// The context of a reconcile: reads, writes, events, time. Cheap to clone.
///
/// Reads come [from memory](Lister) and see the process's own writes; writes go to the server. A kind that is read must be
/// declared where the controller is built.
pub struct Context<K> {
    shared: Arc<ControllerContext>,
    kind: PhantomData<fn() -> K>,
}

/// The part of the context that all reconciles of a controller share.
pub(crate) struct ControllerContext {
    pub(crate) controller: String,
    /// The query parameter that names the field manager of the controller's writes.
    pub(crate) field_manager: String,
    /// The kinds that the controller has written.
    pub(crate) kinds: KnownKinds,
    /// The controller's own kind.
    pub(crate) primary: Option<ApiResource>,
    pub(crate) client: Client,
    pub(crate) api: ApiClient,
    /// The contexts of the same controller in other clusters.
    pub(crate) clusters: Clusters,
    pub(crate) caches: Arc<Caches>,
    pub(crate) recorder: Recorder,
    pub(crate) metrics: Metrics,
    pub(crate) env: Env,
}

/// Returns the query parameter that names a field manager.
pub(crate) fn field_manager_parameter(name: &str) -> String {
    form_urlencoded::Serializer::new(String::new()).append_pair("fieldManager", name).finish()
}

impl<K> Clone for Context<K> {
    fn clone(&self) -> Self {
        Self { shared: self.shared.clone(), kind: PhantomData }
    }
}

impl<K> Context<K> {
    pub(crate) fn new(shared: Arc<ControllerContext>) -> Self {
        Self { shared, kind: PhantomData }
    }

    pub(crate) fn api(&self) -> &ApiClient {
        &self.shared.api
    }

    /// Returns the query parameter that names the writer.
    pub(crate) fn field_manager(&self) -> &str {
        &self.shared.field_manager
    }

    /// Returns the client, for requests that have no method here. Reads of this context see the writes of the client, too.
    pub fn client(&self) -> &Client {
        &self.shared.client
    }

    /// Returns a reader of the API server, for reads that no cache answers.
    pub fn api_reader(&self) -> ApiReader {
        ApiReader::of(self.shared.api.clone())
    }

    /// Returns the controller's name, which is also the field manager of writes unless
    /// [`Controller::field_manager`](crate::Controller::field_manager) sets a field manager.
    pub fn controller(&self) -> &str {
        &self.shared.controller
    }

    /// Records Events about objects.
    pub fn recorder(&self) -> &Recorder {
        &self.shared.recorder
    }

    /// Returns the manager's metrics.
    pub fn metrics(&self) -> &Metrics {
        &self.shared.metrics
    }

    /// Returns the time of day.
    pub fn now(&self) -> Timestamp {
        self.shared.env.now()
    }

    /// Returns the clock and randomness.
    pub fn env(&self) -> &Env {
        &self.shared.env
    }

    /// Returns a lister of a kind.
    ///
    /// # Errors
    /// The controller declares no watch of the kind; or `C` is [`DynamicObject`](kube_core::DynamicObject): use
    /// [`lister_of`](Self::lister_of).
    pub fn lister<C: Object>(&self) -> Result<Lister<C>> {
        self.shared.caches.lister::<C>()
    }

    /// Works like [`lister`](Self::lister), for any [kind](crate::KindRef): known only at run time, with only
    /// the metadata, or of the watch with a name.
    ///
    /// ```
    /// # use k8s_openapi::api::core::v1::Pod;
    /// # use kube_core::{ApiResource, DynamicObject};
    /// # use windlass_runtime::{Context, KindRef, Result, kind};
    /// # fn example(cx: &Context<DynamicObject>, resource: &ApiResource) -> Result<usize> {
    /// let objects = cx.lister_of(resource)?.all()?;
    /// let names = cx.lister_of(KindRef::dynamic(resource).metadata())?.all()?.names();
    /// let failed = cx.lister_of(kind::<Pod>().named("failed"))?.all()?;
    /// # Ok(objects.len() + names.len() + failed.len()) }
    /// ```
    ///
    /// # Errors
    /// The controller declares no such watch.
    pub fn lister_of<I>(&self, kind: I) -> Result<Lister<I::Object>>
    where
        I: IntoKind<Object: DeserializeOwned + Send + Sync + 'static>,
    {
        self.shared.caches.lister_of(&kind.into_kind())
    }
}

impl<K: Object> Context<K> {
    /// Returns the object to reconcile, or `None` if the object is gone.
    ///
    /// # Errors
    /// The object does not decode.
    pub fn get(&self, key: &ObjectKey) -> Result<Option<Arc<K>>> {
        let ControllerContext { caches, primary, kinds, .. } = &*self.shared;
        // A kind that only the object names has no lister by type.
        let lister = match (caches.known_lister::<K>(), primary) {
            (Some(lister), _) => lister,
            (None, Some(primary)) if kinds.of::<K>().is_none() => {
                caches.find_lister::<K>(primary, None, K::metadata_api())?
            }
            (None, _) => self.lister::<K>()?,
        };
        lister.get(key)
    }

    /// Works like [`get`](Self::get), but returns `None` as well if the object is terminating.
    ///
    /// # Errors
    /// The object does not decode.
    pub fn get_not_terminating(&self, key: &ObjectKey) -> Result<Option<Arc<K>>> {
        Ok(self.get(key)?.filter(|object| object.meta().deletion_timestamp.is_none()))
    }

    /// Returns the objects of kind `C` that have an owner reference to `owner`, whether or not `owner` is the controller of the object. For
    /// a kind without a Rust type: [`lister_of(&resource)`](Self::lister_of)[`.owned_by(&owner)`](Lister::owned_by).
    ///
    /// # Errors
    /// An object does not decode, the kind is not declared, or `owner` was not read from the server.
    pub fn owned_by<C: Object>(&self, owner: &K) -> Result<Objects<C>> {
        self.lister::<C>()?.owned_by(owner)
    }
}
