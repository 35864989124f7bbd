//! Runs the tour over TLS, as any other client would.

use std::time::{Duration, Instant};

use custom_pod::{CustomPod, CustomPodSpec};
use k8s_openapi::api::core::v1::Pod;
use kube::api::{Api, DeleteParams, ListParams, Patch, PatchParams, PostParams};
use kube::config::{KubeConfigOptions, Kubeconfig};
use kube::core::ResourceExt;
use kube::{Client, Config};
use serde_json::json;

use super::{Action, ClusterState, Goal, ReportedStatus, SAMPLE, STEPS};
use crate::error::{Error, Result};
use crate::output::Output;

/// The interval at which the tour reads the state.
const POLL_INTERVAL: Duration = Duration::from_millis(20);

/// Performs all steps on the control plane of `kubeconfig`.
///
/// # Errors
/// A request failed, or a step did not have its expected result within `limit`.
pub(in crate::demo) async fn run(kubeconfig: &str, limit: Duration, out: &mut Output) -> Result<()> {
    let mut tour = Tour::connect(kubeconfig).await?;
    for (number, step) in (1..).zip(STEPS) {
        let failed = |why: Error| -> Error {
            format!("the tour failed at step {number} of {} ({}): {why}", STEPS.len(), step.command).into()
        };
        let before = tour.observe().await.map_err(failed)?;
        out.line("");
        out.timed(format_args!("{number}. {}", command(step.command, &before)));
        let begun = Instant::now();
        tour.perform(step.action, &before).await.map_err(failed)?;
        let seen = tour.wait_for(&step.action.goal(&before), limit).await.map_err(failed)?;
        out.timed(format_args!("   seen: {seen} ({} ms)", begun.elapsed().as_millis()));
    }
    out.line("");
    out.timed(format_args!("All {} steps had the expected result.", STEPS.len()));
    Ok(())
}

/// Replaces `POD` in a command by the name of a pod.
fn command(command: &str, before: &ClusterState) -> String {
    match before.pods.first() {
        Some((name, _)) => command.replace("POD", name),
        None => command.to_owned(),
    }
}

struct Tour {
    parents: Api<CustomPod>,
    pods: Api<Pod>,
    /// The uid of the CustomPod, to find pods after the CustomPod is gone. `None` until the CustomPod exists.
    parent: Option<String>,
}

impl Tour {
    async fn connect(kubeconfig: &str) -> Result<Self> {
        let kubeconfig = Kubeconfig::from_yaml(kubeconfig)?;
        let config = Config::from_custom_kubeconfig(kubeconfig, &KubeConfigOptions::default()).await?;
        let client = Client::try_from(config)?;
        Ok(Self {
            parents: Api::default_namespaced(client.clone()),
            pods: Api::default_namespaced(client),
            parent: None,
        })
    }

    async fn perform(&self, action: Action, before: &ClusterState) -> Result<()> {
        match action {
            Action::Create { replicas } => {
                let sample = CustomPod::new(SAMPLE, CustomPodSpec { replicas });
                self.parents.create(&PostParams::default(), &sample).await?;
            }
            Action::Scale { replicas } => {
                let patch = Patch::Merge(json!({ "spec": { "replicas": replicas } }));
                self.parents.patch(SAMPLE, &PatchParams::default(), &patch).await?;
            }
            Action::DeletePod => {
                let (name, _) = before.pods.first().ok_or("there is no pod to delete")?;
                self.pods.delete(name, &DeleteParams::default()).await?;
            }
            Action::DeleteParent => {
                self.parents.delete(SAMPLE, &DeleteParams::background()).await?;
            }
        }
        Ok(())
    }

    /// Reads the state until the goal is reached.
    async fn wait_for(&mut self, goal: &Goal, limit: Duration) -> Result<String> {
        let end = Instant::now() + limit;
        loop {
            let missing = match goal.check(&self.observe().await?) {
                Ok(seen) => return Ok(seen),
                Err(missing) => missing,
            };
            if Instant::now() >= end {
                return Err(format!("not reached within {limit:?}: {missing}").into());
            }
            tokio::time::sleep(POLL_INTERVAL).await;
        }
    }

    async fn observe(&mut self) -> Result<ClusterState> {
        let parent = self.parents.get_opt(SAMPLE).await?;
        if let Some(parent) = &parent {
            self.parent = parent.uid();
        }
        let pods = self.pods.list(&ListParams::default()).await?;
        let owned = |pod: &&Pod| {
            pod.metadata
                .owner_references
                .iter()
                .flatten()
                .any(|owner| Some(&owner.uid) == self.parent.as_ref())
        };
        Ok(ClusterState {
            parent: parent.map(|parent| reported(&parent)),
            pods: pods.items.iter().filter(owned).map(|pod| (pod.name_any(), runs(pod))).collect(),
        })
    }
}

fn reported(parent: &CustomPod) -> ReportedStatus {
    parent.status.as_ref().map_or_else(ReportedStatus::default, |status| ReportedStatus {
        replicas: status.replicas,
        pod_names: status.pod_names.iter().cloned().collect(),
    })
}

fn runs(pod: &Pod) -> bool {
    let phase = pod.status.as_ref().and_then(|status| status.phase.as_deref());
    phase == Some("Running") && pod.metadata.deletion_timestamp.is_none()
}
