//! The changes of objects after which a quota is counted again.

use std::collections::BTreeMap;
use std::sync::{Mutex, OnceLock, PoisonError};

use jiff::Timestamp;
use k8s_openapi::api::core::v1::{Pod, ResourceQuota};
use kube_core::ResourceExt;
use serde_json::Value;
use windlass_kinds::quota::{Evaluator, is_pod_counted};
use windlass_runtime::{
    BoxError, ControllerHandle, Delta, Enqueuer, EventHandler, HandlerContext, KindRef, ObjectKey, RawObject,
    Watch, WatchId,
};

use crate::resources::Resource;

/// The watches of the resources that some quota counts. Each stays open while the controller runs.
#[derive(Default)]
pub(super) struct Monitors {
    handle: OnceLock<ControllerHandle<ObjectKey>>,
    open: Mutex<BTreeMap<(String, String), Option<WatchId>>>,
}

impl Monitors {
    pub(super) fn connect(&self, handle: ControllerHandle<ObjectKey>) {
        let _ = self.handle.set(handle);
    }

    /// Opens the watch of a resource, unless the watch is open already. A watch that cannot be opened is
    /// tried again by the next call.
    pub(super) async fn open(
        &self,
        resource: &Resource,
        evaluator: &Evaluator,
    ) -> windlass_runtime::Result<()> {
        let key = (resource.api.group.clone(), resource.api.plural.clone());
        let Some(handle) = self.handle.get() else { return Ok(()) };
        if self.lock().insert(key.clone(), None).is_some() {
            return Ok(());
        }
        let handler = Replenish { evaluator: evaluator.clone() };
        let kind = KindRef::dynamic(&resource.api);
        let watch = if evaluator.is_count() {
            Watch::with_handler(kind.metadata(), handler)
        } else {
            Watch::with_handler(kind, handler)
        };
        let watch = watch.without_reads();
        match handle.watch(watch).await {
            Ok(id) => {
                self.lock().insert(key, Some(id));
                Ok(())
            }
            Err(error) => {
                self.lock().remove(&key);
                Err(error)
            }
        }
    }

    fn lock(&self) -> std::sync::MutexGuard<'_, BTreeMap<(String, String), Option<WatchId>>> {
        self.open.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Enqueues the quotas of a namespace if the usage may have decreased.
pub(super) struct Replenish {
    pub(super) evaluator: Evaluator,
}

impl EventHandler<ObjectKey> for Replenish {
    fn handle(
        &self,
        delta: &Delta,
        cx: &HandlerContext,
        keys: &mut Enqueuer<'_, ObjectKey>,
    ) -> Result<(), BoxError> {
        let object = delta.object();
        let may_use_less = match delta {
            Delta::Added { .. } => false,
            Delta::Deleted { .. } => true,
            Delta::Updated { old, new } => self.may_use_less(old, new)?,
        };
        let Some(namespace) = object.namespace().filter(|_| may_use_less) else { return Ok(()) };
        for quota in cx.lister::<ResourceQuota>()?.namespace(namespace).all()?.iter() {
            let hard = quota.spec.iter().flat_map(|spec| spec.hard.iter().flatten());
            if hard.into_iter().any(|(name, _)| self.evaluator.uses(name)) {
                keys.add(ObjectKey::namespaced(namespace, &quota.name_any()));
            }
        }
        Ok(())
    }
}

impl Replenish {
    /// Returns whether an update may have decreased the usage.
    fn may_use_less(&self, old: &RawObject, new: &RawObject) -> Result<bool, BoxError> {
        match self.evaluator {
            Evaluator::Count(_) | Evaluator::DeviceClaims => Ok(false),
            Evaluator::Pods => {
                let (old, new) = (old.decode::<Pod>()?, new.decode::<Pod>()?);
                Ok(pod_may_use_less(&old, &new))
            }
            Evaluator::Services | Evaluator::VolumeClaims => {
                let parse = |object: &RawObject| serde_json::from_slice::<Value>(&object.json());
                let (old, new, now) = (parse(old)?, parse(new)?, Timestamp::UNIX_EPOCH);
                Ok(self.evaluator.usage(&old, now) != self.evaluator.usage(&new, now))
            }
        }
    }
}

/// Returns whether a pod has ended, has changed scopes, or runs with other resources.
fn pod_may_use_less(old: &Pod, new: &Pod) -> bool {
    let deadline = |pod: &Pod| pod.spec.as_ref().and_then(|spec| spec.active_deadline_seconds).is_some();
    let phase = |pod: &Pod| pod.status.as_ref().and_then(|status| status.phase.clone());
    let resources = |pod: &Pod| {
        let statuses = pod.status.iter().flat_map(|status| {
            status.container_statuses.iter().chain(&status.init_container_statuses).flatten()
        });
        statuses.map(|status| status.resources.clone()).collect::<Vec<_>>()
    };
    let has_ended = |pod: &Pod| {
        let status = serde_json::json!({"status": {"phase": phase(pod)}});
        !is_pod_counted(&status, Timestamp::UNIX_EPOCH)
    };
    deadline(old) != deadline(new)
        || (!has_ended(old) && has_ended(new))
        || (phase(old) == phase(new) && resources(old) != resources(new))
}
