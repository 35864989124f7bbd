//! What follows from a written definition: names are accepted, versions served, instances cleaned up.

use std::collections::BTreeMap;
use std::sync::Arc;

use serde_json::Value;

use crate::api::Api;
use crate::crd;
use crate::meta;
use crate::resource::{Resource, ResourceTable};
use crate::store::{ResourceId, Stored};

/// What is served for each definition, by the revision it was read at.
#[derive(Default)]
pub(crate) struct Definitions {
    served: BTreeMap<String, (u64, Vec<Arc<Resource>>)>,
}

fn definitions_id() -> ResourceId {
    ResourceId::new("apiextensions.k8s.io", "customresourcedefinitions")
}

impl Api {
    /// Serves the definitions that the store holds already.
    pub(crate) fn load_definitions(self: &Arc<Self>) {
        let mut definitions = self.definitions.lock();
        self.publish(&mut definitions);
    }

    /// Called after every write, with the object written (the last one, if it was removed).
    pub(crate) fn committed(self: &Arc<Self>, resource: &Resource, object: &Value) {
        if resource.storage == definitions_id() {
            self.definition_changed(meta::name(object));
        } else if resource.is_custom() && self.is_terminating(resource) {
            self.definition_changed(&resource.storage.to_string());
        }
    }

    /// Whether the definition of a resource is on its way out by now, whatever it was when the request came.
    fn is_terminating(&self, resource: &Resource) -> bool {
        let table = self.table.load();
        let now = table.resource(&resource.group, &resource.version, &resource.plural);
        now.and_then(|now| now.custom.as_ref()).is_some_and(|custom| custom.terminating)
    }

    /// Brings everything in line with a definition that was written or removed.
    fn definition_changed(self: &Arc<Self>, name: &str) {
        let mut definitions = self.definitions.lock();
        let id = definitions_id();
        match self.store.view().get(&id, name) {
            Some(stored) if meta::is_deleting(&stored.value) => {
                // Nobody may create instances any more: then they can be counted.
                self.publish(&mut definitions);
                self.clean_up(name, &stored);
            }
            Some(_) => {}
            None => self.drop_instances(&definitions, name),
        }
        self.accept_names();
        self.publish(&mut definitions);
    }

    /// Settles the names of all definitions: one that came or went may free names for others.
    fn accept_names(&self) {
        let id = definitions_id();
        let now = self.env.now_rfc3339();
        let view = self.store.view();
        let names: Vec<String> = view.range(&id, None).map(|(key, _)| key.to_string()).collect();
        for name in names {
            // A race with another writer of the definition is followed by that writer's own call.
            self.rewrite(&name, |definition| {
                let view = self.store.view();
                crd::accept(definition, view.range(&id, None).map(|(_, other)| &other.value), &now);
            });
        }
    }

    /// Writes a definition again if `change` changes it.
    fn rewrite(&self, name: &str, change: impl Fn(&mut Value)) {
        let id = definitions_id();
        while let Some(current) = self.store.view().get(&id, name) {
            let mut value = current.value.clone();
            change(&mut value);
            if value == current.value || self.store.commit(&id, name, Some(current.rv), Some(value)).is_ok() {
                return;
            }
        }
    }

    /// Removes the instances of a definition on its way out, and the definition itself once none is left.
    fn clean_up(&self, name: &str, definition: &Stored) {
        let plural =
            definition.value.pointer("/spec/names/plural").and_then(Value::as_str).unwrap_or_default();
        let group = definition.value.pointer("/spec/group").and_then(Value::as_str).unwrap_or_default();
        let instances = ResourceId::new(group, plural);
        // Names that were never accepted are another definition's.
        if crd::is_established(&definition.value) {
            for (key, instance) in self.store.view().range(&instances, None) {
                self.remove_instance(&instances, key, instance);
            }
            if self.store.view().count(&instances) > 0 {
                return;
            }
        }
        let id = definitions_id();
        while let Some(current) = self.store.view().get(&id, name) {
            let left: Vec<String> = meta::finalizers(&current.value)
                .filter(|finalizer| *finalizer != crd::CLEANUP_FINALIZER)
                .map(str::to_owned)
                .collect();
            let write = if left.is_empty() {
                None
            } else {
                let mut value = current.value.clone();
                meta::set_finalizers(&mut value, &left);
                Some(value).filter(|value| *value != current.value)
            };
            if write.is_none() && !left.is_empty() {
                return;
            }
            let gone = write.is_none();
            if self.store.commit(&id, name, Some(current.rv), write).is_ok() {
                if gone {
                    self.store.forget(&instances);
                }
                return;
            }
        }
    }

    /// Deletes an instance, or marks it if finalizers hold it.
    fn remove_instance(&self, id: &ResourceId, key: &str, instance: &Arc<Stored>) {
        let mut current = Some(Arc::clone(instance));
        while let Some(stored) = current {
            let held = meta::finalizers(&stored.value).next().is_some();
            if held && meta::is_deleting(&stored.value) {
                return;
            }
            let write = held.then(|| {
                let mut value = stored.value.clone();
                meta::set(&mut value, "deletionTimestamp", Some(self.env.now_rfc3339().into()));
                meta::set(&mut value, "deletionGracePeriodSeconds", Some(0.into()));
                value
            });
            if self.store.commit(id, key, Some(stored.rv), write).is_ok() {
                return;
            }
            current = self.store.view().get(id, key);
        }
    }

    /// What a definition leaves that was removed in spite of its finalizer.
    fn drop_instances(&self, definitions: &Definitions, name: &str) {
        for resource in definitions.served.get(name).into_iter().flat_map(|(_, resources)| resources).take(1)
        {
            self.store.forget(&resource.storage);
        }
    }

    /// Serves what the definitions now say.
    fn publish(&self, definitions: &mut Definitions) {
        let view = self.store.view();
        let id = definitions_id();
        definitions.served.retain(|name, _| view.get(&id, name).is_some());
        let mut table = ResourceTable::clone(&self.builtin);
        for (name, stored) in view.range(&id, None) {
            let known = definitions.served.get(&**name).filter(|(revision, _)| *revision == stored.rv);
            let resources = if let Some((_, resources)) = known {
                resources.clone()
            } else {
                let resources: Vec<_> = crd::resources(&stored.value).into_iter().map(Arc::new).collect();
                definitions.served.insert(name.to_string(), (stored.rv, resources.clone()));
                resources
            };
            for resource in resources {
                let group = resource.group.clone();
                table.insert(resource);
                table.sort_versions(&group);
            }
        }
        self.table.store(Arc::new(table));
    }
}
