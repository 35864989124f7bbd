//! The phases of volumes, and the volumes of deleted claims.

use k8s_openapi::api::core::v1::{PersistentVolume, PersistentVolumeClaim, PersistentVolumeStatus};
use kube_client::api::Api;
use kube_core::ResourceExt;
use windlass_runtime::{Action, Context, Controller, Error, HandlerContext, ObjectKey, Result};

use super::names::{COMPONENT, PROVISIONED_BY};
use super::provisioner::volume_name;
use crate::storage::storage_class::PROVISIONER;

type Cx = Context<PersistentVolume>;

/// Returns the controller.
pub(crate) fn controller() -> Controller {
    Controller::of::<PersistentVolume>(reconcile)
        .named("persistentvolume-reclaim-controller")
        .watches::<PersistentVolumeClaim>(volume_of_claim)
}

#[expect(clippy::unnecessary_wraps, reason = "the form of a mapper")]
fn volume_of_claim(claim: &PersistentVolumeClaim, _cx: &HandlerContext) -> Result<Vec<ObjectKey>> {
    let bound = claim.spec.iter().filter_map(|spec| spec.volume_name.clone());
    // A volume may be provisioned for a claim that is deleted before the binding.
    Ok(bound.chain([volume_name(claim)]).map(|name| ObjectKey::cluster(&name)).collect())
}

async fn reconcile(key: ObjectKey, cx: Cx) -> Result<Action> {
    let Some(volume) = cx.get(&key)? else { return Ok(Action::done()) };
    let spec = volume.spec.clone().unwrap_or_default();
    let Some(claim) = spec.claim_ref.filter(|claim| claim.uid.as_deref().is_some_and(|uid| !uid.is_empty()))
    else {
        set_phase(&volume, "Available", None, &cx).await?;
        return Ok(Action::done());
    };
    let (namespace, name) = (claim.namespace.unwrap_or_default(), claim.name.unwrap_or_default());
    if let Some(found) = find(&namespace, &name, claim.uid.as_deref(), &cx).await? {
        // The controller of claims ends the binding of a claim that names no volume yet.
        if found.spec.is_some_and(|spec| spec.volume_name == volume.metadata.name) {
            set_phase(&volume, "Bound", None, &cx).await?;
        }
        return Ok(Action::done());
    }
    if phase(&volume) != "Failed" {
        set_phase(&volume, "Released", None, &cx).await?;
    }
    reclaim(&volume, spec.persistent_volume_reclaim_policy.as_deref(), &cx).await?;
    Ok(Action::done())
}

/// Reads the claim with this name and uid. A claim that the cache has not, or has with another uid, is read from the server: a
/// volume must not be deleted by mistake.
async fn find(
    namespace: &str,
    name: &str,
    uid: Option<&str>,
    cx: &Cx,
) -> Result<Option<PersistentVolumeClaim>> {
    let is_same = |claim: &PersistentVolumeClaim| claim.metadata.uid.as_deref() == uid;
    let cached = cx.lister::<PersistentVolumeClaim>()?.get(&ObjectKey::namespaced(namespace, name))?;
    if let Some(claim) = cached.filter(|claim| is_same(claim)) {
        return Ok(Some((*claim).clone()));
    }
    let claims: Api<PersistentVolumeClaim> = Api::namespaced(cx.client().clone(), namespace);
    Ok(claims.get_opt(name).await.map_err(Error::from)?.filter(is_same))
}

/// Deletes a released volume, if the volume's policy says so.
async fn reclaim(volume: &PersistentVolume, policy: Option<&str>, cx: &Cx) -> Result<()> {
    if volume.metadata.deletion_timestamp.is_some() {
        return Ok(());
    }
    let name = volume.name_any();
    match (policy, volume.annotations().get(PROVISIONED_BY).map(String::as_str)) {
        (Some("Delete"), Some(PROVISIONER)) => match cx.delete(volume).await {
            Err(error) if !error.is_not_found() => Err(error),
            _ => Ok(()),
        },
        // Another provisioner deletes the volume.
        (Some("Delete"), Some(_)) => Ok(()),
        (Some("Delete"), None) => {
            let note = format!(
                "error getting deleter volume plugin for volume {name:?}: no deletable volume plugin matched"
            );
            set_phase(volume, "Failed", Some(("VolumeFailedDelete", &note)), cx).await
        }
        (Some("Recycle"), _) => {
            let note = "No recycler plugin found for the volume!";
            set_phase(volume, "Failed", Some(("VolumeFailedRecycle", note)), cx).await
        }
        _ => Ok(()),
    }
}

fn phase(volume: &PersistentVolume) -> &str {
    volume.status.as_ref().and_then(|status| status.phase.as_deref()).unwrap_or_default()
}

/// Writes a new phase, with the Event that explains the phase.
async fn set_phase(
    volume: &PersistentVolume,
    next: &str,
    event: Option<(&str, &str)>,
    cx: &Cx,
) -> Result<()> {
    if phase(volume) == next {
        return Ok(());
    }
    let status = PersistentVolumeStatus {
        phase: Some(next.to_owned()),
        message: event.map(|(_, note)| note.to_owned()),
        ..volume.status.clone().unwrap_or_default()
    };
    cx.update_status(volume, status).await?;
    if let Some((reason, note)) = event {
        cx.recorder().named(COMPONENT).warning(volume, reason, note);
    }
    Ok(())
}
