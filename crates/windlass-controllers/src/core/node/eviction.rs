//! Evicts pods that do not tolerate the taints of their node.

use std::collections::BTreeSet;
use std::sync::{Mutex, MutexGuard, PoisonError};

use k8s_openapi::api::core::v1::{Node, Pod, Taint, Toleration};
use k8s_openapi::jiff::{SignedDuration, Timestamp};
use kube_core::ResourceExt;
use windlass_runtime::{Action, Context, Controller, Error, HandlerContext, ObjectKey, Reconciler, Result};

use super::taints::NO_EXECUTE;
use crate::component::KUBE_CONTROLLER_MANAGER;
use crate::node_fit::tolerates;
use crate::pod_disruption::{Disruption, disrupt};
use crate::{pods, wake};

/// The component that reports Events, as in kube-controller-manager.
const COMPONENT: &str = "taint-eviction-controller";

const EVICTION: Disruption<'_> = Disruption {
    reason: "DeletionByTaintManager",
    message: "Taint manager: deleting due to NoExecute taint",
    component: KUBE_CONTROLLER_MANAGER,
};

#[derive(Default)]
struct TaintEviction {
    /// The pods that tolerate the taints of their node for a limited time.
    pending: Mutex<BTreeSet<ObjectKey>>,
}

/// Returns the controller.
pub(crate) fn controller() -> Controller {
    Controller::of::<Pod>(TaintEviction::default()).named(COMPONENT).watches::<Node>(pods_of_node)
}

/// Returns the pods of a node that evicts pods.
fn pods_of_node(node: &Node, cx: &HandlerContext) -> Result<Vec<ObjectKey>> {
    if evicting_taints(node).next().is_none() {
        return Ok(Vec::new());
    }
    let name = node.name_any();
    let pods = cx.lister::<Pod>()?.all()?;
    let on_node = pods.iter().filter(|pod| node_of(pod) == Some(&name));
    Ok(on_node.map(|pod| ObjectKey::new(pod.metadata.namespace.as_deref(), &pod.name_any())).collect())
}

fn node_of(pod: &Pod) -> Option<&str> {
    pod.spec.as_ref().and_then(|spec| spec.node_name.as_deref())
}

fn evicting_taints(node: &Node) -> impl Iterator<Item = &Taint> {
    let taints = node.spec.iter().flat_map(|spec| spec.taints.iter().flatten());
    taints.filter(|taint| taint.effect == NO_EXECUTE)
}

impl Reconciler<Pod> for TaintEviction {
    type Error = Error;

    async fn reconcile(&self, key: ObjectKey, cx: Context<Pod>) -> Result<Action> {
        let Some(pod) = cx.get(&key)?.filter(|pod| pods::is_active(pod)) else {
            self.pending().remove(&key);
            return Ok(Action::done());
        };
        let node = match node_of(&pod) {
            Some(node) => cx.lister::<Node>()?.get(&ObjectKey::cluster(node))?,
            None => None,
        };
        let Some(node) = node else { return Ok(Action::done()) };
        let now = cx.now();
        match eviction(&pod, &node, now) {
            Eviction::Never => {
                if self.pending().remove(&key) {
                    let note = format!("Cancelling deletion of Pod {key}");
                    cx.recorder().normal(&*pod, "TaintManagerEviction", note);
                }
                Ok(Action::done())
            }
            Eviction::At(time) if time > now => {
                self.pending().insert(key);
                Ok(wake::at(Some(time), now))
            }
            Eviction::At(_) => {
                self.pending().remove(&key);
                let note = format!("Marking for deletion Pod {key}");
                cx.recorder().normal(&*pod, "TaintManagerEviction", note);
                disrupt(&cx, &pod, EVICTION).await?;
                Ok(Action::done())
            }
        }
    }
}

impl TaintEviction {
    fn pending(&self) -> MutexGuard<'_, BTreeSet<ObjectKey>> {
        self.pending.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Whether and when a pod is evicted from the pod's node.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Eviction {
    Never,
    At(Timestamp),
}

/// Returns the eviction of a pod: at once if the pod does not tolerate a taint, or after the shortest toleration.
fn eviction(pod: &Pod, node: &Node, now: Timestamp) -> Eviction {
    let tolerations = pod.spec.as_ref().and_then(|spec| spec.tolerations.as_deref()).unwrap_or_default();
    let mut used: Vec<&Toleration> = Vec::new();
    let mut since = scheduled_at(pod);
    for taint in evicting_taints(node) {
        let Some(toleration) = tolerations.iter().find(|toleration| tolerates(toleration, taint)) else {
            return Eviction::At(now);
        };
        used.push(toleration);
        since = since.max(taint.time_added.as_ref().map(|time| time.0));
    }
    let Some(seconds) = used.iter().filter_map(|toleration| toleration.toleration_seconds).min() else {
        return Eviction::Never;
    };
    let since = since.unwrap_or(now);
    let after = SignedDuration::from_secs(seconds.max(0));
    Eviction::At(since.checked_add(after).unwrap_or(Timestamp::MAX))
}

/// Returns when the pod was placed on the node.
fn scheduled_at(pod: &Pod) -> Option<Timestamp> {
    let conditions = pod.status.as_ref()?.conditions.as_ref()?;
    let scheduled = conditions.iter().find(|condition| condition.type_ == "PodScheduled")?;
    scheduled.last_transition_time.as_ref().map(|time| time.0)
}

#[cfg(test)]
mod tests {
    use serde_json::{Value, json};

    use super::*;

    const NOW: &str = "2026-01-01T00:10:00Z";

    fn evicted(taints: Value, tolerations: Value) -> Option<String> {
        let node: Node = serde_json::from_value(json!({"metadata": {}, "spec": {"taints": taints}})).unwrap();
        let scheduled = json!([
            {"type": "PodScheduled", "status": "True", "lastTransitionTime": "2026-01-01T00:00:00Z"},
        ]);
        let pod: Pod = serde_json::from_value(json!({
            "metadata": {}, "spec": {"containers": [], "tolerations": tolerations},
            "status": {"conditions": scheduled},
        }))
        .unwrap();
        match eviction(&pod, &node, NOW.parse().unwrap()) {
            Eviction::Never => None,
            Eviction::At(time) => Some(time.to_string()),
        }
    }

    fn taint(key: &str, effect: &str) -> Value {
        json!({"key": key, "effect": effect, "timeAdded": "2026-01-01T00:09:00Z"})
    }

    #[test]
    fn a_pod_without_a_toleration_goes_at_once() {
        let lost = || taint("lost", "NoExecute");
        let tolerating = |key: &str| json!({"key": key, "operator": "Exists", "effect": "NoExecute"});
        assert_eq!(evicted(json!([taint("x", "NoSchedule")]), json!([])), None);
        assert_eq!(evicted(json!([lost()]), json!([])).as_deref(), Some(NOW));
        assert_eq!(evicted(json!([lost()]), json!([tolerating("lost")])), None);
        let both = json!([lost(), taint("other", "NoExecute")]);
        assert_eq!(evicted(both, json!([tolerating("lost")])).as_deref(), Some(NOW));
    }

    #[test]
    fn the_shortest_toleration_counts_from_the_taint_or_from_the_start_of_the_pod() {
        let tolerating = |key: &str, seconds: i64| json!({"key": key, "operator": "Exists", "effect": "NoExecute", "tolerationSeconds": seconds});
        let taints = json!([taint("a", "NoExecute"), taint("b", "NoExecute")]);
        let both = json!([tolerating("a", 300), tolerating("b", 90)]);
        assert_eq!(evicted(taints, both).as_deref(), Some("2026-01-01T00:10:30Z"));
        let old = json!([{"key": "a", "effect": "NoExecute", "timeAdded": "2025-12-31T00:00:00Z"}]);
        assert_eq!(evicted(old, json!([tolerating("a", 60)])).as_deref(), Some("2026-01-01T00:01:00Z"));
    }
}
