//! The Events of a pod.

use k8s_openapi::api::core::v1::{ContainerStatus, ObjectReference, Pod};
use kube_core::Resource;
use windlass_runtime::Context;
use windlass_runtime::events::EventType;

use super::choice::Simulation;
use super::container::ContainerChange;
use super::lifecycle::pod_title;
use super::script::{ContainerScript, PREFIX};

/// An Event to record about the pod.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct PodEvent {
    pub kind: EventType,
    pub reason: &'static str,
    pub message: String,
    /// The container that the Event is about. `None`: the pod.
    pub container: Option<String>,
}

impl PodEvent {
    /// Creates an Event about the pod.
    pub(super) fn new(kind: EventType, reason: &'static str, message: String) -> Self {
        Self { kind, reason, message, container: None }
    }

    /// Records the Event about `pod`.
    pub(super) fn record(&self, pod: &Pod, cx: &Context<Pod>) {
        cx.recorder().event(self.kind, self.reference(pod), self.reason, self.message.as_str());
    }

    /// Returns a reference to the pod, or to the container in the pod: `spec.containers{NAME}`.
    fn reference(&self, pod: &Pod) -> ObjectReference {
        let field = self.container.as_ref().map(|name| {
            let spec = pod.spec.as_ref();
            let is_init = spec
                .and_then(|spec| spec.init_containers.as_ref())
                .is_some_and(|inits| inits.iter().any(|init| init.name == *name));
            let is_ephemeral = spec
                .and_then(|spec| spec.ephemeral_containers.as_ref())
                .is_some_and(|ephemerals| ephemerals.iter().any(|ephemeral| ephemeral.name == *name));
            let list = match (is_init, is_ephemeral) {
                (true, _) => "initContainers",
                (_, true) => "ephemeralContainers",
                _ => "containers",
            };
            format!("spec.{list}{{{name}}}")
        });
        ObjectReference { field_path: field, ..pod.object_ref(&()) }
    }
}

/// Returns the Event that a container uses an image of this machine.
pub(super) fn pulled(image: &str) -> String {
    format!("Container image {image:?} already present on machine and can be accessed by the pod")
}

/// Returns the Events about a change of a simulated container.
pub(super) fn of_change(
    change: &ContainerChange,
    pod: &Pod,
    status: &ContainerStatus,
    script: &ContainerScript,
    simulation: Simulation,
) -> Vec<PodEvent> {
    let event = |kind, reason, message| PodEvent {
        container: Some(status.name.clone()),
        ..PodEvent::new(kind, reason, message)
    };
    let (normal, warning) = (EventType::Normal, EventType::Warning);
    let image = &status.image;
    let pulled = || {
        if script.is_known {
            event(normal, "Pulled", pulled(image))
        } else {
            event(normal, "Simulated", simulation.message(image))
        }
    };
    match change {
        ContainerChange::Started => vec![
            pulled(),
            event(normal, "Created", "Container created".to_owned()),
            event(normal, "Started", "Container started".to_owned()),
        ],
        ContainerChange::ConfigFailed(why) => {
            vec![pulled(), event(warning, "Failed", format!("Error: {why}"))]
        }
        ContainerChange::PullFailed(why) => vec![
            event(normal, "Pulling", format!("Pulling image {image:?}")),
            event(warning, "Failed", format!("Failed to pull image {image:?}: {why}")),
            event(warning, "Failed", "Error: ErrImagePull".to_owned()),
        ],
        ContainerChange::PullBackedOff => vec![
            event(normal, "BackOff", format!("Back-off pulling image {image:?}")),
            event(warning, "Failed", "Error: ImagePullBackOff".to_owned()),
        ],
        ContainerChange::Unready => {
            let text = format!("Readiness probe failed: the pod has the annotation {PREFIX}ready: \"false\"");
            vec![event(warning, "Unhealthy", text)]
        }
        ContainerChange::BackedOff => {
            let name = &status.name;
            let text = format!("Back-off restarting failed container {name} in pod {}", pod_title(pod));
            vec![event(warning, "BackOff", text)]
        }
        ContainerChange::Ended | ContainerChange::Restarting => Vec::new(),
    }
}
