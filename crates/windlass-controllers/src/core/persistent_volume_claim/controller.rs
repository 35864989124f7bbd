//! Binds each claim to a volume.

use std::cmp::Reverse;
use std::collections::BTreeMap;
use std::sync::Arc;

use k8s_openapi::api::core::v1::{
    Node, PersistentVolume, PersistentVolumeClaim, PersistentVolumeClaimStatus, PersistentVolumeStatus,
};
use k8s_openapi::api::storage::v1::StorageClass;
use kube_client::api::Patch;
use kube_core::ResourceExt;
use serde_json::json;
use windlass_runtime::events::Recorder;
use windlass_runtime::{Action, Context, Controller, HandlerContext, ObjectKey, Result};

use crate::core::persistent_volume::{
    self, ASKED_PROVISIONERS, BIND_COMPLETED, BOUND_BY_CONTROLLER, COMPONENT, PROVISIONED_BY, SELECTED_NODE,
    best_match, capacity, class_of, is_reserved_for, lacks_class, mismatch, reference, requested, volume_of,
};
use crate::storage::storage_class::{PROVISIONER, can_provision, is_default, waits_for_consumer};

type Cx = Context<PersistentVolumeClaim>;

/// Returns the controller.
pub(crate) fn controller() -> Controller {
    // One worker: two claims never bind the same volume.
    Controller::of::<PersistentVolumeClaim>(reconcile)
        .named("persistentvolume-binder-controller")
        .watches::<PersistentVolume>(claims_of_volume)
        .watches::<StorageClass>(claims_of_class)
        .reads::<Node>()
}

/// Returns the claim of a volume, or all claims without a volume if the volume is free.
fn claims_of_volume(volume: &PersistentVolume, cx: &HandlerContext) -> Result<Vec<ObjectKey>> {
    let bound = volume.spec.as_ref().and_then(|spec| spec.claim_ref.as_ref());
    let Some(claim) = bound else { return unbound_claims(cx, |_| true) };
    Ok(vec![ObjectKey::new(claim.namespace.as_deref(), claim.name.as_deref().unwrap_or_default())])
}

fn claims_of_class(class: &StorageClass, cx: &HandlerContext) -> Result<Vec<ObjectKey>> {
    let name = class.name_any();
    let is_default = is_default(class);
    unbound_claims(cx, |claim| class_of(claim) == name || (is_default && lacks_class(claim)))
}

fn unbound_claims(
    cx: &HandlerContext,
    matches: impl Fn(&PersistentVolumeClaim) -> bool,
) -> Result<Vec<ObjectKey>> {
    let claims = cx.lister::<PersistentVolumeClaim>()?.all()?;
    let unbound = claims.iter().filter(|claim| !claim.annotations().contains_key(BIND_COMPLETED));
    let matching = unbound.filter(|claim| matches(claim));
    Ok(matching.map(|claim| ObjectKey::new(claim.metadata.namespace.as_deref(), &claim.name_any())).collect())
}

async fn reconcile(key: ObjectKey, cx: Cx) -> Result<Action> {
    let Some(claim) = cx.get(&key)?.filter(|claim| claim.metadata.deletion_timestamp.is_none()) else {
        return Ok(Action::done());
    };
    if claim.annotations().contains_key(BIND_COMPLETED) {
        keep_bound(&claim, &cx).await?;
    } else if volume_of(&claim).is_empty() {
        Box::pin(find_volume(&claim, &cx)).await?;
    } else {
        take_named_volume(&claim, &cx).await?;
    }
    Ok(Action::done())
}

/// Binds a claim that names no volume to the best volume, or provisions a volume.
async fn find_volume(claim: &PersistentVolumeClaim, cx: &Cx) -> Result<()> {
    let class_name = class_of(claim);
    let class = match class_name {
        "" => None,
        name => cx.lister::<StorageClass>()?.get(&ObjectKey::cluster(name))?,
    };
    let node = selected_node(claim, cx)?;
    let is_delayed = class.as_ref().is_some_and(|class| waits_for_consumer(class));
    let volumes = cx.lister::<PersistentVolume>()?.all()?.complete()?;
    let labels = node.as_ref().map(|node| (node.name_any(), node.labels().clone()));
    let on_node = labels.as_ref().map(|(name, labels)| (name.as_str(), labels));
    let waits = is_delayed && !claim.annotations().contains_key(SELECTED_NODE);
    if let Some(volume) = best_match(claim, volumes.iter(), on_node, waits) {
        return bind(claim, volume, cx).await;
    }
    if lacks_class(claim)
        && let Some(default) = default_class(cx)?
    {
        // The event of the claim reconciles the claim again.
        let patch = Patch::Merge(json!({"spec": {"storageClassName": default}}));
        return cx.patch::<PersistentVolumeClaim, _>(&key_of(claim), &patch).await.map(drop);
    }
    let recorder = recorder(cx);
    match class {
        _ if waits => recorder.normal(
            claim,
            "WaitForFirstConsumer",
            "waiting for first consumer to be created before binding",
        ),
        Some(class) if can_provision(&class) => {
            return Box::pin(provision(claim, &class, node.as_deref(), cx)).await;
        }
        Some(_) if is_delayed => return reschedule(claim, cx).await,
        Some(class) => {
            let note = format!("no volume plugin matched name: {}", class.provisioner);
            recorder.warning(claim, "ProvisioningFailed", note);
        }
        None if class_name.is_empty() => recorder.normal(
            claim,
            "FailedBinding",
            "no persistent volumes available for this claim and no storage class is set",
        ),
        None => {
            let note = format!("storageclass.storage.k8s.io {class_name:?} not found");
            recorder.warning(claim, "ProvisioningFailed", note);
        }
    }
    Ok(())
}

/// Returns the default class: of several, the newest.
fn default_class(cx: &Cx) -> Result<Option<String>> {
    let classes = cx.lister::<StorageClass>()?.all()?;
    let newest_last = |class: &&StorageClass| {
        (class.metadata.creation_timestamp.as_ref().map(|time| time.0), Reverse(class.name_any()))
    };
    let default = classes.iter().filter(|class| is_default(class)).max_by_key(newest_last);
    Ok(default.map(ResourceExt::name_any))
}

fn recorder(cx: &Cx) -> Recorder {
    cx.recorder().named(COMPONENT)
}

fn selected_node(claim: &PersistentVolumeClaim, cx: &Cx) -> Result<Option<Arc<Node>>> {
    let Some(name) = claim.annotations().get(SELECTED_NODE) else { return Ok(None) };
    cx.lister::<Node>()?.get(&ObjectKey::cluster(name))
}

/// Asks the scheduler for another node: no volume can be used on the selected node.
async fn reschedule(claim: &PersistentVolumeClaim, cx: &Cx) -> Result<()> {
    let patch = Patch::Merge(json!({"metadata": {"annotations": {SELECTED_NODE: null}}}));
    cx.patch::<PersistentVolumeClaim, _>(&key_of(claim), &patch).await.map(drop)
}

async fn provision(
    claim: &PersistentVolumeClaim,
    class: &StorageClass,
    node: Option<&Node>,
    cx: &Cx,
) -> Result<()> {
    let asked = ASKED_PROVISIONERS.map(|key| (key.to_owned(), class.provisioner.clone()));
    if asked.iter().any(|(key, value)| claim.annotations().get(key) != Some(value)) {
        let patch = Patch::Merge(json!({"metadata": {"annotations": BTreeMap::from(asked)}}));
        cx.patch::<PersistentVolumeClaim, _>(&key_of(claim), &patch).await?;
    }
    if class.provisioner != PROVISIONER {
        let note = format!(
            "Waiting for a volume to be created either by the external provisioner '{}' or manually by the system \
             administrator. If volume creation is delayed, please verify that the provisioner is running and correctly \
             registered.",
            class.provisioner
        );
        recorder(cx).normal(claim, "ExternalProvisioning", note);
        return Ok(());
    }
    let recorder = cx.recorder().named(PROVISIONER);
    let volume = persistent_volume::volume(claim, class, node);
    let name = volume.name_any();
    recorder.normal(
        claim,
        "Provisioning",
        format!("External provisioner is provisioning volume for claim \"{}\"", key_of(claim)),
    );
    match cx.create(volume).await {
        Ok(volume) => {
            recorder.normal(
                claim,
                "ProvisioningSucceeded",
                format!("Successfully provisioned volume {name}"),
            );
            bind(claim, &volume, cx).await
        }
        // The event of the volume reconciles the claim again.
        Err(error) if error.is_already_exists() => Ok(()),
        Err(error) => Err(error),
    }
}

/// Binds a claim to the volume that a user has written into the claim.
async fn take_named_volume(claim: &PersistentVolumeClaim, cx: &Cx) -> Result<()> {
    let name = volume_of(claim);
    let Some(volume) = cx.lister::<PersistentVolume>()?.get(&ObjectKey::cluster(name))? else {
        return Ok(());
    };
    let is_free = volume.spec.as_ref().is_none_or(|spec| spec.claim_ref.is_none());
    if is_free && let Some(reason) = mismatch(claim, &volume) {
        let note = format!("Cannot bind to requested volume {name:?}: {reason}");
        recorder(cx).warning(claim, "VolumeMismatch", note);
        return Ok(());
    }
    if !is_free && !is_reserved_for(&volume, claim) {
        let note = format!("volume {name:?} already bound to a different claim.");
        recorder(cx).warning(claim, "FailedBinding", note);
        return Ok(());
    }
    bind(claim, &volume, cx).await
}

/// Checks a bound claim, and changes the size of the volume if the claim asks for more.
async fn keep_bound(claim: &PersistentVolumeClaim, cx: &Cx) -> Result<()> {
    let volume = match volume_of(claim) {
        "" => {
            return lose(
                claim,
                "ClaimLost",
                "Bound claim has lost reference to PersistentVolume. Data on the volume is lost!",
                cx,
            )
            .await;
        }
        name => cx.lister::<PersistentVolume>()?.get(&ObjectKey::cluster(name))?,
    };
    let Some(volume) = volume else {
        return lose(
            claim,
            "ClaimLost",
            "Bound claim has lost its PersistentVolume. Data on the volume is lost!",
            cx,
        )
        .await;
    };
    let bound_to =
        volume.spec.as_ref().and_then(|spec| spec.claim_ref.as_ref()).map(|claim| claim.uid.clone());
    if bound_to.is_some_and(|uid| uid != claim.metadata.uid) {
        return lose(
            claim,
            "ClaimMisbound",
            "Two claims are bound to the same volume, this one is bound incorrectly",
            cx,
        )
        .await;
    }
    let is_ours = volume.annotations().get(PROVISIONED_BY).is_some_and(|by| by == PROVISIONER);
    if is_ours && capacity(&volume) < requested(claim) {
        return expand(claim, &volume, cx).await;
    }
    bind(claim, &volume, cx).await
}

/// Enlarges a simulated volume.
async fn expand(claim: &PersistentVolumeClaim, volume: &PersistentVolume, cx: &Cx) -> Result<()> {
    let recorder = cx.recorder().named("external-resizer simulated.windlass.dev");
    let name = volume.name_any();
    recorder.normal(claim, "Resizing", format!("External resizer is resizing volume {name}"));
    let requests = claim.spec.as_ref().and_then(|spec| spec.resources.as_ref()?.requests.as_ref());
    let size = requests.and_then(|requests| requests.get("storage"));
    let patch = Patch::Merge(json!({"spec": {"capacity": {"storage": size}}}));
    let volume = cx.patch::<PersistentVolume, _>(&ObjectKey::cluster(&name), &patch).await?;
    bind(claim, &volume, cx).await?;
    recorder.normal(claim, "VolumeResizeSuccessful", "Resize volume succeeded");
    Ok(())
}

async fn lose(claim: &PersistentVolumeClaim, reason: &str, note: &str, cx: &Cx) -> Result<()> {
    let mut status = claim.status.clone().unwrap_or_default();
    if status.phase.as_deref() == Some("Lost") {
        return Ok(());
    }
    status.phase = Some("Lost".to_owned());
    (status.access_modes, status.capacity) = (None, None);
    cx.update_status(claim, status).await?;
    recorder(cx).warning(claim, reason, note);
    Ok(())
}

/// Writes the binding into both objects. Writes that are made already are left out.
async fn bind(claim: &PersistentVolumeClaim, volume: &PersistentVolume, cx: &Cx) -> Result<()> {
    let volume = bind_volume(claim, volume, cx).await?;
    let mut next = claim.clone();
    let was_free = volume_of(claim).is_empty();
    next.spec.get_or_insert_default().volume_name = Some(volume.name_any());
    if was_free {
        next.annotations_mut().insert(BOUND_BY_CONTROLLER.to_owned(), "yes".to_owned());
    }
    next.annotations_mut().insert(BIND_COMPLETED.to_owned(), "yes".to_owned());
    let next = if next == *claim { next } else { cx.update(&next).await? };
    let spec = volume.spec.unwrap_or_default();
    let status = PersistentVolumeClaimStatus {
        phase: Some("Bound".to_owned()),
        access_modes: spec.access_modes,
        capacity: spec.capacity,
        current_volume_attributes_class_name: spec.volume_attributes_class_name,
        ..next.status.clone().unwrap_or_default()
    };
    if next.status.as_ref() != Some(&status) {
        cx.update_status(&next, status).await?;
    }
    Ok(())
}

async fn bind_volume(
    claim: &PersistentVolumeClaim,
    volume: &PersistentVolume,
    cx: &Cx,
) -> Result<PersistentVolume> {
    let mut next = volume.clone();
    if !is_reserved_for(volume, claim) {
        next.annotations_mut().insert(BOUND_BY_CONTROLLER.to_owned(), "yes".to_owned());
    }
    let spec = next.spec.get_or_insert_default();
    if spec.claim_ref.as_ref().is_none_or(|reference| reference.uid != claim.metadata.uid) {
        spec.claim_ref = Some(reference(claim));
    }
    let next = if next == *volume { next } else { cx.update(&next).await? };
    let phase = next.status.as_ref().and_then(|status| status.phase.as_deref());
    if phase != Some("Bound") {
        let status = PersistentVolumeStatus {
            phase: Some("Bound".to_owned()),
            ..next.status.clone().unwrap_or_default()
        };
        cx.update_status(&next, status).await?;
    }
    Ok(next)
}

fn key_of(claim: &PersistentVolumeClaim) -> ObjectKey {
    ObjectKey::new(claim.metadata.namespace.as_deref(), &claim.name_any())
}
