//! What follows from a written CustomResourceDefinition: its names are accepted, its versions served, and its instances
//! cleaned up when it goes.

use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use serde_json::{Map, Value};
use tokio::sync::Mutex;

use crate::crd::{self, Names};
use crate::meta;
use crate::resource::{Resource, ServedResources, custom};
use crate::state::State;
use crate::store::{Rejected, ResourceId, Stored, View, Write};

/// What was made of the definitions so far.
#[derive(Default)]
pub(crate) struct Definitions {
    known: Mutex<Known>,
    /// Set while a definition is terminating when the server starts: nobody else will clean up behind it.
    resume: AtomicBool,
}

#[derive(Default)]
struct Known {
    definitions: BTreeMap<String, Definition>,
    /// The definitions of each group.
    groups: HashMap<String, BTreeSet<String>>,
}

/// One definition, at the revision at which it was last looked at.
struct Definition {
    rv: u64,
    group: String,
    names: Names,
    /// Names were refused: they may be free later.
    has_conflict: bool,
    /// What its resources are a function of.
    served_by: Value,
    resources: Vec<Arc<Resource>>,
}

/// Where definitions are stored.
pub(crate) fn id() -> ResourceId {
    ResourceId::new("apiextensions.k8s.io", "customresourcedefinitions")
}

/// Serves the definitions that the store holds when the server starts.
pub(crate) fn load(state: &State) {
    let Ok(mut known) = state.definitions.known.try_lock() else { return };
    let view = state.store.view();
    let mut served = ServedResources::clone(&state.served.load());
    for (name, stored) in view.range(&id(), None) {
        known.learn(state, &mut served, name, stored, &stored.value());
        if stored.is_terminating() {
            state.definitions.resume.store(true, Ordering::Release);
        }
    }
    state.served.store(Arc::new(served));
}

/// Called after every write of an object of `resource`.
pub(crate) async fn committed(state: &Arc<State>, resource: &Resource, key: &str) {
    if resource.storage == id() {
        settle(state, key.to_owned()).await;
    } else if let Some(custom) = &resource.custom {
        let view = state.store.view();
        let definition = view.get(&id(), &custom.definition);
        if definition.is_some_and(|definition| definition.is_terminating()) {
            settle(state, custom.definition.clone()).await;
        }
    }
}

/// Cleans up behind definitions that were terminating when the server started.
pub(crate) async fn resume(state: &Arc<State>) {
    if !state.definitions.resume.swap(false, Ordering::AcqRel) {
        return;
    }
    let view = state.store.view();
    for (name, stored) in view.range(&id(), None) {
        if stored.is_terminating() {
            settle(state, name.to_string()).await;
        }
    }
}

/// Brings what is served in line with all definitions, `name` among them whether it changed or not.
///
/// This goes on if the request that caused it is abandoned.
async fn settle(state: &Arc<State>, name: String) {
    let state = Arc::clone(state);
    let work = async move {
        let mut known = state.definitions.known.lock().await;
        known.settle(&state, &name).await;
    };
    if let Err(error) = tokio::spawn(work).await {
        tracing::error!(%error, "a CustomResourceDefinition was stored, but what it defines was not served");
    }
}

impl Known {
    async fn settle(&mut self, state: &State, name: &str) {
        let mut changed = BTreeSet::from([name.to_owned()]);
        while !changed.is_empty() {
            for name in std::mem::take(&mut changed) {
                let freed = self.settle_one(state, &name).await;
                changed.extend(freed.into_iter().filter(|other| *other != name));
            }
            changed.extend(self.outdated(&state.store.view()));
        }
    }

    /// The definitions that were written or removed since they were last looked at.
    fn outdated(&self, view: &View) -> Vec<String> {
        let id = id();
        let written = view.range(&id, None).filter(|(name, stored)| {
            self.definitions.get(&***name).is_none_or(|known| known.rv != stored.rv)
        });
        let gone = self.definitions.keys().filter(|name| view.get(&id, name).is_none());
        written.map(|(name, _)| name.to_string()).chain(gone.cloned()).collect()
    }

    /// Settles one definition. Returns others of its group whose names may be free by now.
    async fn settle_one(&mut self, state: &State, name: &str) -> Vec<String> {
        let view = state.store.view();
        let Some(stored) = view.get(&id(), name) else {
            return self.forget(state, name);
        };
        let mut definition = stored.value();
        let before = definition.clone();
        self.accept_names(&mut definition, name, &state.env.now_rfc3339());
        let mut stored = Arc::clone(stored);
        if definition != before {
            match rewrite(state, name, &stored, Some(&definition)).await {
                Ok(written) => stored = written,
                Err(_) => return vec![name.to_owned()],
            }
        }
        let freed = self.learn_and_publish(state, name, &stored, &definition);
        if stored.is_terminating() {
            clean_up(state, name, &definition).await;
        }
        freed
    }

    fn accept_names(&self, definition: &mut Value, name: &str, now: &str) {
        let group = crd::text(definition, &["spec", "group"]).to_owned();
        let others: Vec<&Names> = self
            .groups
            .get(&group)
            .into_iter()
            .flatten()
            .filter(|other| *other != name)
            .filter_map(|other| self.definitions.get(other))
            .map(|other| &other.names)
            .collect();
        crd::accept(definition, &others, now);
    }

    fn learn_and_publish(
        &mut self,
        state: &State,
        name: &str,
        stored: &Arc<Stored>,
        value: &Value,
    ) -> Vec<String> {
        let mut served = ServedResources::clone(&state.served.load());
        let freed = self.learn(state, &mut served, name, stored, value);
        state.served.store(Arc::new(served));
        freed
    }

    /// Takes note of a definition and serves its resources. Returns others whose names may be free by now.
    fn learn(
        &mut self,
        state: &State,
        served: &mut ServedResources,
        name: &str,
        stored: &Arc<Stored>,
        value: &Value,
    ) -> Vec<String> {
        let group = crd::text(value, &["spec", "group"]).to_owned();
        let served_by = what_is_served(value);
        let names = Names::accepted(value);
        let old = self.definitions.remove(name);
        let freed = old.as_ref().is_some_and(|old| old.names != names);
        let resources = match &old {
            Some(old) if old.served_by == served_by => old.resources.clone(),
            _ => custom::resources(stored, value),
        };
        let changed = old.as_ref().is_none_or(|old| old.served_by != served_by);
        let definition = Definition {
            rv: stored.rv,
            group: group.clone(),
            names,
            has_conflict: !crd::condition_is_true(value, "NamesAccepted"),
            served_by,
            resources,
        };
        self.definitions.insert(name.to_owned(), definition);
        self.groups.entry(group.clone()).or_default().insert(name.to_owned());
        if changed {
            if let Some(old) = &old {
                retire(state, &old.resources);
            }
            self.publish_group(state, served, &group);
        }
        if freed { self.waiting(&group, name) } else { Vec::new() }
    }

    /// Forgets a definition that is gone, and the instances that it left if its finalizer was removed by hand.
    fn forget(&mut self, state: &State, name: &str) -> Vec<String> {
        let Some(old) = self.definitions.remove(name) else { return Vec::new() };
        if let Some(names) = self.groups.get_mut(&old.group) {
            names.remove(name);
            if names.is_empty() {
                self.groups.remove(&old.group);
            }
        }
        let mut served = ServedResources::clone(&state.served.load());
        self.publish_group(state, &mut served, &old.group);
        state.served.store(Arc::new(served));
        retire(state, &old.resources);
        if let Some(resource) = old.resources.first() {
            state.store.forget(&resource.storage);
        }
        self.waiting(&old.group, name)
    }

    /// The definitions of a group, but for one, that wait for names.
    fn waiting(&self, group: &str, but_for: &str) -> Vec<String> {
        let names = self.groups.get(group).into_iter().flatten().filter(|name| *name != but_for);
        let waits = |name: &&String| self.definitions.get(*name).is_some_and(|known| known.has_conflict);
        names.filter(waits).cloned().collect()
    }

    fn publish_group(&self, state: &State, served: &mut ServedResources, group: &str) {
        let names = self.groups.get(group).into_iter().flatten();
        let definitions = names.filter_map(|name| self.definitions.get(name));
        let resources = definitions.flat_map(|definition| definition.resources.iter().cloned()).collect();
        served.replace_group(group, state.builtin.group(group), resources);
    }
}

/// The part of a definition that its resources are a function of.
fn what_is_served(definition: &Value) -> Value {
    let mut part = Map::new();
    part.insert("uid".into(), meta::uid(definition).into());
    part.insert("spec".into(), definition.get("spec").cloned().unwrap_or_default());
    part.insert("acceptedNames".into(), definition["status"]["acceptedNames"].clone());
    part.insert("established".into(), crd::is_established(definition).into());
    Value::Object(part)
}

/// Ends the watches of resources that are not served any more, or not in this way.
fn retire(state: &State, resources: &[Arc<Resource>]) {
    for resource in resources {
        if let Some(custom) = &resource.custom {
            custom.retired.store(true, Ordering::Release);
            state.store.log(&resource.storage).wake();
        }
    }
}

/// Writes a definition again, or removes it.
async fn rewrite(
    state: &State,
    name: &str,
    current: &Stored,
    object: Option<&Value>,
) -> Result<Arc<Stored>, Rejected> {
    let id = id();
    let now = state.env.now();
    let served = state.builtin.resource(&id.group, "v1", &id.resource);
    let draft = object.zip(served).map(|(object, served)| served.draft(object, state.store.labels(), now));
    let write = Write { id: &id, key: name, expected: Some(current.rv), draft, now };
    state.store.commit(write, |_| Ok(())).await
}

/// Removes the instances of a terminating definition, and the definition itself once none is left.
async fn clean_up(state: &State, name: &str, definition: &Value) {
    let group = crd::text(definition, &["spec", "group"]);
    let instances = ResourceId::new(group, crd::text(definition, &["spec", "names", "plural"]));
    // Names that were never accepted are another definition's.
    if crd::is_established(definition) {
        remove_instances(state, &instances, definition).await;
        if state.store.view().count(&instances) > 0 {
            return;
        }
    }
    loop {
        let view = state.store.view();
        let Some(current) = view.get(&id(), name) else { return };
        let mut value = current.value();
        let left: Vec<String> = meta::finalizers(&value)
            .filter(|finalizer| *finalizer != crd::CLEANUP_FINALIZER)
            .map(str::to_owned)
            .collect();
        let had = meta::finalizers(&value).count();
        if !left.is_empty() && left.len() == had {
            return;
        }
        meta::set_finalizers(&mut value, &left);
        let write = (!left.is_empty()).then_some(&value);
        if rewrite(state, name, current, write).await.is_ok() {
            return;
        }
    }
}

async fn remove_instances(state: &State, instances: &ResourceId, definition: &Value) {
    let stored_as = crd::storage_version(definition).unwrap_or_default();
    let served = state.served.load_full();
    let group = served.group(&instances.group);
    let versions = group.into_iter().flat_map(|group| &group.versions);
    let mut resources =
        versions.filter_map(|version| Some((version, version.resources.get(&*instances.resource)?)));
    let first = resources.next();
    let resource =
        resources.find(|(version, _)| version.name == stored_as).or(first).map(|(_, resource)| resource);
    let view = state.store.view();
    for (key, instance) in view.range(instances, None) {
        remove_instance(state, instances, key, instance, resource.map(|resource| &**resource)).await;
    }
}

/// Deletes an instance, or marks it if finalizers hold it.
async fn remove_instance(
    state: &State,
    id: &ResourceId,
    key: &str,
    instance: &Arc<Stored>,
    resource: Option<&Resource>,
) {
    let mut current = Some(Arc::clone(instance));
    while let Some(stored) = current {
        let now = state.env.now();
        let draft = if stored.has_finalizers() {
            let Some(resource) = resource.filter(|_| !stored.is_terminating()) else { return };
            let mut value = stored.value();
            meta::set(&mut value, "deletionTimestamp", Some(state.env.now_rfc3339().into()));
            meta::set(&mut value, "deletionGracePeriodSeconds", Some(0.into()));
            Some(resource.draft_like(&stored, &value, state.store.labels(), now))
        } else {
            None
        };
        let write = Write { id, key, expected: Some(stored.rv), draft, now };
        if state.store.commit(write, |_| Ok(())).await.is_ok() {
            return;
        }
        current = state.store.view().get(id, key).cloned();
    }
}
