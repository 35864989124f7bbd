//! The pods of a node whose programs run: memory of each pod, and a step of the state machine.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use k8s_openapi::api::core::v1::{Pod, Service};
use windlass_runtime::{Context, ObjectKey, Result};

use super::action::{Observation, RealStep};
use super::memory::RealMemory;
use super::pod::advance;
use super::worker::{Job, Worker};
use crate::kubelet::choice::{Choice, Simulation};
use crate::kubelet::lifecycle::PodAddresses;
use crate::kubelet::resolve::References;

/// The pods whose programs run.
pub(in crate::kubelet) struct RealNode {
    worker: Arc<Worker>,
    choice: Choice,
    memories: Mutex<BTreeMap<ObjectKey, Known>>,
}

#[derive(Clone)]
struct Known {
    uid: String,
    memory: Arc<Mutex<RealMemory>>,
}

impl RealNode {
    pub(in crate::kubelet) fn new(worker: Worker, choice: Choice) -> Self {
        Self { worker: Arc::new(worker), choice, memories: Mutex::default() }
    }

    fn memories(&self) -> MutexGuard<'_, BTreeMap<ObjectKey, Known>> {
        self.memories.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Returns whether the programs of the pod run. `Err` says why a pod is simulated.
    pub(in crate::kubelet) async fn admit(
        &self,
        key: &ObjectKey,
        uid: &str,
        pod: &Pod,
        addresses: &PodAddresses,
    ) -> Result<(), Simulation> {
        if self.memories().get(key).is_some_and(|known| known.uid == uid) {
            return Ok(());
        }
        self.choice.decide(pod, &self.worker.pods).await?;
        let spec = pod.spec.clone().unwrap_or_default();
        let host_network = spec.host_network == Some(true);
        let references = References::of_pod(&spec);
        self.worker.pods.add(uid, key, addresses.pod_ip.as_deref(), host_network, references);
        let known = Known { uid: uid.to_owned(), memory: Arc::default() };
        self.memories().insert(key.clone(), known);
        Ok(())
    }

    /// Forgets the pod with this key, unless the pod has the uid `but`, and ends the pod's programs. Returns the pod's uid.
    pub(in crate::kubelet) fn forget(&self, key: &ObjectKey, but: Option<&str>) -> Option<String> {
        let mut memories = self.memories();
        memories.get(key).filter(|known| but != Some(known.uid.as_str()))?;
        let gone = memories.remove(key)?;
        drop(memories);
        self.worker.discard(&gone.uid);
        Some(gone.uid)
    }

    /// Performs a step, and begins the actions that the step asks for. `None`: the pod is not known.
    pub(in crate::kubelet) fn step(
        &self,
        key: &ObjectKey,
        pod: &Arc<Pod>,
        addresses: PodAddresses,
        cx: &Context<Pod>,
    ) -> Result<Option<RealStep>> {
        let services = cx.lister::<Service>()?;
        let Some(Known { uid, memory }) = self.memories().get(key).cloned() else { return Ok(None) };
        let observations = self.worker.take(&uid);
        let scheme = self.worker.pods.runtime().scheme();
        let mut step = {
            let mut memory = memory.lock().unwrap_or_else(PoisonError::into_inner);
            advance(pod, &addresses, scheme, &mut memory, observations, cx.now())
        };
        let actions = std::mem::take(&mut step.actions);
        if !actions.is_empty() {
            // Without the cache, only the variables of services are missing.
            let services = services.all().map_or_else(|_| Vec::new(), |all| all.into_iter().collect());
            let job = Arc::new(Job {
                key: key.clone(),
                uid,
                pod: Arc::clone(pod),
                spec: pod.spec.clone().unwrap_or_default(),
                addresses,
                client: cx.client().clone(),
                env: cx.env().clone(),
                services,
            });
            actions.into_iter().for_each(|action| self.worker.spawn(Arc::clone(&job), action));
        }
        step.events.iter().for_each(|event| event.record(pod, cx));
        Ok(Some(step))
    }

    /// Notes that a ConfigMap or a Secret has changed. Returns the pods that refer to the object.
    pub(in crate::kubelet) fn object_changed(&self, object: &ObjectKey, is_secret: bool) -> Vec<ObjectKey> {
        let referring = self.worker.pods.referring(object, is_secret);
        let note = |(uid, key): (String, ObjectKey)| {
            self.worker.put(&uid, Observation::ObjectsChanged);
            key
        };
        referring.into_iter().map(note).collect()
    }
}
