//! Checks one object and its owners at a time, and applies the decision.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

use k8s_openapi::api::core::v1::ObjectReference;
use k8s_openapi::apimachinery::pkg::apis::meta::v1::{ObjectMeta, OwnerReference};
use kube_client::api::{Api, DeleteParams, Patch, Preconditions, PropagationPolicy};
use kube_core::DynamicObject;
use serde_json::{Value, json};
use tokio::time::Instant;
use windlass_runtime::client::path_segment;
use windlass_runtime::events::EventType;
use windlass_runtime::{Action, Context, Controller, Error, Reconciler, Result};

use super::decision::{Decision, FOREGROUND, ORPHAN, OwnerState, Propagation, decide};
use super::graph::{Deletion, Node, OwnerRef, Uid};
use super::graph_builder::GraphBuilder;
use crate::component::{self, KUBE_CONTROLLER_MANAGER};
use crate::resources::Resource;

/// The time until the next check if an owner exists but the watch has not seen the owner yet.
const RECHECK_WATCHED: Duration = Duration::from_secs(1);
/// As [`RECHECK_WATCHED`], for a resource that has no watch.
const RECHECK_UNWATCHED: Duration = Duration::from_mins(1);

/// When to look again at an owner that is deleted while resources are listed for the first time.
const RECHECK_UNLISTED: Duration = Duration::from_millis(50);

/// A reconciler with uids as keys.
pub(super) struct Collector {
    graph_builder: Arc<GraphBuilder>,
}

/// The state of an owner.
struct Found {
    state: OwnerState,
    /// When to check again, because no watch has seen this owner.
    recheck_after: Option<Duration>,
}

impl Reconciler<(), Uid> for Collector {
    type Error = Error;

    async fn reconcile(&self, uid: Uid, cx: Context<()>) -> Result<Action> {
        let node = self.graph_builder.graph().node(&uid).cloned();
        let Some(node) = node else { return Ok(Action::done()) };
        match node.deletion {
            Deletion::Pending => Ok(Action::done()),
            Deletion::No => self.check(&node, &cx).await,
            // A dependent that the graph does not know yet would lose the owner, and be deleted.
            Deletion::Foreground | Deletion::Orphaning
                if !self.graph_builder.knows_dependents(Instant::now()) =>
            {
                Ok(Action::requeue_after(RECHECK_UNLISTED))
            }
            Deletion::Foreground => self.finish_foreground(&node, &cx).await,
            Deletion::Orphaning => self.orphan(&node, &cx).await,
        }
    }
}

impl Collector {
    pub(super) fn controller(graph_builder: Arc<GraphBuilder>) -> Controller<Uid> {
        Controller::keyed::<()>("garbage-collector-controller", Self { graph_builder })
    }

    /// Checks an object that is not terminating.
    async fn check(&self, node: &Node, cx: &Context<()>) -> Result<Action> {
        let Some(latest) = self.latest(node, cx).await? else { return Ok(Action::done()) };
        let references = latest.owner_references.clone().unwrap_or_default();
        let mut states = Vec::with_capacity(references.len());
        let mut recheck_after = None::<Duration>;
        for reference in &references {
            let owner = owner_ref(reference);
            let Some(found) = self.find(&owner, node, cx).await? else {
                // The kind is not served: the absence of the owner cannot be proven. The interval is
                // kube-controller-manager's.
                return Ok(Action::requeue_after(RECHECK_UNWATCHED));
            };
            recheck_after = recheck_after.into_iter().chain(found.recheck_after).min();
            states.push((owner.uid, found.state));
        }
        let (has_dependents, in_cycle) = {
            let graph = self.graph_builder.graph();
            let cycle =
                graph.dependents(&node.uid).any(|dependent| dependent.deletion == Deletion::Foreground);
            (graph.dependents(&node.uid).next().is_some(), cycle)
        };
        match decide(latest.finalizers.as_deref().unwrap_or_default(), &states, has_dependents) {
            Decision::Keep => {}
            Decision::DropOwners(gone) => {
                let kept = references
                    .into_iter()
                    .filter(|reference| !gone.iter().any(|uid| **uid == *reference.uid));
                patch_owners(node, &latest, kept.collect(), cx).await?;
            }
            Decision::Delete(propagation) => {
                if in_cycle && propagation == Propagation::Foreground {
                    // The object waits for dependents that wait for the object: unblock the owner to break
                    // the cycle.
                    let unblocked = references
                        .into_iter()
                        .map(|reference| OwnerReference { block_owner_deletion: Some(false), ..reference });
                    patch_owners(node, &latest, unblocked.collect(), cx).await?;
                }
                delete(node, &latest, propagation, cx).await?;
            }
        }
        Ok(recheck_after.map_or_else(Action::done, Action::requeue_after))
    }

    /// Returns the state of an owner that `dependent` names, or `None` if the server does not serve the
    /// owner's kind.
    async fn find(&self, owner: &OwnerRef, dependent: &Node, cx: &Context<()>) -> Result<Option<Found>> {
        let (seen, is_absent) = {
            let graph = self.graph_builder.graph();
            (graph.node(&owner.uid).cloned(), graph.is_absent(owner, dependent))
        };
        if is_absent {
            return Ok(Some(Found { state: OwnerState::Absent, recheck_after: None }));
        }
        let watched = seen.is_some();
        if let Some(seen) = &seen {
            if seen.is_referenced_by(owner, dependent) {
                let state = if seen.deletion == Deletion::Foreground {
                    OwnerState::WaitingForDependents
                } else {
                    OwnerState::Solid
                };
                return Ok(Some(Found { state, recheck_after: None }));
            }
            Self::record_invalid_owner(owner, dependent, cx);
        }
        let Some(resource) = self.graph_builder.resource_of(owner) else { return Ok(None) };
        if resource.namespaced && dependent.namespace.is_none() {
            // A cluster-scoped object cannot have an owner in a namespace. The namespace of the owner is
            // unknown, and the owner counts as present.
            Self::record_invalid_owner(owner, dependent, cx);
            return Ok(Some(Found { state: OwnerState::Solid, recheck_after: None }));
        }
        let api = api(cx, &resource, dependent.namespace.as_deref());
        let live = match api.get_metadata_opt(&path_segment(&owner.name)?).await {
            Ok(live) => live,
            // The kind was served at the last discovery.
            Err(error) if is_unserved(&error) => return Ok(None),
            Err(error) => return Err(error.into()),
        };
        let Some(live) = live.filter(|live| live.metadata.uid.as_deref() == Some(&*owner.uid)) else {
            return Ok(Some(Found { state: OwnerState::Absent, recheck_after: None }));
        };
        let waits = live.metadata.deletion_timestamp.is_some()
            && live.metadata.finalizers.iter().flatten().any(|finalizer| finalizer == FOREGROUND);
        let wait = if resource.watchable { RECHECK_WATCHED } else { RECHECK_UNWATCHED };
        Ok(Some(Found {
            state: if waits { OwnerState::WaitingForDependents } else { OwnerState::Solid },
            recheck_after: (!watched).then_some(wait),
        }))
    }

    /// Removes the finalizer `foregroundDeletion` of an owner if no dependent blocks it.
    async fn finish_foreground(&self, node: &Node, cx: &Context<()>) -> Result<Action> {
        let blockers: Vec<(Uid, Deletion)> = self
            .graph_builder
            .graph()
            .blockers(&node.uid)
            .map(|dependent| (dependent.uid.clone(), dependent.deletion))
            .collect();
        if blockers.is_empty() {
            self.drop_finalizer(node, FOREGROUND, cx).await?;
        } else {
            self.graph_builder.enqueue(
                blockers
                    .into_iter()
                    .filter(|(_, deletion)| *deletion == Deletion::No)
                    .map(|(uid, _)| uid)
                    .collect(),
            );
        }
        Ok(Action::done())
    }

    /// Removes the owner from all dependents, then the finalizer `orphan` from the owner.
    async fn orphan(&self, node: &Node, cx: &Context<()>) -> Result<Action> {
        let dependents: Vec<Node> = self.graph_builder.graph().dependents(&node.uid).cloned().collect();
        for dependent in &dependents {
            let Some(latest) = self.latest(dependent, cx).await? else { continue };
            let references = latest.owner_references.clone().unwrap_or_default();
            let kept: Vec<OwnerReference> =
                references.iter().filter(|reference| *reference.uid != *node.uid).cloned().collect();
            if kept.len() != references.len() {
                patch_owners(dependent, &latest, kept, cx).await?;
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
        patch_metadata(node, &latest, "finalizers", json!(kept), cx).await
    }

    /// Reads the object's metadata from the server. If the object is gone, removes it from the graph.
    async fn latest(&self, node: &Node, cx: &Context<()>) -> Result<Option<ObjectMeta>> {
        let api = api(cx, &node.resource, node.namespace.as_deref());
        let live = match api.get_metadata_opt(&path_segment(&node.name)?).await {
            Ok(live) => live,
            // The monitors remove the object from the graph together with the resource.
            Err(error) if is_unserved(&error) => return Ok(None),
            Err(error) => return Err(error.into()),
        };
        let live = live.map(|live| live.metadata).filter(|live| live.uid.as_deref() == Some(&*node.uid));
        if live.is_none() {
            let affected = self.graph_builder.graph().remove(&node.uid);
            self.graph_builder.enqueue(affected);
        }
        Ok(live)
    }

    fn record_invalid_owner(owner: &OwnerRef, dependent: &Node, cx: &Context<()>) {
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

/// Returns whether the server does not serve the path: the reply is not a `Status` with the reason
/// `NotFound`.
fn is_unserved(error: &kube_client::Error) -> bool {
    matches!(error, kube_client::Error::Api(status) if status.code == 404 && status.reason != "NotFound")
}

fn api(cx: &Context<()>, resource: &Resource, namespace: Option<&str>) -> Api<DynamicObject> {
    match namespace.filter(|_| resource.namespaced) {
        Some(namespace) => Api::namespaced_with(cx.client().clone(), namespace, &resource.api),
        None => Api::all_with(cx.client().clone(), &resource.api),
    }
}

async fn patch_owners(
    node: &Node,
    latest: &ObjectMeta,
    owners: Vec<OwnerReference>,
    cx: &Context<()>,
) -> Result<()> {
    patch_metadata(node, latest, "ownerReferences", json!(owners), cx).await
}

/// Patches a field of the metadata, if the object still has the same uid and resource version.
async fn patch_metadata(
    node: &Node,
    latest: &ObjectMeta,
    member: &str,
    value: Value,
    cx: &Context<()>,
) -> Result<()> {
    let metadata = BTreeMap::from([
        ("uid", json!(latest.uid)),
        ("resourceVersion", json!(latest.resource_version)),
        (member, value),
    ]);
    let patch = Patch::Merge(json!({ "metadata": metadata }));
    let api = api(cx, &node.resource, node.namespace.as_deref());
    match api
        .patch_metadata(&path_segment(&node.name)?, &component::patch(KUBE_CONTROLLER_MANAGER), &patch)
        .await
        .map_err(Error::from)
    {
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
        // Unblocking may have changed the resource version, so only the uid is a precondition.
        DeleteParams {
            preconditions: Some(Preconditions { uid: latest.uid.clone(), resource_version: None }),
            ..params
        }
    } else {
        params
    };
    let api = api(cx, &node.resource, node.namespace.as_deref());
    match api.delete(&path_segment(&node.name)?, &params).await.map_err(Error::from) {
        Err(error) if error.is_not_found() => Ok(()),
        other => other.map(drop),
    }
}
