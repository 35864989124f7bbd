//! The state of the scheduler: the cluster, the waiting pods, and the pods that wait for volumes.

use std::collections::BTreeMap;
use std::sync::{Mutex, MutexGuard, OnceLock, PoisonError};

use k8s_openapi::api::core::v1::{Node, Pod};
use k8s_openapi::jiff::Timestamp;
use tokio::time::Instant;
use windlass_runtime::{AddOptions, ControllerHandle, ObjectKey};

use super::cluster::{Cluster, NodeFacts, PodFacts, priority};
use super::pod_class::Labels;
use super::waiting::{Change, Retry, Seen, WaitingPods};
use crate::pods;

/// The name of the default scheduler. Pods that name another scheduler are ignored.
pub(super) const NAME: &str = "default-scheduler";

/// A node that is reserved for a pod until the pod's claims are bound.
#[derive(Clone, Debug)]
pub(super) struct Reservation {
    pub node: String,
    pub since: Timestamp,
}

/// The state that decisions depend on.
#[derive(Default)]
pub(super) struct State {
    pub cluster: Cluster,
    pub waiting: WaitingPods,
    /// Pods that are on a node in `cluster` and wait for volumes.
    pub reserved: BTreeMap<ObjectKey, Reservation>,
}

impl State {
    /// Returns the pods that wait for volumes and satisfy a test of the pod and the pod's node, with each pod's priority.
    fn reserved_where(&self, is: impl Fn(&ObjectKey, &str, &PodFacts) -> bool) -> Vec<(ObjectKey, i32)> {
        let placed = self.reserved.keys().filter_map(|key| Some((key, self.cluster.pod(key)?)));
        placed
            .filter(|(key, (node, pod))| is(key, node, pod))
            .map(|(key, (_, pod))| (key.clone(), pod.priority))
            .collect()
    }
}

/// The state, kept up to date by the events of all watches, and the queue of the pods to schedule.
#[derive(Default)]
pub(super) struct SharedState {
    state: Mutex<State>,
    queue: OnceLock<ControllerHandle>,
}

/// Returns whether a pod waits for this scheduler.
pub(super) fn needs_node(pod: &Pod) -> bool {
    let Some(spec) = &pod.spec else { return false };
    spec.node_name.is_none()
        && !pods::is_terminating(pod)
        && !pods::has_finished(pod)
        && spec.scheduler_name.as_deref().is_none_or(|name| name == NAME)
}

impl SharedState {
    pub(super) fn connect(&self, queue: ControllerHandle) {
        let _ = self.queue.set(queue);
    }

    pub(super) fn lock(&self) -> MutexGuard<'_, State> {
        // Each change completes under the lock, so a poisoned state is consistent.
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn enqueue(&self, key: ObjectKey, retry: Retry) {
        if let Some(queue) = self.queue.get() {
            queue.enqueue_with(key, AddOptions::new().priority(retry.priority).after(retry.after));
        }
    }

    fn enqueue_all(&self, pods: &[(ObjectKey, i32)]) {
        pods.iter().for_each(|(key, priority)| self.enqueue_now(key, *priority));
    }

    fn enqueue_now(&self, key: &ObjectKey, priority: i32) {
        self.enqueue(key.clone(), Retry { priority, ..Retry::default() });
    }

    /// Queues the pods that a change may help.
    pub(super) fn wake(&self, change: Change) {
        let helped = self.lock().waiting.take_helped_by(change, Instant::now());
        for (key, retry) in helped {
            self.enqueue(key, retry);
        }
    }

    /// Records the current state of a pod; `None` for a pod that is gone.
    pub(super) fn observe_pod(&self, key: &ObjectKey, pod: Option<&Pod>) {
        let change = match pod.filter(|pod| !pods::has_finished(pod)) {
            None => self.remove_pod(key),
            Some(pod) => match pod.spec.as_ref().and_then(|spec| spec.node_name.as_deref()) {
                Some(node) => self.place_pod(key, node, pod),
                None => self.admit_pod(key, pod),
            },
        };
        if let Some(change) = change {
            self.wake(change);
        }
    }

    fn remove_pod(&self, key: &ObjectKey) -> Option<Change> {
        let mut state = self.lock();
        state.waiting.remove(key);
        state.reserved.remove(key);
        let is_freed = state.cluster.nominate(key, None);
        (state.cluster.remove(key) || is_freed).then_some(Change::PodGone)
    }

    fn place_pod(&self, key: &ObjectKey, node: &str, pod: &Pod) -> Option<Change> {
        let facts = PodFacts::of(pod);
        let mut state = self.lock();
        state.waiting.remove(key);
        state.reserved.remove(key);
        let change = match state.cluster.pod(key) {
            None => Some(Change::PodPlaced),
            Some((_, known)) if known.requests.amounts != facts.requests.amounts => Some(Change::PodGone),
            Some((_, known)) if known.is_terminating != facts.is_terminating => Some(Change::PodPlaced),
            Some((_, known)) if known.class != facts.class => Some(Change::PodPlaced),
            Some(_) => None,
        };
        let is_freed = state.cluster.place(key, node, facts);
        drop(state);
        if is_freed {
            self.wake(Change::PodGone);
        }
        change
    }

    /// Queues a pod without a node.
    fn admit_pod(&self, key: &ObjectKey, pod: &Pod) -> Option<Change> {
        let mut state = self.lock();
        let uid = pod.metadata.uid.as_deref().unwrap_or_default();
        let assumed = state.cluster.pod(key).map(|(_, known)| known.uid == uid);
        let is_assumed = assumed == Some(true);
        let is_replaced = assumed == Some(false);
        let is_released = is_replaced || (is_assumed && !needs_node(pod));
        if is_released {
            state.cluster.remove(key);
            state.reserved.remove(key);
        }
        let is_known = state.waiting.is_known(key, &Seen::of(pod));
        let nominated = pod.status.as_ref().and_then(|status| status.nominated_node_name.clone());
        let mut is_freed = false;
        if let Some(node) = nominated.filter(|node| !node.is_empty() && !is_assumed && needs_node(pod)) {
            is_freed = state.cluster.nominate(key, Some((node, PodFacts::of(pod))));
        }
        if !needs_node(pod) {
            state.waiting.remove(key);
            is_freed |= state.cluster.nominate(key, None);
        }
        drop(state);
        if needs_node(pod) && !is_assumed && !is_known {
            self.enqueue_now(key, priority(pod));
        }
        (is_released || is_freed).then_some(Change::PodGone)
    }

    /// Removes a pod from the node that was chosen, unless the pod is bound: an error may follow a binding that succeeded.
    pub(super) fn unplace(&self, key: &ObjectKey) {
        let mut state = self.lock();
        state.reserved.remove(key);
        let is_bound = state.cluster.pod(key).is_some_and(|(_, pod)| pod.is_bound);
        let was_there = !is_bound && state.cluster.remove(key);
        drop(state);
        if was_there {
            self.wake(Change::PodGone);
        }
    }

    /// Ends the nominations of pods with a lower priority, because a pod makes room on the node for itself.
    pub(super) fn end_lower_nominations(&self, node: &str, priority: i32) {
        let mut state = self.lock();
        let lower: Vec<(ObjectKey, i32)> = state
            .cluster
            .nominated(node)
            .filter(|(_, pod)| pod.priority < priority)
            .map(|(key, pod)| (key.clone(), pod.priority))
            .collect();
        for (key, _) in &lower {
            state.cluster.nominate(key, None);
        }
        drop(state);
        self.enqueue_all(&lower);
    }

    /// Records the current state of a node; `None` for a node that is gone.
    pub(super) fn observe_node(&self, name: &str, node: Option<&Node>) {
        let is_changed = if let Some(node) = node {
            self.lock().cluster.set_node(NodeFacts::of(node))
        } else {
            let mut state = self.lock();
            state.cluster.remove_node(name);
            let reserved = state.reserved_where(|_, pod_node, _| pod_node == name);
            drop(state);
            self.enqueue_all(&reserved);
            true
        };
        if is_changed {
            self.wake(Change::Node);
        }
    }

    /// Records the labels of a namespace; `None` for a namespace that is gone.
    pub(super) fn observe_namespace(&self, name: &str, labels: Option<Labels>) {
        let is_changed = self.lock().cluster.set_namespace(name, labels);
        if is_changed {
            self.wake(Change::Namespace);
        }
    }

    /// Queues the waiting pods of a namespace whose pods no longer wait.
    pub(super) fn wake_namespace(&self, name: &str) {
        let waiting = self.lock().waiting.of_namespace(name);
        self.enqueue_all(&waiting);
    }

    /// Queues the pods that a change of a claim, a volume or a class may help. `uses` returns whether the change concerns a pod
    /// that waits for volumes on a node.
    pub(super) fn observe_volumes(&self, uses: impl Fn(&ObjectKey, &PodFacts) -> bool) {
        let reserved = self.lock().reserved_where(|key, _, pod| uses(key, pod));
        self.enqueue_all(&reserved);
        self.wake(Change::Volume);
    }
}
