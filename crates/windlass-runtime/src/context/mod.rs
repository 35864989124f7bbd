//! What a reconcile is handed beside its key: reads, writes, events, time.

mod caches;
mod lister;
mod write;

use std::{marker::PhantomData, sync::Arc};

use jiff::Timestamp;
use kube_client::Client;
use kube_core::{Resource, ResourceExt};
use serde::de::DeserializeOwned;
use windlass_cache::ObjectKey;

pub use self::lister::{Lister, Objects};
pub(crate) use self::{
    caches::{Caches, KindCache},
    write::Target,
};
use crate::{
    env::Env,
    error::{Error, Result},
    events::Recorder,
};

/// What a reconcile is handed beside its key. Cheap to clone.
///
/// Reads come [from memory](Lister) and see the process's own writes; writes go to the server. A kind that is read must have been
/// declared where the controller was built.
pub struct Context<K> {
    shared: Arc<Shared>,
    kind: PhantomData<fn() -> K>,
}

/// The same for all reconciles of a controller.
pub(crate) struct Shared {
    pub(crate) controller: String,
    pub(crate) client: Client,
    pub(crate) caches: Arc<Caches>,
    pub(crate) recorder: Recorder,
    pub(crate) env: Env,
}

impl<K> Clone for Context<K> {
    fn clone(&self) -> Self {
        Self { shared: self.shared.clone(), kind: PhantomData }
    }
}

impl<K> Context<K> {
    pub(crate) fn new(shared: Arc<Shared>) -> Self {
        Self { shared, kind: PhantomData }
    }

    /// The client, for whatever has no method here. Its writes are seen by the reads of this context, too.
    pub fn client(&self) -> &Client {
        &self.shared.client
    }

    /// The controller's name, which is the field manager of its writes as well.
    pub fn controller(&self) -> &str {
        &self.shared.controller
    }

    /// Records events about objects.
    pub fn recorder(&self) -> &Recorder {
        &self.shared.recorder
    }

    /// The time of day.
    pub fn now(&self) -> Timestamp {
        self.shared.env.now()
    }

    /// Clock and randomness.
    pub fn env(&self) -> &Env {
        &self.shared.env
    }

    /// Reads another kind that the controller declared.
    pub fn lister<C>(&self) -> Result<Lister<C>>
    where
        C: Resource<DynamicType = ()> + DeserializeOwned + Send + Sync + 'static,
    {
        self.shared.caches.lister::<C>()
    }
}

impl<K> Context<K>
where
    K: Resource<DynamicType = ()> + DeserializeOwned + Send + Sync + 'static,
{
    /// The object that is to be reconciled, or `None` if it is gone.
    pub fn get(&self, key: &ObjectKey) -> Result<Option<Arc<K>>> {
        self.lister::<K>()?.get(key)
    }

    /// The same, and `None` as well if it is being deleted: for what only ever adds to a living object.
    pub fn get_alive(&self, key: &ObjectKey) -> Result<Option<Arc<K>>> {
        Ok(self.get(key)?.filter(|object| object.meta().deletion_timestamp.is_none()))
    }

    /// The objects of kind `C` that `owner` owns, as controller or with others.
    pub fn owned_by<C>(&self, owner: &K) -> Result<Objects<C>>
    where
        C: Resource<DynamicType = ()> + DeserializeOwned + Send + Sync + 'static,
    {
        let uid = owner.meta().uid.as_deref().ok_or_else(|| {
            let name = owner.name_any();
            Error::setup(format!("{name}: has no uid, so nothing can be owned by it; use what was read"))
        })?;
        self.lister::<C>()?.owned_by(uid)
    }
}
