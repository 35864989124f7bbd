//! The inputs and outputs of the state machine of a real pod.

use std::time::Duration;

use k8s_openapi::api::core::v1::PodStatus;
use k8s_openapi::jiff::Timestamp;
use windlass_node::probe::CheckResult;
use windlass_node::{ContainerId, Exit, Image, PullError};

use super::probe::ProbeKind;
use crate::kubelet::pod_event::PodEvent;
use crate::kubelet::resolve::MountError;

/// An operation that the state machine asks for. Each action ends in an [`Observation`], unless the documentation of the action says otherwise.
#[derive(Clone, Debug, PartialEq)]
pub(crate) enum Action {
    /// Write the files of the pod's volumes, also when the files exist.
    PrepareVolumes,
    CreateSandbox,
    /// Stop all containers and remove the files of the pod, except logs.
    RemoveSandbox,
    /// Look for the image of a container on this machine.
    FindImage {
        container: String,
    },
    /// Pull the image of a container.
    Pull {
        container: String,
    },
    /// Resolve and start a container. Ends in `Started`, and later in `Exited`.
    Start {
        container: String,
        attempt: u32,
        image: Image,
    },
    /// Run the `postStart` hook.
    PostStart {
        container: String,
        id: ContainerId,
    },
    /// Run the `preStop` hook.
    PreStop {
        container: String,
        id: ContainerId,
    },
    /// Send a signal; `None` is the stop signal of the container. No observation follows.
    Signal {
        id: ContainerId,
        signal: Option<i32>,
    },
    /// Perform a probe once.
    Check {
        container: String,
        id: ContainerId,
        kind: ProbeKind,
    },
    /// Forget a container that has ended. No observation follows.
    Forget {
        id: ContainerId,
    },
}

/// The result of an [`Action`], or a change outside of the pod.
#[derive(Clone, Debug)]
pub(crate) enum Observation {
    /// The volumes are written. The time is that of the next write: a token must be renewed.
    Volumes(Result<Option<Timestamp>, MountError>),
    /// An object that the pod refers to has changed.
    ObjectsChanged,
    Sandbox(Result<(), String>),
    SandboxRemoved(Result<(), String>),
    /// An answer to `FindImage`.
    Found {
        container: String,
        outcome: Result<FoundImage, PullError>,
    },
    /// An answer to `Pull`.
    Pulled {
        container: String,
        outcome: Result<Image, PullError>,
        took: Duration,
    },
    Started {
        container: String,
        outcome: Result<ContainerId, StartError>,
    },
    /// A container did not start, because the sandbox has ended by itself.
    SandboxEnded {
        container: String,
    },
    PostStarted {
        id: ContainerId,
        outcome: Result<(), String>,
    },
    PreStopped {
        id: ContainerId,
        outcome: Result<(), String>,
    },
    /// A container has ended. The message is the termination message.
    Exited {
        id: ContainerId,
        exit: Exit,
        message: Option<String>,
    },
    Checked {
        id: ContainerId,
        kind: ProbeKind,
        outcome: CheckResult,
    },
}

/// A look at the images of this machine.
#[derive(Clone, Debug)]
pub(crate) struct FoundImage {
    /// The image, if the image is on this machine.
    pub image: Option<Image>,
    /// True if the image may be pulled.
    pub may_pull: bool,
}

/// Why a container did not start.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct StartError {
    /// The reason of the waiting state: `CreateContainerConfigError`, `CreateContainerError` or `RunContainerError`.
    pub reason: &'static str,
    pub message: String,
}

/// The result of a step.
#[derive(Debug)]
pub(crate) struct RealStep {
    /// The next status of the pod.
    pub status: PodStatus,
    pub actions: Vec<Action>,
    pub events: Vec<PodEvent>,
    /// When to continue even if nothing else changes.
    pub wake_at: Option<Timestamp>,
    /// The sandbox is removed and the object can be deleted.
    pub remove: bool,
}
