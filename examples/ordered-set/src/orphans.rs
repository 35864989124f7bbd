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
///
/// Adopts no pod if the server says that the set is terminating or gone: the garbage collector releases the pods of a set that is deleted
/// with `--cascade=orphan`, and the cache may show the released pods before the deletion of the set.
pub(crate) async fn adopt(cx: &Context<OrderedSet>, set: &OrderedSet) -> Result<()> {
    let name = set.name_any();
    let in_namespace = cx.lister::<Pod>()?.namespace(&set.namespace().unwrap_or_default());
    let orphans = in_namespace.by_index(ORPHANS, &name)?;
    let orphans: Vec<&Pod> = orphans.iter().filter(|pod| pods::index_in(&name, pod).is_some()).collect();
    if orphans.is_empty() || !may_adopt(cx, set).await? {
        return Ok(());
    }
    for pod in orphans {
        let adopted = Pod::clone(pod).controlled_by(set)?;
        let owners = json!({ "metadata": { "ownerReferences": adopted.metadata.owner_references } });
        // Another client may adopt or delete the pod meanwhile.
        let request = cx.patch::<Pod, _>(&ObjectKey::of(pod), &Patch::Merge(owners));
        request.if_resource_version(pod.resource_version().unwrap_or_default()).await?;
    }
    Ok(())
}

/// Asks the server whether a set still exists and is not terminating.
async fn may_adopt(cx: &Context<OrderedSet>, set: &OrderedSet) -> Result<bool> {
    let live = cx.api_reader().get_of(kind::<PartialObjectMeta<OrderedSet>>(), &ObjectKey::of(set)).await?;
    let same = live.filter(|live| live.uid() == set.uid());
    Ok(same.is_some_and(|live| live.metadata.deletion_timestamp.is_none()))
}
