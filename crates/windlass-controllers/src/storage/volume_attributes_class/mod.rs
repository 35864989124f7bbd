//! Keeps used volume attributes classes when deleted.

use k8s_openapi::api::core::v1::{PersistentVolume, PersistentVolumeClaim};
use k8s_openapi::api::storage::v1::VolumeAttributesClass;
use windlass_runtime::{Action, Context, Controller, HandlerContext, ObjectKey, Result};

use crate::finalizer::{done_unless_failed, is_held, without};

const FINALIZER: &str = "kubernetes.io/vac-protection";

/// Returns the controller.
pub(crate) fn protection() -> Controller {
    Controller::of::<VolumeAttributesClass>(reconcile)
        .named("volumeattributesclass-protection-controller")
        .watches::<PersistentVolume>(classes_of_volume)
        .watches::<PersistentVolumeClaim>(classes_of_claim)
}

async fn reconcile(key: ObjectKey, cx: Context<VolumeAttributesClass>) -> Result<Action> {
    let Some(class) = cx.get(&key)? else { return Ok(Action::done()) };
    if !is_held(&*class, FINALIZER) {
        return Ok(Action::done());
    }
    let volumes = cx.lister::<PersistentVolume>()?.all()?.complete()?;
    let claims = cx.lister::<PersistentVolumeClaim>()?.all()?.complete()?;
    let used = volumes.iter().any(|volume| volume_class(volume).any(|name| name == key.name()))
        || claims.iter().any(|claim| claim_classes(claim).any(|name| name == key.name()));
    if used {
        return Ok(Action::done());
    }
    let released = cx.update(&without(&*class, FINALIZER)).await;
    done_unless_failed(released)
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
