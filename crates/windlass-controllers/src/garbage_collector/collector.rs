//! The worker: looks at one object and its owners, and does what the verdict says.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

use k8s_openapi::api::core::v1::ObjectReference;
use k8s_openapi::apimachinery::pkg::apis::meta::v1::{ObjectMeta, OwnerReference};
use kube_client::api::{Api, DeleteParams, Patch, PatchParams, Preconditions, PropagationPolicy};
use kube_core::DynamicObject;
use serde_json::{Value, json};
use windlass_runtime::events::EventType;
use windlass_runtime::{Action, Context, Controller, Error, Reconciler, Result};

use super::graph::{Deletion, Node, OwnerRef, Uid};
use super::observer::Observer;
use super::verdict::{FOREGROUND, ORPHAN, OwnerState, Propagation, Verdict, judge};
use crate::resources::Resource;

/// When an owner that is there, but was not seen by a watch, is looked for again.
const UNSEEN: Duration = Duration::from_secs(1);
/// The same where no watch will ever see it.
const UNWATCHED: Duration = Duration::from_mins(1);

/// Looks at objects by uid.
pub(super) struct Collector {
    observer: Arc<Observer>,
}

/// An owner as it was found.
struct Found {
    state: OwnerState,
    /// When to look again, because no watch has seen this owner.
    look_again: Option<Duration>,
}

impl Reconciler<(), Uid> for Collector {
    type Error = Error;

    async fn reconcile(&self, uid: Uid, cx: Context<()>) -> Result<Action> {
        let node = self.observer.graph().node(&uid).cloned();
        let Some(node) = node else { return Ok(Action::done()) };
        match node.deletion {
            Deletion::Pending => Ok(Action::done()),
            Deletion::No => self.check(&node, &cx).await,
            Deletion::Foreground => self.finish_foreground(&node, &cx).await,
            Deletion::Orphaning => self.orphan(&node, &cx).await,
        }
    }
}

impl Collector {
    pub(super) fn controller(observer: Arc<Observer>) -> Controller<Uid> {
        Controller::keyed::<()>("garbage-collector-controller", Self { observer })
    }

    /// Judges an object that is not being deleted.
    async fn check(&self, node: &Node, cx: &Context<()>) -> Result<Action> {
        let Some(latest) = self.latest(node, cx).await? else { return Ok(Action::done()) };
        let references = latest.owner_references.clone().unwrap_or_default();
        let mut states = Vec::with_capacity(references.len());
        let mut look_again = None::<Duration>;
        for reference in &references {
            let owner = owner_ref(reference);
            let Some(found) = self.find(&owner, node, cx).await? else {
                // A kind that is not served: nobody can say that the owner is absent.
                return Ok(Action::requeue_after(UNWATCHED));
            };
            look_again = look_again.into_iter().chain(found.look_again).min();
            states.push((owner.uid, found.state));
        }
        let (has_dependents, in_circle) = {
            let graph = self.observer.graph();
            let circle =
                graph.dependents(&node.uid).any(|dependent| dependent.deletion == Deletion::Foreground);
            (graph.dependents(&node.uid).next().is_some(), circle)
        };
        match judge(latest.finalizers.as_deref().unwrap_or_default(), &states, has_dependents) {
            Verdict::Keep => {}
            Verdict::DropOwners(gone) => {
                let kept = references
                    .into_iter()
                    .filter(|reference| !gone.iter().any(|uid| **uid == *reference.uid));
                write_owners(node, &latest, kept.collect(), cx).await?;
            }
            Verdict::Delete(propagation) => {
                if in_circle && propagation == Propagation::Foreground {
                    // It waits for dependents that wait for it: stop holding up its owner.
                    let unblocked = references
                        .into_iter()
                        .map(|reference| OwnerReference { block_owner_deletion: Some(false), ..reference });
                    write_owners(node, &latest, unblocked.collect(), cx).await?;
                }
                delete(node, &latest, propagation, cx).await?;
            }
        }
        Ok(look_again.map_or_else(Action::done, Action::requeue_after))
    }

    /// What became of an owner that `dependent` names; `None` if the server does not know such a kind.
    async fn find(&self, owner: &OwnerRef, dependent: &Node, cx: &Context<()>) -> Result<Option<Found>> {
        let seen = self.observer.graph().node(&owner.uid).cloned();
        let watched = seen.is_some();
        if let Some(seen) = &seen {
            if seen.is_meant_by(owner, dependent) {
                let state = if seen.deletion == Deletion::Foreground {
                    OwnerState::Waiting
                } else {
                    OwnerState::Solid
                };
                return Ok(Some(Found { state, look_again: None }));
            }
            Self::complain(owner, dependent, cx);
        }
        let Some(resource) = self.observer.resource_of(owner) else { return Ok(None) };
        if resource.namespaced && dependent.namespace.is_none() {
            // A cluster-scoped object cannot be owned from a namespace: nowhere to look, so never absent.
            Self::complain(owner, dependent, cx);
            return Ok(Some(Found { state: OwnerState::Solid, look_again: None }));
        }
        let api = api(cx, &resource, dependent.namespace.as_deref());
        let live = api.get_metadata_opt(&owner.name).await.map_err(Error::from)?;
        let Some(live) = live.filter(|live| live.metadata.uid.as_deref() == Some(&*owner.uid)) else {
            return Ok(Some(Found { state: OwnerState::Absent, look_again: None }));
        };
        let waits = live.metadata.deletion_timestamp.is_some()
            && live.metadata.finalizers.iter().flatten().any(|finalizer| finalizer == FOREGROUND);
        let wait = if resource.watchable { UNSEEN } else { UNWATCHED };
        Ok(Some(Found {
            state: if waits { OwnerState::Waiting } else { OwnerState::Solid },
            look_again: (!watched).then_some(wait),
        }))
    }

    /// An owner that is being deleted in the foreground goes when no dependent holds it up.
    async fn finish_foreground(&self, node: &Node, cx: &Context<()>) -> Result<Action> {
        let blockers: Vec<(Uid, Deletion)> = self
            .observer
            .graph()
            .blockers(&node.uid)
            .map(|dependent| (dependent.uid.clone(), dependent.deletion))
            .collect();
        if blockers.is_empty() {
            self.drop_finalizer(node, FOREGROUND, cx).await?;
        } else {
            self.observer.enqueue(
                blockers
                    .into_iter()
                    .filter(|(_, deletion)| *deletion == Deletion::No)
                    .map(|(uid, _)| uid)
                    .collect(),
            );
        }
        Ok(Action::done())
    }

    /// Sets the dependents free, then lets the owner go.
    async fn orphan(&self, node: &Node, cx: &Context<()>) -> Result<Action> {
        let dependents: Vec<Node> = self.observer.graph().dependents(&node.uid).cloned().collect();
        for dependent in &dependents {
            let Some(latest) = self.latest(dependent, cx).await? else { continue };
            let references = latest.owner_references.clone().unwrap_or_default();
            let kept: Vec<OwnerReference> =
                references.iter().filter(|reference| *reference.uid != *node.uid).cloned().collect();
            if kept.len() != references.len() {
                write_owners(dependent, &latest, kept, cx).await?;
            }
        }
        self.drop_finalizer(node, ORPHAN, cx).await?;
        Ok(Action::done())
    }

    async fn drop_finalizer(&self, node: &Node, name: &str, cx: &Context<()>) -> Result<()> {
        let Some(latest) = self.latest(node, cx).await? else { return Ok(()) };
        let finalizers = latest.finalizers.clone().unwrap_or_default();
        let kept: Vec<String> = finalizers.iter().filter(|finalizer| *finalizer != name).cloned().collect();
        if kept.len() == finalizers.len() {
            return Ok(());
        }
        write(node, &latest, "finalizers", json!(kept), cx).await
    }

    /// The object's metadata as it is now; if it is gone, the graph is told so.
    async fn latest(&self, node: &Node, cx: &Context<()>) -> Result<Option<ObjectMeta>> {
        let api = api(cx, &node.resource, node.namespace.as_deref());
        let live = api.get_metadata_opt(&node.name).await.map_err(Error::from)?;
        let live = live.map(|live| live.metadata).filter(|live| live.uid.as_deref() == Some(&*node.uid));
        if live.is_none() {
            let dirty = self.observer.graph().remove(&node.uid);
            self.observer.enqueue(dirty);
        }
        Ok(live)
    }

    fn complain(owner: &OwnerRef, dependent: &Node, cx: &Context<()>) {
        let namespace = dependent.namespace.as_deref().unwrap_or_default();
        let message = format!(
            "ownerRef [{}/{}, namespace: {namespace}, name: {}, uid: {}] does not exist in namespace {namespace:?}",
            owner.api_version, owner.kind, owner.name, owner.uid
        );
        cx.recorder().event(EventType::Warning, reference(dependent), "OwnerRefInvalidNamespace", message);
    }
}

fn owner_ref(reference: &OwnerReference) -> OwnerRef {
    OwnerRef {
        api_version: reference.api_version.clone(),
        kind: reference.kind.clone(),
        name: reference.name.clone(),
        uid: reference.uid.as_str().into(),
        blocks: reference.block_owner_deletion == Some(true),
    }
}

fn reference(node: &Node) -> ObjectReference {
    ObjectReference {
        api_version: Some(node.resource.api.api_version.clone()),
        kind: Some(node.resource.api.kind.clone()),
        namespace: node.namespace.clone(),
        name: Some(node.name.clone()),
        uid: Some(node.uid.to_string()),
        ..ObjectReference::default()
    }
}

fn api(cx: &Context<()>, resource: &Resource, namespace: Option<&str>) -> Api<DynamicObject> {
    match namespace.filter(|_| resource.namespaced) {
        Some(namespace) => Api::namespaced_with(cx.client().clone(), namespace, &resource.api),
        None => Api::all_with(cx.client().clone(), &resource.api),
    }
}

async fn write_owners(
    node: &Node,
    latest: &ObjectMeta,
    owners: Vec<OwnerReference>,
    cx: &Context<()>,
) -> Result<()> {
    write(node, latest, "ownerReferences", json!(owners), cx).await
}

/// Changes one member of the metadata, if the object is still the one that was looked at.
async fn write(node: &Node, latest: &ObjectMeta, member: &str, value: Value, cx: &Context<()>) -> Result<()> {
    let metadata = BTreeMap::from([
        ("uid", json!(latest.uid)),
        ("resourceVersion", json!(latest.resource_version)),
        (member, value),
    ]);
    let patch = Patch::Merge(json!({ "metadata": metadata }));
    let api = api(cx, &node.resource, node.namespace.as_deref());
    match api.patch_metadata(&node.name, &PatchParams::default(), &patch).await.map_err(Error::from) {
        Err(error) if error.is_not_found() => Ok(()),
        other => other.map(drop),
    }
}

async fn delete(node: &Node, latest: &ObjectMeta, propagation: Propagation, cx: &Context<()>) -> Result<()> {
    let policy = match propagation {
        Propagation::Background => PropagationPolicy::Background,
        Propagation::Foreground => PropagationPolicy::Foreground,
        Propagation::Orphan => PropagationPolicy::Orphan,
    };
    let params = DeleteParams {
        propagation_policy: Some(policy),
        preconditions: Some(Preconditions {
            uid: latest.uid.clone(),
            resource_version: latest.resource_version.clone(),
        }),
        ..DeleteParams::default()
    };
    let params = if propagation == Propagation::Foreground {
        // Unblocking may just have changed the version; the uid says enough.
        DeleteParams {
            preconditions: Some(Preconditions { uid: latest.uid.clone(), resource_version: None }),
            ..params
        }
    } else {
        params
    };
    let api = api(cx, &node.resource, node.namespace.as_deref());
    match api.delete(&node.name, &params).await.map_err(Error::from) {
        Err(error) if error.is_not_found() => Ok(()),
        other => other.map(drop),
    }
}
