//! The pods to create and delete for a DaemonSet, and the next status.

use std::cmp::Reverse;
use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use k8s_openapi::api::apps::v1::{DaemonSet, DaemonSetSpec, DaemonSetStatus};
use k8s_openapi::api::core::v1::{Node, Pod};
use k8s_openapi::apimachinery::pkg::util::intstr::IntOrString;
use k8s_openapi::jiff::Timestamp;
use kube_core::ResourceExt;

use super::failures::Failures;
use super::nodes::{Placement, placement};
use super::template;
use crate::{percent, pods};

mod rolling;

/// The largest number of pods that a reconcile creates or deletes, as in Kubernetes.
const BURST: usize = 250;

/// An Event to record about the DaemonSet.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct DaemonEvent {
    pub warning: bool,
    pub reason: &'static str,
    pub message: String,
}

/// The changes to make, and the status to write.
#[derive(Debug, Default)]
pub(super) struct Plan {
    /// The nodes to create a pod for.
    pub create: Vec<String>,
    pub delete: Vec<Arc<Pod>>,
    pub events: Vec<DaemonEvent>,
    pub status: DaemonSetStatus,
    /// When a pod becomes available, or a back-off ends.
    pub wake_at: Option<Timestamp>,
}

/// The input of a plan.
#[derive(Clone, Copy)]
pub(super) struct Input<'a> {
    pub set: &'a DaemonSet,
    pub nodes: &'a [Arc<Node>],
    pub pods: &'a [Arc<Pod>],
    /// The hash of the current template, in the label of the pods.
    pub hash: &'a str,
    pub now: Timestamp,
}

struct Planner<'a> {
    input: Input<'a>,
    spec: DaemonSetSpec,
    placements: BTreeMap<String, Placement>,
    /// The pods of each node, oldest first. Pods on the node come before pods that are only meant for the
    /// node.
    by_node: BTreeMap<String, Vec<Arc<Pod>>>,
    plan: Plan,
}

/// Plans the next step of a DaemonSet that is not terminating.
pub(super) fn plan(input: Input<'_>, failures: &mut Failures) -> Plan {
    let placements = input.nodes.iter().map(|node| (node.name_any(), placement(input.set, node))).collect();
    let spec = input.set.spec.clone().unwrap_or_default();
    let by_node = pods_by_node(input.pods);
    let mut planner = Planner { input, spec, placements, by_node, plan: Plan::default() };
    planner.manage(failures);
    // Replacements wait until the pods that the nodes need are there.
    if planner.plan.create.is_empty() && planner.plan.delete.is_empty() {
        planner.roll();
    }
    planner.plan.create.truncate(BURST);
    planner.plan.delete.truncate(BURST);
    planner.plan.status = planner.status();
    let all = input.pods.iter().map(AsRef::as_ref);
    let available = pods::next_available(all, planner.spec.min_ready_seconds, input.now);
    planner.plan.wake_at = planner.plan.wake_at.into_iter().chain(available).min();
    planner.plan
}

fn pods_by_node(all: &[Arc<Pod>]) -> BTreeMap<String, Vec<Arc<Pod>>> {
    let mut by_node: BTreeMap<String, Vec<Arc<Pod>>> = BTreeMap::new();
    for pod in all.iter().filter(|pod| !(pods::is_terminating(pod) && pods::has_finished(pod))) {
        if let Some(node) = template::node_of(pod) {
            by_node.entry(node.to_owned()).or_default().push(Arc::clone(pod));
        }
    }
    for pods in by_node.values_mut() {
        pods.sort_by_cached_key(|pod| {
            let placed = pod.spec.as_ref().is_some_and(|spec| spec.node_name.is_some());
            let created = pod.metadata.creation_timestamp.as_ref().map(|time| time.0);
            (Reverse(placed), created, pod.metadata.name.clone())
        });
    }
    by_node
}

impl Planner<'_> {
    /// Plans the missing pods of nodes, and the pods that nodes must not have.
    fn manage(&mut self, failures: &mut Failures) {
        for (node, placement) in self.placements.clone() {
            let there = self.by_node.get(&node).cloned();
            match there {
                None if placement.run => self.plan.create.push(node),
                None => {}
                Some(there) if placement.stay => self.keep(&node, placement, &there, failures),
                Some(there) => {
                    let alive = there.into_iter().filter(|pod| !pods::is_terminating(pod));
                    self.plan.delete.extend(alive);
                }
            }
        }
        let known: BTreeSet<&String> = self.placements.keys().collect();
        let lost = self.by_node.iter().filter(|(node, _)| !known.contains(node)).flat_map(|(_, pods)| pods);
        let unplaced = |pod: &&Arc<Pod>| pod.spec.as_ref().is_none_or(|spec| spec.node_name.is_none());
        let lost: Vec<Arc<Pod>> = lost.filter(unplaced).cloned().collect();
        self.plan.delete.extend(lost);
    }

    /// Keeps a pod on a node, or an old and a new pod while an update may surge.
    fn keep(&mut self, node: &str, placement: Placement, there: &[Arc<Pod>], failures: &mut Failures) {
        let alive = there.iter().filter(|pod| !pods::is_terminating(pod));
        let (ended, running): (Vec<_>, Vec<_>) = alive.cloned().partition(|pod| pods::has_finished(pod));
        for pod in ended {
            self.replace_ended(node, pod, failures);
        }
        if !self.allows_surge() {
            self.plan.delete.extend(running.into_iter().skip(1));
            return;
        }
        if running.is_empty() && placement.run {
            self.plan.create.push(node.to_owned());
        }
        if running.len() <= 1 {
            return;
        }
        let (new, old): (Vec<_>, Vec<_>) = running.into_iter().partition(|pod| self.is_new(pod));
        if let (Some(new), Some(old)) = (new.first(), old.first())
            && (!pods::is_ready(old) || self.is_available(new))
        {
            self.plan.delete.push(Arc::clone(old));
        }
        self.plan.delete.extend(new.into_iter().skip(1).chain(old.into_iter().skip(1)));
    }

    fn replace_ended(&mut self, node: &str, pod: Arc<Pod>, failures: &mut Failures) {
        let name = format!("{}/{}", pod.namespace().unwrap_or_default(), pod.name_any());
        if pods::phase(&pod) == "Succeeded" {
            let message = format!("Found succeeded daemon pod {name} on node {node}, will try to delete it");
            self.plan.events.push(DaemonEvent { warning: false, reason: "SucceededDaemonPod", message });
        } else if let Err(end) = failures.replace(node, self.input.now) {
            self.plan.wake_at = self.plan.wake_at.into_iter().chain([end]).min();
            return;
        } else {
            let message = format!("Found failed daemon pod {name} on node {node}, will try to kill it");
            self.plan.events.push(DaemonEvent { warning: true, reason: "FailedDaemonPod", message });
        }
        self.plan.delete.push(pod);
    }

    fn is_new(&self, pod: &Pod) -> bool {
        template::is_current(self.input.set, self.input.hash, pod)
    }

    fn is_available(&self, pod: &Pod) -> bool {
        pods::is_available(pod, self.spec.min_ready_seconds, self.input.now)
    }

    fn runs_on(&self, node: &str) -> bool {
        self.placements.get(node).is_some_and(|placement| placement.run)
    }

    /// Returns the number of nodes that a pod belongs on.
    fn desired(&self) -> i32 {
        number(self.placements.values().filter(|placement| placement.run).count())
    }

    fn allows_surge(&self) -> bool {
        self.bounds(1).0 > 0
    }

    /// Returns `maxSurge` and `maxUnavailable` for a number of nodes.
    fn bounds(&self, nodes: i32) -> (i32, i32) {
        let strategy = self.spec.update_strategy.as_ref();
        let rolling = strategy.filter(|strategy| strategy.type_.as_deref() != Some("OnDelete"));
        let rolling = rolling.and_then(|strategy| strategy.rolling_update.as_ref());
        let scaled =
            |value: Option<&IntOrString>| value.map_or(0, |value| percent::scaled(value, nodes, true));
        let surge = scaled(rolling.and_then(|rolling| rolling.max_surge.as_ref()));
        (surge, scaled(rolling.and_then(|rolling| rolling.max_unavailable.as_ref())))
    }

    fn status(&self) -> DaemonSetStatus {
        let present = self.input.set.status.as_ref();
        let mut status = DaemonSetStatus {
            observed_generation: self.input.set.metadata.generation,
            desired_number_scheduled: self.desired(),
            collision_count: present.and_then(|status| status.collision_count),
            conditions: present.and_then(|status| status.conditions.clone()),
            ..DaemonSetStatus::default()
        };
        let (mut updated, mut available) = (0, 0);
        for (node, placement) in &self.placements {
            let Some(pod) = self.by_node.get(node).and_then(|pods| pods.first()) else { continue };
            if !placement.run {
                status.number_misscheduled += 1;
                continue;
            }
            status.current_number_scheduled += 1;
            status.number_ready += i32::from(pods::is_ready(pod));
            available += i32::from(self.is_available(pod));
            updated += i32::from(self.is_new(pod));
        }
        let nonzero = |number: i32| (number != 0).then_some(number);
        status.updated_number_scheduled = nonzero(updated);
        status.number_available = nonzero(available);
        status.number_unavailable = nonzero(status.desired_number_scheduled - available);
        status
    }
}

fn number(count: usize) -> i32 {
    i32::try_from(count).unwrap_or(i32::MAX)
}

#[cfg(test)]
mod tests;
