//! Keeps bound volumes, and used volume attributes classes, when deleted.

use k8s_openapi::api::core::v1::{PersistentVolume, PersistentVolumeClaim};
use k8s_openapi::api::storage::v1::VolumeAttributesClass;
use kube_core::{Resource, ResourceExt};
use windlass_runtime::{Action, Context, Controller, HandlerContext, ObjectKey, Result};

const VOLUME_FINALIZER: &str = "kubernetes.io/pv-protection";
const CLASS_FINALIZER: &str = "kubernetes.io/vac-protection";

/// Returns the controller of volumes.
pub(crate) fn volumes() -> Controller {
    Controller::of::<PersistentVolume>(release_volume).named("pv-protection-controller")
}

/// Returns the controller of volume attributes classes.
pub(crate) fn classes() -> Controller {
    Controller::of::<VolumeAttributesClass>(release_class)
        .named("volumeattributesclass-protection-controller")
        .watches::<PersistentVolume>(classes_of_volume)
        .watches::<PersistentVolumeClaim>(classes_of_claim)
}

async fn release_volume(key: ObjectKey, cx: Context<PersistentVolume>) -> Result<Action> {
    let Some(volume) = cx.get(&key)? else { return Ok(Action::done()) };
    let bound = volume.status.as_ref().and_then(|status| status.phase.as_deref()) == Some("Bound");
    if bound || !is_held(&*volume, VOLUME_FINALIZER) {
        return Ok(Action::done());
    }
    let released = cx.update(&without(&*volume, VOLUME_FINALIZER)).await;
    done_unless_failed(released)
}

async fn release_class(key: ObjectKey, cx: Context<VolumeAttributesClass>) -> Result<Action> {
    let Some(class) = cx.get(&key)? else { return Ok(Action::done()) };
    if !is_held(&*class, CLASS_FINALIZER) {
        return Ok(Action::done());
    }
    let volumes = cx.lister::<PersistentVolume>()?.all()?.complete()?;
    let claims = cx.lister::<PersistentVolumeClaim>()?.all()?.complete()?;
    let used = volumes.iter().any(|volume| volume_class(volume).any(|name| name == key.name()))
        || claims.iter().any(|claim| claim_classes(claim).any(|name| name == key.name()));
    if used {
        return Ok(Action::done());
    }
    let released = cx.update(&without(&*class, CLASS_FINALIZER)).await;
    done_unless_failed(released)
}

/// Returns whether an object that is being deleted waits for the finalizer.
fn is_held(object: &impl Resource, finalizer: &str) -> bool {
    let held = object.finalizers().iter().any(|other| other == finalizer);
    held && object.meta().deletion_timestamp.is_some()
}

/// Returns the object without the finalizer.
fn without<K: Resource + Clone>(object: &K, finalizer: &str) -> K {
    let mut next = object.clone();
    next.finalizers_mut().retain(|other| other != finalizer);
    next
}

/// Returns the end of a reconcile that has released an object. A deleted object is not an error.
fn done_unless_failed<K>(released: Result<K>) -> Result<Action> {
    match released {
        Err(error) if !error.is_not_found() => Err(error),
        _ => Ok(Action::done()),
    }
}

#[expect(clippy::unnecessary_wraps, reason = "the form of a mapper")]
fn classes_of_volume(volume: &PersistentVolume, _cx: &HandlerContext) -> Result<Vec<ObjectKey>> {
    Ok(volume_class(volume).map(ObjectKey::cluster).collect())
}

#[expect(clippy::unnecessary_wraps, reason = "the form of a mapper")]
fn classes_of_claim(claim: &PersistentVolumeClaim, _cx: &HandlerContext) -> Result<Vec<ObjectKey>> {
    Ok(claim_classes(claim).map(ObjectKey::cluster).collect())
}

fn volume_class(volume: &PersistentVolume) -> impl Iterator<Item = &str> {
    volume.spec.iter().filter_map(|spec| spec.volume_attributes_class_name.as_deref())
}

/// Returns the classes that a claim asks for, has, and is being changed to.
fn claim_classes(claim: &PersistentVolumeClaim) -> impl Iterator<Item = &str> {
    let wanted = claim.spec.iter().filter_map(|spec| spec.volume_attributes_class_name.as_deref());
    let status = claim.status.as_ref();
    let current = status.and_then(|status| status.current_volume_attributes_class_name.as_deref());
    let target = status
        .and_then(|status| status.modify_volume_status.as_ref())
        .and_then(|change| change.target_volume_attributes_class_name.as_deref());
    wanted.chain(current).chain(target).filter(|name| !name.is_empty())
}
