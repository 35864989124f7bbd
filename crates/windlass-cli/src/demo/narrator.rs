//! Describes changes of CustomPods and of their pods in sentences, each change once.

use std::collections::BTreeMap;

/// The described part of a CustomPod.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct CustomPodState {
    pub name: String,
    pub wanted: u32,
    /// `status.podNames`; `None` before there is a status.
    pub reported: Option<Vec<String>>,
    pub deleting: bool,
}

/// The described part of a pod.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct PodState {
    pub name: String,
    /// The name of the CustomPod that controls the pod.
    pub owner: Option<String>,
    pub node: Option<String>,
    pub phase: String,
    pub ip: Option<String>,
    pub deleting: bool,
}

/// Compares each state with the last described state.
#[derive(Debug, Default)]
pub(super) struct Narrator {
    parents: BTreeMap<String, CustomPodState>,
    pods: BTreeMap<String, PodState>,
}

impl Narrator {
    /// Describes the changes of a CustomPod.
    pub(super) fn parent(&mut self, now: CustomPodState) -> Vec<String> {
        let before = self.parents.insert(now.name.clone(), now.clone());
        let name = &now.name;
        let mut lines = Vec::new();
        match &before {
            None => lines.push(format!("custompod {name} appeared; it wants {}", pods(now.wanted as usize))),
            Some(old) if old.wanted != now.wanted => {
                lines.push(format!(
                    "custompod {name} wants {} now, {} before",
                    pods(now.wanted as usize),
                    old.wanted
                ));
            }
            Some(_) => {}
        }
        let described = before.as_ref().and_then(|old| old.reported.as_ref());
        if let Some(reported) = &now.reported
            && described != Some(reported)
        {
            lines.push(match reported.as_slice() {
                [] => format!("custompod {name} reports no pods"),
                names => format!("custompod {name} reports {}: {}", pods(names.len()), names.join(", ")),
            });
        }
        if now.deleting && !before.is_some_and(|old| old.deleting) {
            lines.push(format!("custompod {name} is terminating; its pods are deleted first"));
        }
        lines
    }

    /// Describes the end of a CustomPod.
    pub(super) fn parent_gone(&mut self, name: &str) -> Vec<String> {
        match self.parents.remove(name) {
            Some(_) => vec![format!("custompod {name} is gone; its pods are garbage-collected")],
            None => Vec::new(),
        }
    }

    /// Describes the changes of a pod.
    pub(super) fn pod(&mut self, now: PodState) -> Vec<String> {
        let before = self.pods.insert(now.name.clone(), now.clone());
        let name = &now.name;
        let mut lines = Vec::new();
        let old = before.unwrap_or_else(|| {
            let whose = now.owner.as_ref().map(|owner| format!(" for {owner}")).unwrap_or_default();
            lines.push(format!("  pod {name} was created{whose}"));
            PodState::default()
        });
        if let Some(node) = now.node.as_ref().filter(|_| old.node.is_none()) {
            lines.push(format!("  pod {name} is scheduled to node {node}"));
        }
        if now.phase != old.phase && !now.deleting {
            match now.phase.as_str() {
                "Running" => {
                    let at = now.ip.as_ref().map(|ip| format!(" at {ip}")).unwrap_or_default();
                    lines.push(format!("  pod {name} runs{at}"));
                }
                "Succeeded" => lines.push(format!("  pod {name} has succeeded")),
                "Failed" => lines.push(format!("  pod {name} has failed")),
                _ => {}
            }
        }
        if now.deleting && !old.deleting {
            lines.push(format!("  pod {name} is terminating"));
        }
        lines
    }

    /// Describes the end of a pod.
    pub(super) fn pod_gone(&mut self, name: &str) -> Vec<String> {
        match self.pods.remove(name) {
            Some(_) => vec![format!("  pod {name} is gone")],
            None => Vec::new(),
        }
    }
}

/// Formats a number of pods: `1 pod`, `3 pods`.
pub(super) fn pods(count: usize) -> String {
    format!("{count} pod{}", if count == 1 { "" } else { "s" })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn parent(wanted: u32, reported: Option<&[&str]>) -> CustomPodState {
        let reported = reported.map(|names| names.iter().map(ToString::to_string).collect());
        CustomPodState { name: "web".into(), wanted, reported, deleting: false }
    }

    fn pod(phase: &str) -> PodState {
        PodState {
            name: "web-1".into(),
            owner: Some("web".into()),
            phase: phase.into(),
            ..PodState::default()
        }
    }

    #[test]
    fn each_change_of_a_custompod_is_described_once() {
        let mut narrator = Narrator::default();
        assert_eq!(narrator.parent(parent(1, None)), ["custompod web appeared; it wants 1 pod"]);
        assert_eq!(narrator.parent(parent(1, None)), [""; 0]);
        assert_eq!(narrator.parent(parent(3, Some(&["a"]))).len(), 2);
        assert_eq!(narrator.parent(parent(3, Some(&["a", "b"]))), ["custompod web reports 2 pods: a, b"]);
        assert_eq!(narrator.parent(parent(3, Some(&[]))), ["custompod web reports no pods"]);
        assert_eq!(narrator.parent_gone("web").len(), 1);
        assert_eq!(narrator.parent_gone("web").len(), 0);
    }

    #[test]
    fn each_change_of_a_pod_is_described_once() {
        let mut narrator = Narrator::default();
        assert_eq!(narrator.pod(pod("Pending")), ["  pod web-1 was created for web"]);
        let placed = PodState { node: Some("windlass".into()), ..pod("Pending") };
        assert_eq!(narrator.pod(placed.clone()), ["  pod web-1 is scheduled to node windlass"]);
        let running = PodState { phase: "Running".into(), ip: Some("10.244.0.2".into()), ..placed };
        assert_eq!(narrator.pod(running.clone()), ["  pod web-1 runs at 10.244.0.2"]);
        assert_eq!(narrator.pod(running.clone()), [""; 0]);
        let stopping = PodState { deleting: true, ..running };
        assert_eq!(narrator.pod(stopping.clone()), ["  pod web-1 is terminating"]);
        let stopped = PodState { phase: "Succeeded".into(), ..stopping };
        assert_eq!(narrator.pod(stopped), [""; 0], "the exit of a terminating pod is not described");
        assert_eq!(narrator.pod_gone("web-1"), ["  pod web-1 is gone"]);
    }
}
