//! Keeps bound volumes when deleted.

use k8s_openapi::api::core::v1::PersistentVolume;
use windlass_runtime::{Action, Context, Controller, ObjectKey, Result};

use crate::finalizer::{done_unless_failed, is_held, without};

const FINALIZER: &str = "kubernetes.io/pv-protection";

/// Returns the controller.
pub(crate) fn controller() -> Controller {
    Controller::of::<PersistentVolume>(reconcile).named("pv-protection-controller")
}

async fn reconcile(key: ObjectKey, cx: Context<PersistentVolume>) -> Result<Action> {
    let Some(volume) = cx.get(&key)? else { return Ok(Action::done()) };
    let bound = volume.status.as_ref().and_then(|status| status.phase.as_deref()) == Some("Bound");
    if bound || !is_held(&*volume, FINALIZER) {
        return Ok(Action::done());
    }
    let released = cx.update(&without(&*volume, FINALIZER)).await;
    done_unless_failed(released)
}
