//! The revisions of a DaemonSet.

use std::collections::BTreeSet;
use std::sync::Arc;

use k8s_openapi::api::apps::v1::{ControllerRevision, DaemonSet};
use k8s_openapi::api::core::v1::Pod;
use kube_core::ResourceExt;
use windlass_runtime::{Context, Error, Result};

use crate::apps::controller_revision::{self, Choice, POD_REVISION};
use crate::{adoption, pods};

/// The revisions of a set, oldest first, and the hash of the current revision.
pub(super) struct History {
    all: Vec<Arc<ControllerRevision>>,
    pub hash: String,
}

/// Returns the hash that the label of a revision has.
fn hash_of(revision: &ControllerRevision) -> String {
    revision.labels().get(POD_REVISION).cloned().unwrap_or_else(|| revision.name_any())
}

impl History {
    /// Reads the revisions of the set, adopts revisions without an owner, and creates a missing revision of
    /// the template.
    pub(super) async fn load(set: &DaemonSet, cx: &Context<DaemonSet>) -> Result<Self> {
        let (Some(spec), Some(uid)) = (&set.spec, &set.metadata.uid) else {
            return Err(Error::other("a daemon set without a spec"));
        };
        let namespace = set.namespace().unwrap_or_default();
        let found = cx.lister::<ControllerRevision>()?.namespace(&namespace).all()?.complete()?;
        let mut all = adoption::classify(found, &spec.selector, uid).adopt_and_release(set, cx).await?;
        controller_revision::sort(&mut all);
        let data = controller_revision::data_of(&spec.template).map_err(Error::other)?;
        let current = match controller_revision::choose(&all, &data) {
            Choice::Keep(revision) => revision,
            Choice::Renumber(revision, number) => {
                let mut next = (*revision).clone();
                next.revision = number;
                Arc::new(cx.update(&next).await?)
            }
            Choice::Create(number) => {
                let collisions = set.status.as_ref().and_then(|status| status.collision_count).unwrap_or(0);
                let label = (POD_REVISION, collisions, number);
                let revision = controller_revision::new(set, &spec.template, data, label);
                match cx.create(revision).await {
                    Err(error) if error.is_already_exists() => {
                        return collide(set, collisions, cx).await.and(Err(error));
                    }
                    created => Arc::new(created?),
                }
            }
        };
        Ok(Self { hash: hash_of(&current), all })
    }

    /// Deletes the oldest revisions beyond `revisionHistoryLimit` that no pod has.
    pub(super) async fn truncate(
        &self,
        set: &DaemonSet,
        pods: &[Arc<Pod>],
        cx: &Context<DaemonSet>,
    ) -> Result<()> {
        let labels = pods.iter().filter_map(|pod| pods::label(pod, POD_REVISION));
        let in_use: BTreeSet<&str> = labels.chain([self.hash.as_str()]).collect();
        let names = self.all.iter().filter(|revision| in_use.contains(hash_of(revision).as_str()));
        let names: BTreeSet<String> = names.map(|revision| revision.name_any()).collect();
        // Revisions in use count towards the limit, too, except the current revision.
        let old = self.all.iter().filter(|revision| hash_of(revision) != self.hash).count();
        let limit = set.spec.as_ref().and_then(|spec| spec.revision_history_limit).unwrap_or(10);
        let surplus = old.saturating_sub(usize::try_from(limit).unwrap_or(0));
        for revision in controller_revision::surplus(&self.all, &names, Some(0)).iter().take(surplus) {
            cx.delete(&**revision).await?;
        }
        Ok(())
    }
}

/// Counts a collision: another revision has the name. The next attempt uses another name.
async fn collide(set: &DaemonSet, collisions: i32, cx: &Context<DaemonSet>) -> Result<()> {
    let mut status = set.status.clone().unwrap_or_default();
    status.collision_count = Some(collisions.saturating_add(1));
    cx.update_status(set, status).await.map(drop)
}
