//! Counts the pods of the cluster.

use std::time::Duration;

use k8s_openapi::api::core::v1::{Node, Pod};
use kube::api::Patch;
use serde_json::json;
use windlass::{events::Recorder, prelude::*, source::Timer};

/// The time between two counts.
pub const PERIOD: Duration = Duration::from_secs(10);

/// The label of control-plane nodes that has the number of pods.
pub const COUNT_LABEL: &str = "hopegi/pod-count";

/// The labels of control-plane nodes: the present label, and the label of clusters before 1.24.
const ROLES: [&str; 2] = ["node-role.kubernetes.io/control-plane", "node-role.kubernetes.io/master"];

/// Returns the controller. Only a timer triggers the controller: each tick has the same key.
pub fn controller() -> Controller<&'static str> {
    Controller::keyed("pod-controller", count)
        .reads::<Pod>()
        .reads::<Node>()
        .needs(Permission::to::<Node>([Verb::Patch]))
        .source(Timer::every(PERIOD, |_| Ok(vec!["pods"])))
}

async fn count(_: &'static str, cx: Context<()>) -> Result<Action> {
    let pods = cx.lister::<Pod>()?.all()?;
    for pod in &pods {
        tracing::info!(namespace = pod.namespace(), name = pod.name_any(), "pod");
    }
    let count = pods.len().to_string();
    for node in &cx.lister::<Node>()?.all()? {
        let is_control_plane = ROLES.iter().any(|role| node.labels().contains_key(*role));
        // A node that has left the control plane loses the label: null removes the label.
        let wanted = is_control_plane.then_some(&count);
        if node.labels().get(COUNT_LABEL) != wanted {
            let labels = json!({ "metadata": { "labels": { COUNT_LABEL: wanted } } });
            cx.patch::<Node, _>(&ObjectKey::of(node), &Patch::Merge(labels)).await?;
        }
    }
    let recorder: Recorder = cx.recorder().named("pod_controller");
    for pod in &pods {
        recorder.normal(pod, "SuccessCalculatePod", format!("pod count is {count}"));
    }
    Ok(Action::done())
}
