//! The simulated pods that wait for a ConfigMap or a Secret.

use std::collections::BTreeMap;
use std::sync::{Mutex, MutexGuard, PoisonError};

use windlass_runtime::ObjectKey;

use super::resolve::References;

/// The waiting pods, with the objects that the pods need. A pod that has all objects is not in the index.
#[derive(Default)]
pub(super) struct WaitingPods {
    needs: Mutex<BTreeMap<ObjectKey, References>>,
}

impl WaitingPods {
    fn needs(&self) -> MutexGuard<'_, BTreeMap<ObjectKey, References>> {
        self.needs.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Adds a pod. Add the pod before the objects are read, so that no change is missed.
    pub(super) fn add(&self, pod: &ObjectKey, references: References) {
        self.needs().insert(pod.clone(), references);
    }

    pub(super) fn remove(&self, pod: &ObjectKey) {
        self.needs().remove(pod);
    }

    /// Returns the pods that wait for an object.
    pub(super) fn of(&self, object: &ObjectKey, is_secret: bool) -> Vec<ObjectKey> {
        let needs = self.needs();
        let waits = |(pod, references): (&ObjectKey, &References)| {
            let names = if is_secret { &references.secrets } else { &references.config_maps };
            pod.namespace() == object.namespace() && names.contains(object.name())
        };
        needs.iter().filter(|entry| waits(*entry)).map(|(pod, _)| pod.clone()).collect()
    }
}
