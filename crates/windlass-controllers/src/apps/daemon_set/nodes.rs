//! The nodes that a DaemonSet runs on.

use k8s_openapi::api::apps::v1::DaemonSet;
use k8s_openapi::api::core::v1::{Node, Pod, Taint};

use super::template;
use crate::node_fit::{matches_affinity, untolerated_taint};

/// The action of a DaemonSet on a node.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Placement {
    /// A pod belongs there.
    pub run: bool,
    /// True if an existing pod may stay, because a taint only keeps new pods away.
    pub stay: bool,
}

/// Returns the action of the set on a node.
pub(super) fn placement(set: &DaemonSet, node: &Node) -> Placement {
    const NOWHERE: Placement = Placement { run: false, stay: false };
    let mut spec = set.spec.clone().unwrap_or_default().template.spec.unwrap_or_default();
    let name = node.metadata.name.as_deref().unwrap_or_default();
    if spec.node_name.as_deref().is_some_and(|wanted| !wanted.is_empty() && wanted != name) {
        return NOWHERE;
    }
    template::tolerate(&mut spec);
    let tolerations = spec.tolerations.clone().unwrap_or_default();
    let labels = node.metadata.labels.clone().unwrap_or_default();
    if !matches_affinity(&Pod { spec: Some(spec), ..Pod::default() }, name, &labels) {
        return NOWHERE;
    }
    let taints = node.spec.as_ref().and_then(|spec| spec.taints.clone()).unwrap_or_default();
    let evicting: Vec<Taint> = taints.iter().filter(|taint| taint.effect == "NoExecute").cloned().collect();
    Placement {
        run: untolerated_taint(&taints, &tolerations).is_none(),
        stay: untolerated_taint(&evicting, &tolerations).is_none(),
    }
}
