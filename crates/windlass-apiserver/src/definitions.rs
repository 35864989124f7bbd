//! The consequences of a written CustomResourceDefinition: names are accepted, versions are served, and the
//! instances of a deleted definition are cleaned up.

use std::collections::BTreeSet;
use std::sync::Arc;
use std::sync::atomic::Ordering;

use serde_json::Value;

use crate::api_services;
use crate::crd;
use crate::managed_fields::FieldManager;
use crate::meta;
use crate::resource::{CrdDiff, Definitions, Resource, ServedResources};
use crate::state::State;
use crate::store::{CommitError, ResourceId, Stored, View, Write};
use crate::wire::ApiError;
use windlass_kinds::Subresource;
use windlass_kinds::resources::DEFINITIONS;

/// Serves the definitions that the store holds when the server starts.
pub(crate) fn load(state: &State) {
    let Ok(mut definitions) = state.definitions.try_lock() else { return };
    let view = state.store.view();
    let mut served = ServedResources::clone(&state.served.load());
    let now = state.env.now_rfc3339();
    for (_, stored) in view.range(&DEFINITIONS, None) {
        let definition = stored.value();
        let mut synced = definition.clone();
        definitions.accept_names(&mut synced, &now);
        if stored.is_terminating() || synced != definition {
            state.unsettled_definitions.store(true, Ordering::Release);
        }
        definitions.learn(&state.builtin, &mut served, stored, &definition);
    }
    state.served.store(Arc::new(served));
}

/// Settles a definition after a write of the definition.
pub(crate) async fn settle(state: &Arc<State>, name: &str) {
    sync_crds(state, [name.to_owned()].into()).await;
}

/// Settles a terminating definition after a write of an instance: the last instance may be gone.
pub(crate) async fn settle_if_terminating(state: &Arc<State>, name: &str) {
    let view = state.store.view();
    if view.get(&DEFINITIONS, name).is_some_and(|definition| definition.is_terminating()) {
        settle(state, name).await;
    }
}

/// Continues the work on definitions that was unfinished when the server started: names, and the clean-up of
/// terminating definitions.
pub(crate) async fn resume(state: &Arc<State>) {
    // Looked at by every request, and almost never set.
    if !state.unsettled_definitions.load(Ordering::Acquire) {
        return;
    }
    state.unsettled_definitions.store(false, Ordering::Release);
    let view = state.store.view();
    sync_crds(state, view.range(&DEFINITIONS, None).map(|(name, _)| name.to_string()).collect()).await;
}

/// Updates the served resources to agree with all definitions. Definitions in `changed` are settled even
/// without a change.
///
/// The work continues even if the causing request is abandoned.
async fn sync_crds(state: &Arc<State>, mut changed: BTreeSet<String>) {
    let state = Arc::clone(state);
    let work = async move {
        while !changed.is_empty() {
            let terminating = sync_all(&state, changed).await;
            changed = BTreeSet::new();
            // Other definitions are settled while the instances of this definition are removed.
            for (name, definition) in terminating {
                if clean_up(&state, &name, &definition).await {
                    changed.insert(name);
                }
            }
        }
    };
    if let Err(error) = tokio::spawn(work).await {
        tracing::error!(%error, "a CustomResourceDefinition was stored, but what it defines was not served");
    }
}

/// Settles the `changed` definitions and all definitions that were written meanwhile. Returns the terminating
/// definitions.
async fn sync_all(state: &State, mut changed: BTreeSet<String>) -> Vec<(String, Value)> {
    let mut definitions = state.definitions.lock().await;
    let mut terminating = Vec::new();
    while !changed.is_empty() {
        for name in std::mem::take(&mut changed) {
            let synced = sync_one(state, &mut definitions, &name).await;
            changed.extend(synced.waiting);
            terminating.extend(synced.terminating.map(|definition| (name, definition)));
        }
        changed.extend(definitions.outdated(&state.store.view()));
    }
    terminating
}

/// The outcome of [`sync_one`].
#[derive(Default)]
struct SyncResult {
    /// Other definitions with names that may be free by now.
    waiting: Vec<String>,
    /// The definition, for a terminating definition.
    terminating: Option<Value>,
}

async fn sync_one(state: &State, definitions: &mut Definitions, name: &str) -> SyncResult {
    let view = state.store.view();
    let Some(stored) = view.get(&DEFINITIONS, name) else {
        let consequences = publish(state, |served| definitions.forget(&state.builtin, served, name));
        let retired = consequences.retired.first();
        if let Some(resource) = retired.filter(|resource| !is_built_in(state, &resource.storage)) {
            // Instances are left only if the finalizer of the definition was removed by hand.
            state.store.forget(&resource.storage);
        }
        return SyncResult { waiting: consequences.waiting, terminating: None };
    };
    let before = stored.value();
    let mut definition = before.clone();
    definitions.accept_names(&mut definition, &state.env.now_rfc3339());
    let stored = if definition == before {
        Arc::clone(stored)
    } else {
        track(state, &before, &mut definition).await;
        match rewrite(state, name, stored, Some(&definition)).await {
            Ok(written) => written,
            // Another write came first: the new object is settled next.
            Err(CommitError::Conflict | CommitError::ClaimTaken | CommitError::QuotaConflict) => {
                return SyncResult::default();
            }
            Err(CommitError::Refused(_)) => Arc::clone(stored),
        }
    };
    let consequences =
        publish(state, |served| definitions.learn(&state.builtin, served, &stored, &definition));
    SyncResult { waiting: consequences.waiting, terminating: stored.is_terminating().then_some(definition) }
}

/// Records that the server wrote the status of a definition.
async fn track(state: &State, before: &Value, definition: &mut Value) {
    let id = &DEFINITIONS;
    let Some(resource) = state.builtin.resource(&id.group, "v1", &id.resource) else { return };
    let manager = FieldManager {
        resource,
        served: &state.builtin,
        subresource: &Subresource::Status,
        name: "kube-apiserver",
        now: state.env.now(),
    };
    manager.track(Some(before), definition).await;
}

/// Replaces the table of served resources, and ends the watches of removed resources.
fn publish(state: &State, change: impl FnOnce(&mut ServedResources) -> CrdDiff) -> CrdDiff {
    let mut served = ServedResources::clone(&state.served.load());
    let consequences = change(&mut served);
    state.served.store(Arc::new(served));
    api_services::follow(state);
    for resource in &consequences.retired {
        if let Some(custom) = &resource.custom {
            custom.retired.store(true, Ordering::Release);
            state.store.log(&resource.storage).wake();
        }
    }
    consequences
}

/// Writes a definition again, or removes it.
async fn rewrite(
    state: &State,
    name: &str,
    current: &Stored,
    object: Option<&Value>,
) -> Result<Arc<Stored>, CommitError> {
    let id = &DEFINITIONS;
    let now = state.env.now();
    let resource = state.builtin.resource(&id.group, "v1", &id.resource);
    let resource = resource.ok_or_else(|| CommitError::Refused(ApiError::no_such_resource()))?;
    let draft = object.map(|object| resource.draft(object, state.store.labels(), now));
    let write = Write { id, key: name, expected: Some(current.rv), draft, now };
    state.store.commit(write, |_| Ok(())).await
}

/// Removes the instances of a terminating definition, and the definition after the last instance. Returns
/// whether the definition was written or removed.
async fn clean_up(state: &State, name: &str, definition: &Value) -> bool {
    let group = crd::text(definition, &["spec", "group"]);
    let instances = ResourceId::new(group, crd::text(definition, &["spec", "names", "plural"]));
    // Another CRD or a built-in kind owns the objects stored under a name that this CRD was refused: leave
    // such objects alone.
    if crd::is_established(definition) && !is_built_in(state, &instances) {
        remove_instances(state, name, &instances, definition).await;
        if state.store.view().count(&instances) > 0 {
            return report_progress(state, name, definition).await;
        }
    }
    loop {
        let view = state.store.view();
        let current = view.get(&DEFINITIONS, name);
        // Another definition may have the name by now.
        let Some(current) = current.filter(|current| current.uid() == meta::uid(definition)) else {
            return false;
        };
        let mut value = current.value();
        let left: Vec<String> = meta::finalizers(&value)
            .filter(|finalizer| *finalizer != crd::CLEANUP_FINALIZER)
            .map(str::to_owned)
            .collect();
        let had = meta::finalizers(&value).count();
        if !left.is_empty() && left.len() == had {
            return false;
        }
        meta::set_finalizers(&mut value, &left);
        let write = (!left.is_empty()).then_some(&value);
        if rewrite(state, name, current, write).await.is_ok() {
            return true;
        }
    }
}

/// Writes a condition to the status of a definition while instances are being deleted. Returns whether the
/// condition is new.
async fn report_progress(state: &State, name: &str, definition: &Value) -> bool {
    loop {
        let view = state.store.view();
        let current = view.get(&DEFINITIONS, name);
        let Some(current) = current.filter(|current| current.uid() == meta::uid(definition)) else {
            return false;
        };
        let before = current.value();
        let mut value = before.clone();
        crd::set_condition(
            &mut value,
            "Terminating",
            true,
            "InstanceDeletionInProgress",
            "CustomResource deletion is in progress",
            &state.env.now_rfc3339(),
        );
        if value == before {
            return false;
        }
        track(state, &before, &mut value).await;
        if rewrite(state, name, current, Some(&value)).await.is_ok() {
            return true;
        }
    }
}

/// Returns whether a built-in kind has the same storage as the definition's instances: the built-in kind is
/// served instead.
fn is_built_in(state: &State, instances: &ResourceId) -> bool {
    let group = state.builtin.group(&instances.group);
    let mut versions = group.into_iter().flat_map(|group| &group.versions);
    versions.any(|version| version.resources.contains_key(&*instances.resource))
}

async fn remove_instances(state: &State, name: &str, instances: &ResourceId, definition: &Value) {
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
    // A later definition of the same name has other instances.
    let is_its_instance = |view: &View| {
        let present = view.get(&DEFINITIONS, name);
        let is_present = present.is_some_and(|present| present.uid() == meta::uid(definition));
        if is_present { Ok(()) } else { Err(ApiError::no_such_resource()) }
    };
    for (key, instance) in view.range(instances, None) {
        let resource = resource.map(|resource| &**resource);
        remove_instance(state, instances, key, instance, resource, is_its_instance).await;
    }
}

/// Deletes an instance, or marks an instance with finalizers for deletion.
async fn remove_instance(
    state: &State,
    id: &ResourceId,
    key: &str,
    instance: &Arc<Stored>,
    resource: Option<&Resource>,
    guard: impl Fn(&View) -> Result<(), ApiError>,
) {
    let mut current = Some(Arc::clone(instance));
    while let Some(stored) = current {
        let now = state.env.now();
        let draft = if stored.has_finalizers() {
            let Some(resource) = resource.filter(|_| !stored.is_terminating()) else { return };
            let mut value = stored.value();
            meta::set(&mut value, "deletionTimestamp", Some(state.env.now_rfc3339().into()));
            meta::set(&mut value, "deletionGracePeriodSeconds", Some(0.into()));
            if let Some(generation) = meta::integer(&value, "generation") {
                meta::set(&mut value, "generation", Some((generation + 1).into()));
            }
            Some(resource.draft_like(&stored, &value, state.store.labels(), now))
        } else {
            None
        };
        let write = Write { id, key, expected: Some(stored.rv), draft, now };
        match state.store.commit(write, &guard).await {
            Ok(_) | Err(CommitError::Refused(_)) => return,
            Err(CommitError::Conflict | CommitError::ClaimTaken | CommitError::QuotaConflict) => {}
        }
        current = state.store.view().get(id, key).cloned();
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;
    use crate::Server;

    fn definition(group: &str) -> Value {
        json!({
            "kind": "CustomResourceDefinition",
            "apiVersion": "apiextensions.k8s.io/v1",
            "metadata": {"name": format!("widgets.{group}"), "uid": "first"},
            "spec": {
                "group": group,
                "scope": "Cluster",
                "names": {"plural": "widgets", "singular": "widget", "kind": "Widget", "listKind": "WidgetList"},
                "versions": [{"name": "v1", "served": true, "storage": true}],
            },
        })
    }

    async fn store(state: &State, group: &str, plural: &str, object: &Value) {
        let served = state.served.load_full();
        let resource = served.resource(group, "v1", plural).unwrap();
        let now = state.env.now();
        let draft = Some(resource.draft(object, state.store.labels(), now));
        let key = resource.key("", meta::name(object));
        let present = state.store.view().get(&resource.storage, &key).map(|present| present.rv);
        let write = Write { id: &resource.storage, key: &key, expected: present, draft, now };
        state.store.commit(write, |_| Ok(())).await.unwrap();
    }

    async fn store_definition(state: &State, definition: &Value) {
        let id = &DEFINITIONS;
        store(state, &id.group, &id.resource, definition).await;
    }

    #[tokio::test]
    async fn clean_up_spares_the_instances_of_a_definition_that_came_since() {
        let server = Server::builder().build().unwrap();
        let state = server.state();
        let (group, name) = ("a.example.com", "widgets.a.example.com");
        let mut new = definition(group);
        new["metadata"]["uid"] = json!("second");
        store_definition(state, &new).await;
        sync_crds(state, [name.to_owned()].into()).await;
        let widget = json!({"kind": "Widget", "apiVersion": "a.example.com/v1", "metadata": {"name": "a", "uid": "w"}});
        store(state, group, "widgets", &widget).await;
        // A request that is late still cleans up behind the definition that is gone.
        let mut old = state.store.view().get(&DEFINITIONS, name).unwrap().value();
        old["metadata"]["uid"] = json!("first");
        clean_up(state, name, &old).await;
        assert_eq!(state.store.view().count(&ResourceId::new(group, "widgets")), 1);
    }

    #[tokio::test]
    async fn all_that_was_left_to_do_is_done_though_the_first_request_is_abandoned() {
        let server = Server::builder().build().unwrap();
        let groups = ["a.example.com", "b.example.com", "c.example.com"];
        for group in groups {
            store_definition(server.state(), &definition(group)).await;
        }
        let fork = Server::builder().snapshot(&server.snapshot()).build().unwrap();
        let state = fork.state();
        assert!(futures::poll!(Box::pin(resume(state))).is_pending());
        tokio::time::timeout(std::time::Duration::from_secs(10), async {
            while groups.iter().any(|group| state.served.load().group(group).is_none()) {
                tokio::task::yield_now().await;
            }
        })
        .await
        .unwrap();
    }
}
