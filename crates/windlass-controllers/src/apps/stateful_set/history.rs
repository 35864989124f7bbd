//! The revisions of a StatefulSet: finds or creates the revision of the current template, and deletes old
//! revisions.

use std::collections::BTreeSet;
use std::sync::Arc;

use k8s_openapi::api::apps::v1::{ControllerRevision, StatefulSet};
use k8s_openapi::api::core::v1::Pod;
use kube_core::ResourceExt;
use windlass_runtime::{Context, Error, ObjectKey, Result};

use super::plan::Version;
use crate::apps::controller_revision::{self, Choice, POD_REVISION};
use crate::{adoption, pods};

const HASH_LABEL: &str = "controller.kubernetes.io/hash";

/// The revisions of a set: all, oldest first, and the two in use.
pub(super) struct History {
    all: Vec<Arc<ControllerRevision>>,
    pub current: Version,
    pub update: Version,
    pub collisions: i32,
}

impl History {
    /// Reads the revisions of the set, adopts revisions without an owner, and creates a missing revision of
    /// the template.
    pub(super) async fn load(set: &StatefulSet, cx: &Context<StatefulSet>) -> Result<Self> {
        let (Some(spec), Some(uid)) = (&set.spec, &set.metadata.uid) else {
            return Err(Error::other("a stateful set without a spec"));
        };
        let namespace = set.namespace().unwrap_or_default();
        let found = cx.lister::<ControllerRevision>()?.namespace(&namespace).all()?.complete()?;
        let mut all = adoption::classify(found, &spec.selector, uid).adopt_and_release(set, cx).await?;
        controller_revision::sort(&mut all);
        let mut collisions = set.status.as_ref().and_then(|status| status.collision_count).unwrap_or(0);
        let data = controller_revision::data_of(&spec.template).map_err(Error::other)?;
        let update = match controller_revision::choose(&all, &data) {
            Choice::Keep(revision) => revision,
            Choice::Renumber(revision, number) => {
                let mut next = (*revision).clone();
                next.revision = number;
                Arc::new(cx.update(&next).await?)
            }
            Choice::Create(number) => Arc::new(create(set, number, &mut collisions, cx).await?),
        };
        let current = set.status.as_ref().and_then(|status| status.current_revision.as_ref());
        let current = all.iter().find(|revision| revision.metadata.name.as_ref() == current);
        let version = |revision: &ControllerRevision| Version {
            name: revision.name_any(),
            template: controller_revision::template_of(revision).unwrap_or_else(|| spec.template.clone()),
        };
        let current = current.map_or_else(|| version(&update), |revision| version(revision));
        let update = Version { name: update.name_any(), template: spec.template.clone() };
        Ok(Self { all, current, update, collisions })
    }

    /// Deletes the oldest revisions beyond `revisionHistoryLimit` that no pod has.
    pub(super) async fn truncate(
        &self,
        set: &StatefulSet,
        pods: &[Arc<Pod>],
        cx: &Context<StatefulSet>,
    ) -> Result<()> {
        let labels = pods.iter().filter_map(|pod| pods::label(pod, POD_REVISION)).map(str::to_owned);
        let in_use: BTreeSet<String> =
            labels.chain([self.current.name.clone(), self.update.name.clone()]).collect();
        let limit = set.spec.as_ref().and_then(|spec| spec.revision_history_limit);
        for revision in controller_revision::surplus(&self.all, &in_use, limit) {
            cx.delete(&*revision).await?;
        }
        Ok(())
    }
}

/// Creates the revision of the current template. A name that a revision with other data has counts as a collision.
async fn create(
    set: &StatefulSet,
    number: i64,
    collisions: &mut i32,
    cx: &Context<StatefulSet>,
) -> Result<ControllerRevision> {
    let template = set.spec.clone().unwrap_or_default().template;
    let data = controller_revision::data_of(&template).map_err(Error::other)?;
    let revision = controller_revision::new(set, &template, data.clone(), (HASH_LABEL, *collisions, number));
    let name = revision.name_any();
    match cx.create(revision).await {
        Err(error) if error.is_already_exists() => {
            let key = ObjectKey::namespaced(&set.namespace().unwrap_or_default(), &name);
            let Some(found) = cx.lister::<ControllerRevision>()?.get(&key)? else { return Err(error) };
            let same = |found: &ControllerRevision| {
                found.data.as_ref().is_some_and(|d| {
                    controller_revision::canonical(&d.0) == controller_revision::canonical(&data)
                })
            };
            if same(&found) {
                return Ok((*found).clone());
            }
            *collisions = collisions.saturating_add(1);
            Box::pin(create(set, number, collisions, cx)).await
        }
        other => other,
    }
}
