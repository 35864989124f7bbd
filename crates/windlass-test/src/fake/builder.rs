//! Builds a [`FakeCluster`].

use jiff::Timestamp;
use kube_core::{ApiResource, Resource};
use serde::Serialize;

use super::FakeCluster;
use windlass_runtime::{Object, env::Env};

/// The first instant of 2026.
const START: i64 = 1_767_225_600;

/// Builds a [`FakeCluster`].
#[must_use]
pub struct FakeClusterBuilder {
    pub(super) env: Env,
    pub(super) controller: Option<String>,
    pub(super) collects_garbage: bool,
    pub(super) kinds: Vec<ApiResource>,
    objects: Vec<Insert>,
}

/// Inserts an object into the finished cluster.
type Insert = Box<dyn FnOnce(&FakeCluster)>;

impl FakeClusterBuilder {
    pub(super) fn new() -> Self {
        Self {
            env: Env::new(0, || Timestamp::from_second(START).unwrap_or_default()),
            controller: None,
            collects_garbage: false,
            kinds: Vec::new(),
            objects: Vec::new(),
        }
    }

    /// Adds an object, as [`FakeCluster::insert`] does.
    pub fn object<K: Object + Serialize>(self, object: K) -> Self {
        self.objects([object])
    }

    /// Adds objects, in this order.
    pub fn objects<K: Object + Serialize>(mut self, objects: impl IntoIterator<Item = K>) -> Self {
        for object in objects {
            self.objects.push(Box::new(move |fake| drop(fake.insert(object))));
        }
        self
    }

    /// Registers a kind. Needed only for dynamic objects of a kind with an irregular plural.
    pub fn kind<K: Object + Resource<DynamicType = ()>>(self) -> Self {
        self.kind_of(ApiResource::erase::<K>(&()))
    }

    /// Works like [`kind`](Self::kind), for a kind that is known only at run time.
    pub fn kind_of(mut self, resource: ApiResource) -> Self {
        self.kinds.push(resource);
        self
    }

    /// Sets clock and randomness, the source of uids, generated names and timestamps. Default: a fixed seed,
    /// and a clock that stands at 2026-01-01T00:00:00Z.
    pub fn env(mut self, env: Env) -> Self {
        self.env = env;
        self
    }

    /// Sets the name of the controller: the field manager of the controller's writes. Default: the kind in
    /// lower case.
    pub fn controller_name(mut self, name: impl Into<String>) -> Self {
        self.controller = Some(name.into());
        self
    }

    /// Deletes the dependents of an object together with the object. In a cluster, the garbage collector
    /// deletes dependents later. Default: dependents stay.
    pub fn collect_garbage(mut self) -> Self {
        self.collects_garbage = true;
        self
    }

    /// Builds the fake cluster.
    ///
    /// # Panics
    /// Outside of a tokio runtime, or as [`FakeCluster::insert`].
    pub fn build(mut self) -> FakeCluster {
        let objects = std::mem::take(&mut self.objects);
        let fake = FakeCluster::build(self);
        objects.into_iter().for_each(|insert| insert(&fake));
        fake
    }
}

impl std::fmt::Debug for FakeClusterBuilder {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("FakeClusterBuilder").field("objects", &self.objects.len()).finish_non_exhaustive()
    }
}
