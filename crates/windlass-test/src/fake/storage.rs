//! The objects of the fake API server, and the caches that show them.

use std::collections::BTreeMap;

use kube_core::{ApiResource, GroupVersionKind};
use serde_json::Value;
use windlass_runtime::{ObjectKey, RawObject};

use super::{
    metadata,
    owners::{Manager, Owners},
    selector::FieldSelector,
};
use windlass_runtime::{
    Error, Result,
    detached::{GroupResource, admits, field_selector},
    informer::{CacheOptions, SharedInformer, SharedInformerFactory},
};

/// The objects of the fake API server, and the caches that show them.
pub(super) struct Storage {
    kinds: BTreeMap<GroupResource, ApiResource>,
    objects: BTreeMap<GroupResource, BTreeMap<ObjectKey, Value>>,
    /// The owners of the fields of each object, by uid.
    owners: BTreeMap<String, Owners>,
    revision: u64,
    /// Makes the caches. The factory is never started: each commit feeds the caches.
    informers: SharedInformerFactory,
}

impl Storage {
    pub(super) fn new(informers: SharedInformerFactory) -> Self {
        Self {
            kinds: BTreeMap::new(),
            objects: BTreeMap::new(),
            owners: BTreeMap::new(),
            revision: 0,
            informers,
        }
    }

    /// Registers the names of a kind with an unknown resource.
    pub(super) fn learn(&mut self, resource: &ApiResource) {
        self.kinds.entry(GroupResource::of(resource)).or_insert_with(|| resource.clone());
    }

    /// Returns the names of a resource. For an unregistered resource, the plural is the kind.
    pub(super) fn kind_of(&self, resource: &GroupResource) -> ApiResource {
        self.kinds.get(resource).cloned().unwrap_or_else(|| ApiResource {
            group: resource.group.clone(),
            version: String::new(),
            api_version: String::new(),
            kind: resource.resource.clone(),
            plural: resource.resource.clone(),
        })
    }

    /// Returns the resource of a kind. The plural of an unregistered kind is guessed.
    pub(super) fn resource_of(&self, api_version: &str, kind: &str) -> ApiResource {
        let (group, version) = api_version.split_once('/').unwrap_or(("", api_version));
        let known = self.kinds.values().find(|known| known.group == group && known.kind == kind);
        let plural = known.map(|known| known.plural.clone());
        let mut resource = ApiResource::from_gvk(&GroupVersionKind::gvk(group, version, kind));
        resource.plural = plural.unwrap_or(resource.plural);
        resource
    }

    pub(super) fn revision(&self) -> u64 {
        self.revision
    }

    pub(super) fn get(&self, resource: &GroupResource, key: &ObjectKey) -> Option<&Value> {
        self.objects.get(resource)?.get(key)
    }

    /// Returns the objects of a resource, sorted by key.
    pub(super) fn list(&self, resource: &GroupResource) -> impl Iterator<Item = (&ObjectKey, &Value)> {
        self.objects.get(resource).into_iter().flatten()
    }

    /// Returns all objects.
    pub(super) fn all(&self) -> impl Iterator<Item = (&GroupResource, &ObjectKey, &Value)> {
        self.objects
            .iter()
            .flat_map(|(resource, objects)| objects.iter().map(move |(key, object)| (resource, key, object)))
    }

    /// Stores an object at the next resource version. The fields that changed belong to `manager`.
    pub(super) fn put(&mut self, resource: &GroupResource, mut object: Value, manager: &Manager) -> Value {
        let uid = metadata::text(&object, "uid").to_owned();
        let old = self.get(resource, &metadata::key_of(&object));
        let old = old.filter(|old| metadata::text(old, "uid") == uid).cloned().unwrap_or_default();
        self.owners.entry(uid).or_default().written(manager, &old, &object);
        self.revision += 1;
        object["metadata"]["resourceVersion"] = self.revision.to_string().into();
        let key = metadata::key_of(&object);
        self.objects.entry(resource.clone()).or_default().insert(key, object.clone());
        self.publish(resource, &object, true);
        object
    }

    /// Removes an object, and returns the last state.
    pub(super) fn remove(&mut self, resource: &GroupResource, key: &ObjectKey) -> Option<Value> {
        let last = self.objects.get_mut(resource)?.remove(key)?;
        self.revision += 1;
        self.owners.remove(metadata::text(&last, "uid"));
        let mut event = last.clone();
        event["metadata"]["resourceVersion"] = self.revision.to_string().into();
        self.publish(resource, &event, false);
        Some(last)
    }

    /// Returns the owners of the fields of an object.
    pub(super) fn owners(&self, uid: &str) -> Owners {
        self.owners.get(uid).cloned().unwrap_or_default()
    }

    pub(super) fn set_owners(&mut self, uid: &str, owners: Owners) {
        self.owners.insert(uid.to_owned(), owners);
    }

    /// Returns a cache of a resource. The cache shows every change at once.
    pub(super) fn informer(&self, resource: &ApiResource, options: CacheOptions) -> Result<SharedInformer> {
        let informer = self
            .informers
            .share(resource, options)
            .map_err(|error| Error::other(format!("{}: {error}", resource.kind)))?;
        if !informer.has_synced() {
            let resource = GroupResource::of(resource);
            let held = self.list(&resource).filter(|(_, object)| holds(&informer, object));
            let held: Vec<String> = held.map(|(_, object)| object.to_string()).collect();
            informer.fill(held.iter().map(String::as_bytes), self.revision);
        }
        Ok(informer)
    }

    /// Shows a change in the caches of the resource.
    fn publish(&self, resource: &GroupResource, object: &Value, exists: bool) {
        for informer in self.informers.informers() {
            // The storage fills an unsynced cache before the first use.
            if GroupResource::of(informer.resource()) == *resource && informer.has_synced() {
                let exists = exists && holds(&informer, object);
                informer.update(object.to_string().as_bytes(), exists, self.revision);
            }
        }
    }
}

/// Returns whether a cache holds an object.
fn holds(informer: &SharedInformer, object: &Value) -> bool {
    let Ok(raw) = RawObject::from_json(object.to_string().as_bytes()) else { return false };
    let options = informer.options();
    admits(options, &raw).unwrap_or_else(|| {
        let selector = field_selector(options).unwrap_or_default();
        FieldSelector::parse(selector).is_ok_and(|selector| selector.matches(object))
    })
}
