//! CustomPod: keeps as many pods as `spec.replicas` says.
#![forbid(unsafe_code)]

use k8s_openapi::api::core::v1::{Container, Pod, PodSpec};
use kube::api::ObjectMeta;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use windlass::prelude::*;

/// The desired state of a CustomPod.
#[derive(CustomResource, Serialize, Deserialize, JsonSchema, Clone, Debug)]
#[kube(group = "zhhnzw.mock.com", version = "v1", kind = "CustomPod", namespaced, status = "CustomPodStatus")]
#[kube(scale(spec_replicas_path = ".spec.replicas", status_replicas_path = ".status.replicas"))]
#[kube(printcolumn = r#"{"name": "Desired", "type": "integer", "jsonPath": ".spec.replicas"}"#)]
#[kube(printcolumn = r#"{"name": "Current", "type": "integer", "jsonPath": ".status.replicas"}"#)]
#[kube(printcolumn = r#"{"name": "Age", "type": "date", "jsonPath": ".metadata.creationTimestamp"}"#)]
pub struct CustomPodSpec {
    /// How many pods to keep.
    pub replicas: u32,
}

/// The observed state of a CustomPod.
#[derive(Serialize, Deserialize, JsonSchema, Clone, Debug, Default)]
#[serde(rename_all = "camelCase")]
pub struct CustomPodStatus {
    /// How many pods there are.
    pub replicas: u32,
    /// Their names.
    pub pod_names: Vec<String>,
}

/// Returns the controller for a manager.
pub fn controller() -> Controller {
    Controller::of::<CustomPod>(reconcile)
        .owns::<Pod>()
        .needs(Permission::to::<Pod>([Verb::Create, Verb::Delete]))
        .needs(Permission::status_of::<CustomPod>())
}

async fn reconcile(key: ObjectKey, cx: Context<CustomPod>) -> Result<Action> {
    // The garbage collector deletes the pods of a deleted or terminating object.
    let Some(parent) = cx.get_not_terminating(&key)? else { return Ok(Action::done()) };

    let pods = cx.owned_by::<Pod>(&parent)?.not_terminating();
    let wanted = parent.spec.replicas as usize;
    // At most 50 at a time: a new pod is a reason to look again, and by then less may be wanted.
    for _ in (pods.len()..wanted).take(50) {
        cx.create(pod_for(&parent)?).await?;
    }
    for extra in pods.newest_first().take(pods.len().saturating_sub(wanted)) {
        cx.delete(extra).await?;
    }

    // The cache includes the writes above: the controller does not wait here, and counts every pod once.
    let pods = cx.owned_by::<Pod>(&parent)?.not_terminating();
    cx.update_status(&parent, CustomPodStatus { replicas: pods.len() as u32, pod_names: pods.names() })
        .await?;
    Ok(Action::done())
}

fn pod_for(parent: &CustomPod) -> Result<Pod> {
    let pod = Pod {
        metadata: ObjectMeta {
            generate_name: Some(format!("{}-", parent.name_any())),
            namespace: parent.namespace(),
            ..ObjectMeta::default()
        },
        spec: Some(PodSpec {
            containers: vec![Container {
                name: "main".to_owned(),
                image: Some("busybox".to_owned()),
                command: Some(vec!["sleep".to_owned(), "infinity".to_owned()]),
                ..Container::default()
            }],
            ..PodSpec::default()
        }),
        ..Pod::default()
    };
    pod.controlled_by(parent)
}
