//! The rolling update of a DaemonSet: the old pods that may be deleted, and the nodes that get a new pod
//! beside the old pod.

use std::sync::Arc;

use k8s_openapi::api::core::v1::Pod;

use super::{Planner, pods};

/// The pods of a node that are not terminating.
enum OnNode {
    /// More than one pod of a template: the surplus is deleted first.
    TooMany,
    Pods {
        new: Option<Arc<Pod>>,
        old: Option<Arc<Pod>>,
    },
}

impl Planner<'_> {
    /// Plans the next step of a rolling update.
    pub(super) fn roll(&mut self) {
        let strategy = self.spec.update_strategy.as_ref().and_then(|strategy| strategy.type_.as_deref());
        if strategy == Some("OnDelete") {
            return;
        }
        let desired = self.desired();
        let (surge, mut unavailable) = self.bounds(desired);
        if desired > 0 && surge == 0 && unavailable == 0 {
            unavailable = 1;
        }
        if surge == 0 { self.roll_in_place(unavailable) } else { self.roll_with_surge(surge, desired) }
    }

    /// Returns the nodes that have pods or should have a pod, with the pods.
    fn nodes(&self) -> Vec<(String, OnNode)> {
        let mut names: Vec<&String> = self.by_node.keys().collect();
        let missing = self.placements.iter().filter(|(_, placement)| placement.run).map(|(node, _)| node);
        names.extend(missing.filter(|node| !self.by_node.contains_key(*node)));
        names.into_iter().map(|node| (node.clone(), self.on_node(node))).collect()
    }

    fn on_node(&self, node: &str) -> OnNode {
        let alive = self.by_node.get(node).into_iter().flatten().filter(|pod| !pods::is_terminating(pod));
        let (new, old): (Vec<_>, Vec<_>) = alive.cloned().partition(|pod| self.is_new(pod));
        if new.len() > 1 || old.len() > 1 {
            return OnNode::TooMany;
        }
        OnNode::Pods { new: new.into_iter().next(), old: old.into_iter().next() }
    }

    /// Deletes old pods: unavailable pods, and as many other pods as may be unavailable.
    fn roll_in_place(&mut self, max_unavailable: i32) {
        let mut unavailable = 0;
        let mut candidates = Vec::new();
        for (_, on_node) in self.nodes() {
            match on_node {
                OnNode::Pods { new: Some(new), old: None } => {
                    unavailable += i32::from(!self.is_available(&new));
                }
                OnNode::Pods { new: None, old: Some(old) } if !self.is_available(&old) => {
                    self.plan.delete.push(old);
                    unavailable += 1;
                }
                OnNode::Pods { new: None, old: Some(old) } => candidates.push(old),
                OnNode::Pods { .. } | OnNode::TooMany => unavailable += 1,
            }
        }
        let room = usize::try_from(max_unavailable - unavailable).unwrap_or(0);
        self.plan.delete.extend(candidates.into_iter().take(room));
    }

    /// Creates new pods beside old pods, and deletes old pods with an available successor.
    fn roll_with_surge(&mut self, max_surge: i32, desired: i32) {
        let (mut surging, mut available) = (0, 0);
        let (mut candidates, mut leaving) = (Vec::new(), Vec::new());
        for (node, on_node) in self.nodes() {
            let OnNode::Pods { new, old } = on_node else {
                surging += 1;
                continue;
            };
            available += i32::from(old.as_ref().or(new.as_ref()).is_some_and(|pod| self.is_available(pod)));
            match (new, old) {
                (_, None) => {}
                (None, Some(old)) => match (self.is_available(&old), self.runs_on(&node)) {
                    (false, false) => self.plan.delete.push(old),
                    (false, true) => self.plan.create.push(node),
                    (true, false) => leaving.push(old),
                    (true, true) => candidates.push(node),
                },
                (Some(new), Some(_)) if !self.is_available(&new) => surging += 1,
                (Some(_), Some(old)) => self.plan.delete.push(old),
            }
        }
        let spare = usize::try_from(available - desired).unwrap_or(0);
        self.plan.delete.extend(leaving.into_iter().take(spare));
        let room = usize::try_from(max_surge - surging).unwrap_or(0);
        self.plan.create.extend(candidates.into_iter().take(room));
    }
}
