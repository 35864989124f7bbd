//! Tells what happens to CustomPods and their pods, in plain words, each change once.

use std::collections::BTreeMap;

/// A CustomPod, as far as the story goes.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct ParentSeen {
    pub name: String,
    pub wanted: u32,
    /// `status.podNames`; `None` before there is a status.
    pub reported: Option<Vec<String>>,
    pub deleting: bool,
}

/// A pod, as far as the story goes.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct PodSeen {
    pub name: String,
    /// The name of the CustomPod that controls it.
    pub owner: Option<String>,
    pub node: Option<String>,
    pub phase: String,
    pub ip: Option<String>,
    pub deleting: bool,
}

/// Remembers what was told.
#[derive(Debug, Default)]
pub(super) struct Narrator {
    parents: BTreeMap<String, ParentSeen>,
    pods: BTreeMap<String, PodSeen>,
}

impl Narrator {
    /// What a new state of a CustomPod is worth telling.
    pub(super) fn parent(&mut self, now: ParentSeen) -> Vec<String> {
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
        let told = before.as_ref().and_then(|old| old.reported.as_ref());
        if let Some(reported) = &now.reported
            && told != Some(reported)
        {
            lines.push(match reported.as_slice() {
                [] => format!("custompod {name} reports no pods"),
                names => format!("custompod {name} reports {}: {}", pods(names.len()), names.join(", ")),
            });
        }
        if now.deleting && !before.is_some_and(|old| old.deleting) {
            lines.push(format!("custompod {name} is asked to go; it waits for its pods"));
        }
        lines
    }

    /// A CustomPod is gone.
    pub(super) fn parent_gone(&mut self, name: &str) -> Vec<String> {
        match self.parents.remove(name) {
            Some(_) => vec![format!("custompod {name} is gone; what it owned is collected")],
            None => Vec::new(),
        }
    }

    /// What a new state of a pod is worth telling.
    pub(super) fn pod(&mut self, now: PodSeen) -> Vec<String> {
        let before = self.pods.insert(now.name.clone(), now.clone());
        let name = &now.name;
        let mut lines = Vec::new();
        let old = before.unwrap_or_else(|| {
            let whose = now.owner.as_ref().map(|owner| format!(" for {owner}")).unwrap_or_default();
            lines.push(format!("  pod {name} was created{whose}"));
            PodSeen::default()
        });
        if let Some(node) = now.node.as_ref().filter(|_| old.node.is_none()) {
            lines.push(format!("  pod {name} goes to node {node}"));
        }
        if now.phase != old.phase && !now.deleting {
            match now.phase.as_str() {
                "Running" => {
                    let at = now.ip.as_ref().map(|ip| format!(" at {ip}")).unwrap_or_default();
                    lines.push(format!("  pod {name} runs{at}"));
                }
                "Succeeded" => lines.push(format!("  pod {name} has done its work")),
                "Failed" => lines.push(format!("  pod {name} has failed")),
                _ => {}
            }
        }
        if now.deleting && !old.deleting {
            lines.push(format!("  pod {name} is asked to stop"));
        }
        lines
    }

    /// A pod is gone.
    pub(super) fn pod_gone(&mut self, name: &str) -> Vec<String> {
        match self.pods.remove(name) {
            Some(_) => vec![format!("  pod {name} is gone")],
            None => Vec::new(),
        }
    }
}

/// `1 pod`, `3 pods`.
pub(super) fn pods(count: usize) -> String {
    format!("{count} pod{}", if count == 1 { "" } else { "s" })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn parent(wanted: u32, reported: Option<&[&str]>) -> ParentSeen {
        let reported = reported.map(|names| names.iter().map(ToString::to_string).collect());
        ParentSeen { name: "web".into(), wanted, reported, deleting: false }
    }

    fn pod(phase: &str) -> PodSeen {
        PodSeen { name: "web-1".into(), owner: Some("web".into()), phase: phase.into(), ..PodSeen::default() }
    }

    #[test]
    fn a_custompods_life_is_told_once() {
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
    fn a_pods_life_is_told_once() {
        let mut narrator = Narrator::default();
        assert_eq!(narrator.pod(pod("Pending")), ["  pod web-1 was created for web"]);
        let placed = PodSeen { node: Some("windlass".into()), ..pod("Pending") };
        assert_eq!(narrator.pod(placed.clone()), ["  pod web-1 goes to node windlass"]);
        let running = PodSeen { phase: "Running".into(), ip: Some("10.244.0.2".into()), ..placed };
        assert_eq!(narrator.pod(running.clone()), ["  pod web-1 runs at 10.244.0.2"]);
        assert_eq!(narrator.pod(running.clone()), [""; 0]);
        let stopping = PodSeen { deleting: true, ..running };
        assert_eq!(narrator.pod(stopping.clone()), ["  pod web-1 is asked to stop"]);
        let stopped = PodSeen { phase: "Succeeded".into(), ..stopping };
        assert_eq!(narrator.pod(stopped), [""; 0], "how it ended is not the story");
        assert_eq!(narrator.pod_gone("web-1"), ["  pod web-1 is gone"]);
    }
}
