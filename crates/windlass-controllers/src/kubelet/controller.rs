//! The kubelet's shell: takes each pod of its node one step further and writes down what became of it.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use k8s_openapi::api::core::v1::{Pod, PodStatus};
use kube_client::api::{Api, DeleteParams, PostParams, Preconditions};
use kube_core::{Resource, ResourceExt};
use windlass_runtime::{Action, Context, Controller, Error, ObjectKey, Reconciler, Result};

use super::addresses::Addresses;
use super::lifecycle::{Memory, Place, advance};
use super::node::{HOST_IP, NODE_NAME};

/// How many pods take a step side by side.
const WORKERS: usize = 8;

#[derive(Default)]
struct Kubelet {
    addresses: Mutex<Addresses>,
    /// What is remembered of each pod beside its object, with the uid it belongs to.
    memories: Mutex<BTreeMap<ObjectKey, (String, Memory)>>,
}

/// The controller.
pub(crate) fn controller() -> Controller {
    Controller::of::<Pod>(Kubelet::default()).named("kubelet").concurrency(WORKERS)
}

impl Reconciler<Pod> for Kubelet {
    type Error = Error;

    async fn reconcile(&self, key: ObjectKey, cx: Context<Pod>) -> Result<Action> {
        let ours = |pod: &Arc<Pod>| {
            pod.spec.as_ref().is_some_and(|spec| spec.node_name.as_deref() == Some(NODE_NAME))
        };
        let Some(pod) = cx.get(&key)?.filter(ours) else {
            self.forget(&key);
            return Ok(Action::done());
        };
        let uid = pod.uid().unwrap_or_default();
        let mut memory = self.recall(&key, &uid);
        let place = Place { host_ip: HOST_IP.to_owned(), pod_ip: self.address(&pod, &uid) };
        let step = advance(&pod, &place, &mut memory, cx.now());
        if differs(pod.status.as_ref(), &step.status)? && !write_status(&cx, &pod, step.status).await? {
            return Ok(Action::done());
        }
        for event in &step.events {
            cx.recorder().event(event.kind, pod.object_ref(&()), event.reason, event.message.as_str());
        }
        let held = pod.metadata.deletion_grace_period_seconds == Some(0);
        if step.remove && !held {
            remove(&cx, &pod).await?;
        }
        self.memories().insert(key, (uid, memory));
        let wait =
            step.wake.map(|wake| Duration::try_from(wake.duration_since(cx.now())).unwrap_or_default());
        Ok(wait.map_or_else(Action::done, Action::requeue_after))
    }
}

impl Kubelet {
    fn memories(&self) -> MutexGuard<'_, BTreeMap<ObjectKey, (String, Memory)>> {
        self.memories.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn addresses(&self) -> MutexGuard<'_, Addresses> {
        self.addresses.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// What is remembered of this very pod; of an earlier one with its name, nothing.
    fn recall(&self, key: &ObjectKey, uid: &str) -> Memory {
        let mut memories = self.memories();
        match memories.get(key) {
            Some((known, memory)) if known == uid => memory.clone(),
            Some(_) => {
                let earlier = memories.remove(key);
                drop(memories);
                self.release(earlier);
                Memory::default()
            }
            None => Memory::default(),
        }
    }

    fn forget(&self, key: &ObjectKey) {
        let gone = self.memories().remove(key);
        self.release(gone);
    }

    fn release(&self, gone: Option<(String, Memory)>) {
        if let Some((uid, _)) = gone {
            self.addresses().release(&uid);
        }
    }

    fn address(&self, pod: &Pod, uid: &str) -> Option<String> {
        if pod.spec.as_ref().is_some_and(|spec| spec.host_network == Some(true)) {
            return None;
        }
        let mut addresses = self.addresses();
        if let Some(shown) = pod.status.as_ref().and_then(|status| status.pod_ip.as_deref()) {
            addresses.adopt(uid, shown);
        }
        addresses.assign(uid).map(|address| address.to_string())
    }
}

/// Whether the status says something else, once both are written down: times keep no fractions there.
fn differs(before: Option<&PodStatus>, after: &PodStatus) -> Result<bool> {
    let before = before.map(serde_json::to_value).transpose().map_err(Error::other)?;
    Ok(before != Some(serde_json::to_value(after).map_err(Error::other)?))
}

/// Writes the status, if nobody else wrote meanwhile; answers whether the pod was still there.
async fn write_status(cx: &Context<Pod>, pod: &Pod, status: PodStatus) -> Result<bool> {
    let next = Pod { status: Some(status), ..pod.clone() };
    match api(cx, pod)
        .replace_status(&pod.name_any(), &PostParams::default(), &next)
        .await
        .map_err(Error::from)
    {
        Ok(_) => Ok(true),
        Err(error) if error.is_not_found() => Ok(false),
        Err(error) => Err(error),
    }
}

/// Deletes the object for good: everything has stopped.
async fn remove(cx: &Context<Pod>, pod: &Pod) -> Result<()> {
    let now = DeleteParams {
        grace_period_seconds: Some(0),
        preconditions: Some(Preconditions { uid: pod.uid(), resource_version: None }),
        ..DeleteParams::default()
    };
    match api(cx, pod).delete(&pod.name_any(), &now).await.map_err(Error::from) {
        Err(error) if !(error.is_not_found() || error.is_conflict()) => Err(error),
        _ => Ok(()),
    }
}

fn api(cx: &Context<Pod>, pod: &Pod) -> Api<Pod> {
    Api::namespaced(cx.client().clone(), &pod.namespace().unwrap_or_default())
}
