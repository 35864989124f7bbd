//! The context of a reconcile: reads, writes, events, time.

mod apply;
mod caches;
mod clusters;
mod create_or_update;
mod delete;
mod last_applies;
mod patch;
mod preconditions;
mod target;
mod uncertain_creates;
mod write;

use std::{marker::PhantomData, sync::Arc};

use jiff::Timestamp;
use kube_client::Client;
use kube_core::{ApiResource, DynamicObject, Resource, ResourceExt, metadata::PartialObjectMeta};
use windlass_cache::ObjectKey;

use self::write::JSON;
pub use self::{
    apply::{Applied, ApplyRequest},
    create_or_update::{OperationResult, Upserted},
    delete::DeleteRequest,
    patch::PatchRequest,
    write::{StatusRequest, StatusUpdate},
};
pub(crate) use self::{
    caches::{Caches, UndeclaredCaches},
    clusters::Clusters,
    last_applies::LastApplies,
    target::Target,
    uncertain_creates::UncertainCreates,
    write::without_nulls,
};
use crate::{
    env::Env,
    error::{Error, Result},
    events::Recorder,
    kind::Object,
    lister::Lister,
    metrics::Metrics,
    objects::Objects,
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
    /// The field manager of the controller's writes.
    pub(crate) field_manager: String,
    /// The controller's own kind, if it has one.
    pub(crate) primary: Option<ApiResource>,
    pub(crate) client: Client,
    /// The contexts of the same controller in other clusters.
    pub(crate) clusters: Clusters,
    pub(crate) caches: Arc<Caches>,
    pub(crate) recorder: Recorder,
    pub(crate) metrics: Metrics,
    pub(crate) env: Env,
    pub(crate) last_applies: Arc<LastApplies>,
    pub(crate) uncertain_creates: Arc<UncertainCreates>,
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

    /// The client, for requests that have no method here. Reads of this context see its writes, too.
    pub fn client(&self) -> &Client {
        &self.shared.client
    }

    /// Returns the controller's name, which is also the field manager of its writes unless
    /// [`Controller::field_manager`](crate::Controller::field_manager) sets another one.
    pub fn controller(&self) -> &str {
        &self.shared.controller
    }

    /// Records Events about objects.
    pub fn recorder(&self) -> &Recorder {
        &self.shared.recorder
    }

    /// The manager's metrics.
    pub fn metrics(&self) -> &Metrics {
        &self.shared.metrics
    }

    /// The time of day.
    pub fn now(&self) -> Timestamp {
        self.shared.env.now()
    }

    /// Clock and randomness.
    pub fn env(&self) -> &Env {
        &self.shared.env
    }

    /// Returns a lister of a kind.
    ///
    /// # Errors
    /// The controller declares no watch of whole objects of the kind; or `C` is [`DynamicObject`]: use [`lister_dynamic`](Self::lister_dynamic).
    pub fn lister<C: Object>(&self) -> Result<Lister<C>> {
        self.shared.caches.lister::<C>()
    }

    /// Returns a lister of a kind that is known only at run time.
    ///
    /// ```
    /// # use kube_core::{ApiResource, DynamicObject};
    /// # fn example(cx: &windlass_runtime::Context<DynamicObject>, kind: &ApiResource) -> windlass_runtime::Result<usize> {
    /// let objects = cx.lister_dynamic::<DynamicObject>(kind)?.all()?;
    /// # Ok(objects.len()) }
    /// ```
    ///
    /// # Errors
    /// The controller declares no watch of whole objects of the kind.
    pub fn lister_dynamic<C: Object>(&self, resource: &ApiResource) -> Result<Lister<C>> {
        self.shared.caches.lister_dynamic::<C>(resource)
    }

    /// Returns a lister of the watch that was named with [`Watch::named`](crate::Watch::named).
    ///
    /// # Errors
    /// The controller has no watch of whole objects of this kind with this name.
    pub fn lister_named<C: Object>(&self, watch: &str) -> Result<Lister<C>> {
        self.shared.caches.lister_named::<C>(watch)
    }

    /// Returns a lister of the metadata of a kind, from a watch of its metadata or of whole objects.
    ///
    /// # Errors
    /// The controller declares no watch of the kind.
    pub fn metadata_lister<C>(&self) -> Result<Lister<PartialObjectMeta<C>>>
    where
        C: Object + Resource<DynamicType = ()>,
    {
        self.shared.caches.metadata_lister::<C>(&ApiResource::erase::<C>(&()))
    }

    /// As [`metadata_lister`](Self::metadata_lister), of a kind that is known only at run time.
    ///
    /// # Errors
    /// The controller declares no watch of the kind.
    pub fn metadata_lister_dynamic(
        &self,
        resource: &ApiResource,
    ) -> Result<Lister<PartialObjectMeta<DynamicObject>>> {
        self.shared.caches.metadata_lister::<DynamicObject>(resource)
    }
}

impl<K: Object> Context<K> {
    /// Returns the object to reconcile, or `None` if it is gone.
    ///
    /// # Errors
    /// The object does not decode.
    pub fn get(&self, key: &ObjectKey) -> Result<Option<Arc<K>>> {
        match (K::static_kind(), &self.shared.primary) {
            (None, Some(primary)) => self.lister_dynamic::<K>(primary)?.get(key),
            _ => self.lister::<K>()?.get(key),
        }
    }

    /// As [`get`](Self::get), but returns `None` as well if the object is being deleted.
    ///
    /// # Errors
    /// The object does not decode.
    pub fn get_alive(&self, key: &ObjectKey) -> Result<Option<Arc<K>>> {
        Ok(self.get(key)?.filter(|object| object.meta().deletion_timestamp.is_none()))
    }

    /// Returns the objects of kind `C` that have an owner reference to `owner`, whether or not it is their controller.
    ///
    /// # Errors
    /// One of them does not decode, the kind is not declared, or `owner` was not read from the server.
    pub fn owned_by<C: Object>(&self, owner: &K) -> Result<Objects<C>> {
        self.lister::<C>()?.owned_by(uid_of(owner)?)
    }

    /// As [`owned_by`](Self::owned_by), of a kind that is known only at run time.
    ///
    /// # Errors
    /// As [`owned_by`](Self::owned_by).
    pub fn owned_by_dynamic<C: Object>(&self, resource: &ApiResource, owner: &K) -> Result<Objects<C>> {
        self.lister_dynamic::<C>(resource)?.owned_by(uid_of(owner)?)
    }
}

fn uid_of<K: Object>(owner: &K) -> Result<&str> {
    owner.meta().uid.as_deref().ok_or_else(|| {
        let name = owner.name_any();
        Error::setup(format!("{name}: has no uid, so it cannot own anything; use the object that was read"))
    })
}
