//! Changes and reads of the test: the world outside of the reconciler.

use kube_core::{ApiResource, DynamicObject, Resource};
use parking_lot::MutexGuard;
use serde::{Serialize, de::DeserializeOwned};
use serde_json::Value;
use windlass_runtime::ObjectKey;

use super::{
    FakeCluster, metadata,
    operation::{Operation, Part},
    owners::Manager,
    server::State,
};
use windlass_runtime::{Object, detached::GroupResource};

impl FakeCluster {
    /// Returns the object of kind `K` that the server holds under a key.
    ///
    /// # Panics
    /// If the object does not decode.
    #[track_caller]
    pub fn get<K: Object + Resource<DynamicType = ()>>(&self, key: &ObjectKey) -> Option<K> {
        self.read(&resource_of::<K>(), key)
    }

    /// Works like [`get`](Self::get), for a kind that is known only at run time.
    #[track_caller]
    pub fn get_of(&self, resource: &ApiResource, key: &ObjectKey) -> Option<DynamicObject> {
        self.read(resource, key)
    }

    fn read<K: DeserializeOwned>(&self, resource: &ApiResource, key: &ObjectKey) -> Option<K> {
        let object = self.server.state.lock().storage.get(&GroupResource::of(resource), key).cloned();
        object.map(|object| decode(resource, object))
    }

    /// Returns the objects of kind `K`, sorted by key.
    ///
    /// # Panics
    /// If an object does not decode.
    #[track_caller]
    pub fn list<K: Object + Resource<DynamicType = ()>>(&self) -> Vec<K> {
        self.read_all(&resource_of::<K>())
    }

    /// Works like [`list`](Self::list), for a kind that is known only at run time.
    #[track_caller]
    pub fn list_of(&self, resource: &ApiResource) -> Vec<DynamicObject> {
        self.read_all(resource)
    }

    fn read_all<K: DeserializeOwned>(&self, resource: &ApiResource) -> Vec<K> {
        let state = self.server.state.lock();
        let objects: Vec<Value> =
            state.storage.list(&GroupResource::of(resource)).map(|(_, object)| object.clone()).collect();
        drop(state);
        objects.into_iter().map(|object| decode(resource, object)).collect()
    }

    /// Puts an object into the cluster, and replaces an object of the same name. Returns the stored object.
    ///
    /// Unlike a create, an insert keeps the status, and a given uid, creation time, generation and deletion
    /// time.
    ///
    /// # Panics
    /// If the object has no name, does not serialize, or is dynamic and names no kind.
    #[track_caller]
    pub fn insert<K: Object + Serialize>(&self, object: K) -> K {
        let types = object.type_meta().expect("a dynamic object names its `apiVersion` and `kind`");
        let mut state = self.server.state.lock();
        let resource = K::static_kind()
            .map_or_else(|| state.storage.resource_of(&types.api_version, &types.kind), |kind| kind.resource);
        state.storage.learn(&resource);
        let mut json = to_json(&object);
        assert!(!metadata::text(&json, "name").is_empty(), "an object that is inserted has a name");
        json["apiVersion"] = types.api_version.into();
        json["kind"] = types.kind.into();
        metadata::complete(&mut json, &self.server.env).expect("metadata is a JSON object");
        let stored = state.storage.put(&GroupResource::of(&resource), json, &test());
        drop(state);
        decode(&resource, stored)
    }

    /// Changes an object, including the status. Returns the stored object.
    ///
    /// ```
    /// use k8s_openapi::api::core::v1::Pod;
    /// use windlass_runtime::ObjectKey;
    /// use windlass_test::fake::FakeCluster;
    ///
    /// fn pod_runs(fake: &FakeCluster, key: &ObjectKey) {
    ///     fake.update(key, |pod: &mut Pod| {
    ///         pod.status.get_or_insert_default().phase = Some("Running".to_owned());
    ///     });
    /// }
    /// ```
    ///
    /// # Panics
    /// There is no such object, or the object does not decode.
    #[track_caller]
    pub fn update<K>(&self, key: &ObjectKey, change: impl FnOnce(&mut K)) -> K
    where
        K: Object + Resource<DynamicType = ()> + Serialize,
    {
        let resource = resource_of::<K>();
        let mut object: K = self.existing(&resource, key);
        change(&mut object);
        let json = to_json(&object);
        let stored = self.operate(&resource, |operation| operation.replace(key, Part::Everything, &json));
        match stored {
            Ok(stored) => decode(&resource, stored),
            Err(status) => panic!("updating {} {key}: {status}", resource.kind),
        }
    }

    /// Deletes an object like `kubectl delete`: an object with finalizers stays, with a deletion time.
    ///
    /// # Panics
    /// If there is no such object.
    #[track_caller]
    pub fn delete<K: Object + Resource<DynamicType = ()>>(&self, key: &ObjectKey) {
        let resource = resource_of::<K>();
        if let Err(status) =
            self.operate(&resource, |operation| operation.delete(key, &Value::Null).map(drop))
        {
            panic!("deleting {} {key}: {status}", resource.kind);
        }
    }

    /// Removes an object at once, regardless of finalizers. Returns the last state, or `None` for a missing
    /// object.
    ///
    /// # Panics
    /// If the object does not decode.
    #[track_caller]
    pub fn remove<K: Object + Resource<DynamicType = ()>>(&self, key: &ObjectKey) -> Option<K> {
        let resource = resource_of::<K>();
        let removed = self.operate(&resource, |operation| operation.remove(key, &Value::Null));
        removed.map(|object| decode(&resource, object))
    }

    #[track_caller]
    fn existing<K: DeserializeOwned>(&self, resource: &ApiResource, key: &ObjectKey) -> K {
        self.read(resource, key).unwrap_or_else(|| panic!("there is no {} {key}", resource.kind))
    }

    fn operate<R>(&self, resource: &ApiResource, write: impl FnOnce(&mut Operation<'_>) -> R) -> R {
        let mut state: MutexGuard<'_, State> = self.server.state.lock();
        state.storage.learn(resource);
        write(&mut Operation {
            storage: &mut state.storage,
            env: &self.server.env,
            resource: &GroupResource::of(resource),
            manager: &test(),
            dry_run: false,
            collects_garbage: self.server.collects_garbage,
        })
    }
}

/// Returns the field manager of the test's writes.
fn test() -> Manager {
    Manager { name: "test".to_owned(), subresource: None, applies: false }
}

fn resource_of<K: Resource<DynamicType = ()>>() -> ApiResource {
    ApiResource::erase::<K>(&())
}

#[track_caller]
fn to_json<K: Serialize>(object: &K) -> Value {
    serde_json::to_value(object).unwrap_or_else(|error| panic!("the object does not serialize: {error}"))
}

#[track_caller]
fn decode<K: DeserializeOwned>(resource: &ApiResource, object: Value) -> K {
    let name = metadata::key_of(&object);
    serde_json::from_value(object)
        .unwrap_or_else(|error| panic!("{} {name} does not decode: {error}", resource.kind))
}
