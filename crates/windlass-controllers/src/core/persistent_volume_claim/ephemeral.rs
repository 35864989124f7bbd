//! Creates the claims of ephemeral volumes: each pod gets a claim of its own for each such volume.

use k8s_openapi::api::core::v1::{PersistentVolumeClaim, Pod, Volume};
use kube_core::{ObjectMeta, ResourceExt};
use windlass_runtime::{Action, Context, Controller, Error, ObjectKey, Predicate, Result};

use crate::adoption;
use crate::pod_control::message_of;

/// Returns the controller.
pub(crate) fn controller() -> Controller {
    // The volumes of a pod never change, and the status of a pod changes often.
    Controller::of::<Pod>(reconcile)
        .named("ephemeral_volume")
        .predicate(Predicate::generation_changed())
        .owns::<PersistentVolumeClaim>()
}

async fn reconcile(key: ObjectKey, cx: Context<Pod>) -> Result<Action> {
    let Some(pod) = cx.get(&key)?.filter(|pod| pod.metadata.deletion_timestamp.is_none()) else {
        return Ok(Action::done());
    };
    let volumes = pod.spec.iter().flat_map(|spec| spec.volumes.iter().flatten());
    for volume in volumes.filter(|volume| volume.ephemeral.is_some()) {
        if let Err(why) = ensure_claim(&pod, volume, &cx).await? {
            let message = format!("ephemeral volume {}: {why}", volume.name);
            cx.recorder().warning(&*pod, "FailedBinding", message.as_str());
            return Err(Error::other(format!("pod {key}, {message}")));
        }
    }
    Ok(Action::done())
}

/// Creates the claim of a volume, unless the claim exists. The inner error says why the pod cannot have the claim.
async fn ensure_claim(
    pod: &Pod,
    volume: &Volume,
    cx: &Context<Pod>,
) -> Result<std::result::Result<(), String>> {
    let (namespace, name) = (pod.namespace().unwrap_or_default(), pod.name_any());
    let claim_name = format!("{name}-{}", volume.name);
    let key = ObjectKey::namespaced(&namespace, &claim_name);
    if let Some(claim) = cx.lister::<PersistentVolumeClaim>()?.get(&key)? {
        let is_own = adoption::controller_of(&*claim)
            .is_some_and(|owner| Some(&owner.uid) == pod.metadata.uid.as_ref());
        let message = format!(
            "PVC {namespace}/{claim_name} was not created for pod {namespace}/{name} (pod is not owner)"
        );
        return Ok(if is_own { Ok(()) } else { Err(message) });
    }
    let template = volume.ephemeral.as_ref().and_then(|source| source.volume_claim_template.clone());
    let template = template.unwrap_or_default();
    let metadata = template.metadata.unwrap_or_default();
    let claim = PersistentVolumeClaim {
        metadata: ObjectMeta {
            name: Some(claim_name.clone()),
            namespace: Some(namespace),
            labels: metadata.labels,
            annotations: metadata.annotations,
            owner_references: adoption::controller_reference(pod).map(|owner| vec![owner]),
            ..ObjectMeta::default()
        },
        spec: Some(template.spec),
        status: None,
    };
    match cx.create(claim).await {
        Ok(_) => Ok(Ok(())),
        Err(error) => Ok(Err(format!("create PVC {claim_name}: {}", message_of(&error)))),
    }
}
