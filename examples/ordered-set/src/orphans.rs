//! Adopts the pods that an earlier set of the same name has left: `kubectl delete --cascade=orphan` removes
//! the owner of the pods, and the next set takes the pods over.

use k8s_openapi::api::core::v1::Pod;
use kube::api::Patch;
use serde_json::json;
use windlass::{
    RawObject,
    informer::{CacheOptions, IndexFn},
    prelude::*,
};

use crate::{OrderedSet, pods};

/// The index of pods without a controller by the set in the label.
const ORPHANS: &str = "orphans";

/// Returns the options of the watch of pods.
pub(crate) fn options() -> CacheOptions {
    CacheOptions::new().index(ORPHANS, IndexFn::new(set_of_orphan))
}

fn set_of_orphan(pod: &RawObject) -> Vec<String> {
    let is_orphan = pod.controller_owner().is_none() && pod.deletion_timestamp().is_none();
    pod.label(pods::SET).filter(|_| is_orphan).map(ToOwned::to_owned).into_iter().collect()
}

/// Makes a set the owner of pods without an owner. The label and the name of the pods belong to the set.
pub(crate) async fn adopt(cx: &Context<OrderedSet>, set: &OrderedSet) -> Result<()> {
    let name = set.name_any();
    let in_namespace = cx.lister::<Pod>()?.namespace(&set.namespace().unwrap_or_default());
    for pod in &in_namespace.by_index(ORPHANS, &name)? {
        if pods::index_in(&name, pod).is_none() {
            continue;
        }
        let adopted = Pod::clone(pod).controlled_by(set)?;
        let owners = json!({ "metadata": { "ownerReferences": adopted.metadata.owner_references } });
        // Another client may adopt or delete the pod meanwhile.
        let request = cx.patch::<Pod, _>(&ObjectKey::of(pod), &Patch::Merge(owners));
        request.if_resource_version(pod.resource_version().unwrap_or_default()).await?;
    }
    Ok(())
}
