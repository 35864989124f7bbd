//! The watches of the scheduler: each change updates the state at once.

use std::sync::Arc;

use k8s_openapi::api::core::v1::{Namespace, Node, PersistentVolume, PersistentVolumeClaim, Pod};
use k8s_openapi::api::policy::v1::PodDisruptionBudget;
use k8s_openapi::api::storage::v1::StorageClass;
use kube_core::{PartialObjectMeta, ResourceExt};
use windlass_runtime::{
    BoxError, Controller, Delta, Enqueuer, EventHandler, HandlerContext, ObjectKey, Result, Watch, kind,
};

use super::state::SharedState;

/// An event handler that only calls a function with each change.
struct Observer<F>(F);

impl<F> EventHandler<ObjectKey> for Observer<F>
where
    F: Fn(&Delta, &HandlerContext) -> Result<()> + Send + Sync + 'static,
{
    fn handle(
        &self,
        delta: &Delta,
        cx: &HandlerContext,
        _: &mut Enqueuer<'_, ObjectKey>,
    ) -> Result<(), BoxError> {
        (self.0)(delta, cx).map_err(Into::into)
    }
}

fn is_gone(delta: &Delta) -> bool {
    matches!(delta, Delta::Deleted { .. })
}

/// Adds the watches to the controller.
pub(super) fn watch(controller: Controller, state: &Arc<SharedState>) -> Controller {
    let observed = Arc::clone(state);
    let pods = move |delta: &Delta, cx: &HandlerContext| {
        let key = delta.object().key();
        // The newest state: an older state in the change adds nothing.
        let pod = if is_gone(delta) { None } else { cx.lister::<Pod>()?.get(&key)? };
        observed.observe_pod(&key, pod.as_deref());
        Ok(())
    };
    let observed = Arc::clone(state);
    let nodes = move |delta: &Delta, cx: &HandlerContext| {
        let key = delta.object().key();
        let node = if is_gone(delta) { None } else { cx.lister::<Node>()?.get(&key)? };
        observed.observe_node(key.name(), node.as_deref());
        Ok(())
    };
    let observed = Arc::clone(state);
    let namespaces = move |delta: &Delta, cx: &HandlerContext| {
        let key = delta.object().key();
        let namespace =
            if is_gone(delta) { None } else { cx.lister::<PartialObjectMeta<Namespace>>()?.get(&key)? };
        observed.observe_namespace(key.name(), namespace.map(|namespace| namespace.labels().clone()));
        Ok(())
    };
    let volumes = |state: &Arc<SharedState>| {
        let observed = Arc::clone(state);
        Observer(move |_: &Delta, _: &HandlerContext| {
            observed.observe_volumes();
            Ok(())
        })
    };
    controller
        .watch(Watch::with_handler(kind::<Pod>(), Observer(pods)))
        .watch(Watch::with_handler(kind::<Node>(), Observer(nodes)))
        .watch(Watch::with_handler(kind::<PartialObjectMeta<Namespace>>(), Observer(namespaces)))
        .watch(Watch::with_handler(kind::<PersistentVolumeClaim>(), volumes(state)))
        .watch(Watch::with_handler(kind::<PersistentVolume>(), volumes(state)))
        .watch(Watch::with_handler(kind::<StorageClass>(), volumes(state)))
        .reads::<PodDisruptionBudget>()
}
