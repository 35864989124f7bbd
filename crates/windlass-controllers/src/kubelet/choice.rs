//! The choice between pods whose programs run and simulated pods.

use std::collections::BTreeMap;
use std::sync::{Mutex, PoisonError};
use std::time::{Duration, Instant};

use k8s_openapi::api::core::v1::{Container, Pod};
use kube_core::ResourceExt;

use super::running_pods::RunningPods;
use super::script::{self, PREFIX};

/// How long an image that was not found is not looked for again: many simulated pods have the same image.
const ABSENT_FOR: Duration = Duration::from_millis(100);
/// The most images that are remembered as absent.
const MAX_ABSENT: usize = 1024;

/// The pods whose programs run. The other pods are simulated.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum PodMode {
    /// Pods whose images are on this machine, or in a registry that the runtime may reach. The default.
    #[default]
    Local,
    /// All pods. An image that cannot be had is `ErrImagePull`.
    All,
}

/// Why a pod is simulated.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) enum Simulation {
    /// The node runs no programs.
    #[default]
    Node,
    /// An image is neither on this machine nor in a local registry.
    Image,
    /// The pod has the annotation `kubelet.windlass.dev/run: simulate`, or annotations that control the simulation.
    Annotation,
}

impl Simulation {
    /// Returns the message of the Event `Simulated`.
    pub(super) fn message(self, image: &str) -> String {
        match self {
            Self::Node => {
                format!(
                    "Image {image:?} is not pulled and its program does not run: the node simulates its pods"
                )
            }
            Self::Image => format!(
                "The pod is simulated and no program runs: image {image:?}, or another image of the pod, is not on this \
                 machine and its registry is not local. Build or load the image and create the pod again, or set the \
                 annotation {PREFIX}run: process"
            ),
            Self::Annotation => "The pod is simulated and no program runs: its annotations say so".to_owned(),
        }
    }
}

/// Decides between simulation and programs.
pub(super) struct Choice {
    mode: PodMode,
    absent: Mutex<BTreeMap<String, Instant>>,
}

impl Choice {
    pub(super) fn new(mode: PodMode) -> Self {
        Self { mode, absent: Mutex::default() }
    }

    /// Decides about a new pod. `Err` says why the pod is simulated.
    pub(super) async fn decide(&self, pod: &Pod, pods: &RunningPods) -> Result<(), Simulation> {
        match pod.annotations().get(&format!("{PREFIX}run")).map(String::as_str) {
            Some("process") => return Ok(()),
            Some("simulate") => return Err(Simulation::Annotation),
            _ if script::is_scripted(pod.annotations()) => return Err(Simulation::Annotation),
            _ => {}
        }
        if self.mode == PodMode::All {
            return Ok(());
        }
        let Some(spec) = &pod.spec else { return Err(Simulation::Image) };
        let namespace = pod.namespace().unwrap_or_default();
        for container in spec.init_containers.iter().flatten().chain(&spec.containers) {
            if !self.is_available(container, pods).await {
                // Beside running pods, a pod that has to pull an image is expected to run, too.
                let must_pull = container.image_pull_policy.as_deref() == Some("Always");
                if !must_pull || !pods.has_pods_in(&namespace) {
                    return Err(Simulation::Image);
                }
            }
        }
        Ok(())
    }

    async fn is_available(&self, container: &Container, pods: &RunningPods) -> bool {
        let image = container.image.as_deref().unwrap_or_default();
        if self.is_known_absent(image) {
            return false;
        }
        if pods.runtime().may_pull(image) {
            return true;
        }
        match pods.runtime().image(image).await {
            Ok(Some(_)) => return true,
            Ok(None) => {}
            Err(error) => tracing::warn!(image, %error, "an image cannot be looked for"),
        }
        let mut absent = self.absent.lock().unwrap_or_else(PoisonError::into_inner);
        if absent.len() >= MAX_ABSENT {
            absent.clear();
        }
        absent.insert(image.to_owned(), Instant::now());
        false
    }

    fn is_known_absent(&self, image: &str) -> bool {
        let absent = self.absent.lock().unwrap_or_else(PoisonError::into_inner);
        absent.get(image).is_some_and(|since| since.elapsed() < ABSENT_FOR)
    }
}
