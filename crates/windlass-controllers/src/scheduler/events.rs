//! The watches of the scheduler: each change updates the state at once.

use std::sync::Arc;

use k8s_openapi::api::core::v1::{Namespace, Node, PersistentVolume, PersistentVolumeClaim, Pod};
use k8s_openapi::api::policy::v1::PodDisruptionBudget;
use k8s_openapi::api::storage::v1::StorageClass;
use kube_core::{PartialObjectMeta, ResourceExt};
use windlass_runtime::{
    BoxError, Controller, Delta, Enqueuer, Error, EventHandler, HandlerContext, ObjectKey, Result, Watch,
    kind,
};

use super::cluster::PodFacts;
use super::state::SharedState;
use crate::pods::is_lenient;

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

/// Returns the claim that a volume is bound to or reserved for.
fn claim_of(volume: &PersistentVolume) -> Option<ObjectKey> {
    let claim = volume.spec.as_ref()?.claim_ref.as_ref()?;
    Some(ObjectKey::new(claim.namespace.as_deref(), claim.name.as_deref()?))
}

fn uses(pod: &ObjectKey, facts: &PodFacts, claim: &ObjectKey) -> bool {
    pod.namespace() == claim.namespace() && facts.claims.iter().any(|name| name == claim.name())
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
        let frees_pods = namespace.as_ref().is_some_and(|namespace| is_lenient(namespace.annotations()));
        observed.observe_namespace(key.name(), namespace.map(|namespace| namespace.labels().clone()));
        if frees_pods {
            observed.wake_namespace(key.name());
        }
        Ok(())
    };
    let observed = Arc::clone(state);
    let claims = move |delta: &Delta, _: &HandlerContext| {
        let claim = delta.object().key();
        observed.observe_volumes(|pod, facts| uses(pod, facts, &claim));
        Ok(())
    };
    let observed = Arc::clone(state);
    let volumes = move |delta: &Delta, _: &HandlerContext| {
        let mut bound = Vec::new();
        for state in delta.states() {
            bound.extend(claim_of(&*state.decode::<PersistentVolume>().map_err(Error::other)?));
        }
        observed.observe_volumes(|pod, facts| bound.iter().any(|claim| uses(pod, facts, claim)));
        Ok(())
    };
    let observed = Arc::clone(state);
    let classes = move |_: &Delta, _: &HandlerContext| {
        observed.observe_volumes(|_, _| true);
        Ok(())
    };
    controller
        .watch(Watch::with_handler(kind::<Pod>(), Observer(pods)))
        .watch(Watch::with_handler(kind::<Node>(), Observer(nodes)))
        .watch(Watch::with_handler(kind::<PartialObjectMeta<Namespace>>(), Observer(namespaces)))
        .watch(Watch::with_handler(kind::<PersistentVolumeClaim>(), Observer(claims)))
        .watch(Watch::with_handler(kind::<PersistentVolume>(), Observer(volumes)))
        .watch(Watch::with_handler(kind::<StorageClass>(), Observer(classes)))
        .reads::<PodDisruptionBudget>()
}
