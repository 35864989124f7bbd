//! The tour's shell: acts through TLS like any other client, and looks until the goal is reached.

use std::time::{Duration, Instant};

use custom_pod::{CustomPod, CustomPodSpec};
use k8s_openapi::api::core::v1::Pod;
use kube::api::{Api, DeleteParams, ListParams, Patch, PatchParams, PostParams};
use kube::config::{KubeConfigOptions, Kubeconfig};
use kube::core::ResourceExt;
use kube::{Client, Config};
use serde_json::json;

use super::{Act, Goal, Reported, SAMPLE, STEPS, View};
use crate::error::{Error, Result};
use crate::voice::Voice;

/// How often the tour looks.
const LOOK_EVERY: Duration = Duration::from_millis(20);

/// Takes all steps through the control plane that `kubeconfig` names.
///
/// # Errors
/// When a step could not be done, or what it must lead to was not seen within `limit`.
pub(in crate::demo) async fn run(kubeconfig: &str, limit: Duration, voice: &mut Voice) -> Result<()> {
    let mut tour = Tour::connect(kubeconfig).await?;
    for (number, step) in (1..).zip(STEPS) {
        let failed = |why: Error| -> Error {
            format!("the tour failed at step {number} of {} ({}): {why}", STEPS.len(), step.command).into()
        };
        let before = tour.look().await.map_err(failed)?;
        voice.line("");
        voice.moment(format_args!("{number}. {}", command(step.command, &before)));
        let begun = Instant::now();
        tour.act(step.act, &before).await.map_err(failed)?;
        let seen = tour.until(&step.act.goal(&before), limit).await.map_err(failed)?;
        voice.moment(format_args!("   seen: {seen} ({} ms)", begun.elapsed().as_millis()));
    }
    voice.line("");
    voice.moment(format_args!("All {} steps were seen.", STEPS.len()));
    Ok(())
}

/// The command, with the pod's name in its place.
fn command(command: &str, before: &View) -> String {
    match before.pods.first() {
        Some((name, _)) => command.replace("POD", name),
        None => command.to_owned(),
    }
}

struct Tour {
    parents: Api<CustomPod>,
    pods: Api<Pod>,
    /// The uid of the CustomPod, once there is one: what its pods name as their owner.
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

    async fn act(&self, act: Act, before: &View) -> Result<()> {
        match act {
            Act::Create { replicas } => {
                let sample = CustomPod::new(SAMPLE, CustomPodSpec { replicas });
                self.parents.create(&PostParams::default(), &sample).await?;
            }
            Act::Scale { replicas } => {
                let patch = Patch::Merge(json!({ "spec": { "replicas": replicas } }));
                self.parents.patch(SAMPLE, &PatchParams::default(), &patch).await?;
            }
            Act::DeletePod => {
                let (name, _) = before.pods.first().ok_or("there is no pod to delete")?;
                self.pods.delete(name, &DeleteParams::default()).await?;
            }
            Act::DeleteParent => {
                self.parents.delete(SAMPLE, &DeleteParams::background()).await?;
            }
        }
        Ok(())
    }

    /// Looks until the goal is reached.
    async fn until(&mut self, goal: &Goal, limit: Duration) -> Result<String> {
        let end = Instant::now() + limit;
        loop {
            let missing = match goal.check(&self.look().await?) {
                Ok(seen) => return Ok(seen),
                Err(missing) => missing,
            };
            if Instant::now() >= end {
                return Err(format!("not seen within {limit:?}; now {missing}").into());
            }
            tokio::time::sleep(LOOK_EVERY).await;
        }
    }

    async fn look(&mut self) -> Result<View> {
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
        Ok(View {
            parent: parent.map(|parent| reported(&parent)),
            pods: pods.items.iter().filter(owned).map(|pod| (pod.name_any(), runs(pod))).collect(),
        })
    }
}

fn reported(parent: &CustomPod) -> Reported {
    parent.status.as_ref().map_or_else(Reported::default, |status| Reported {
        replicas: status.replicas,
        pod_names: status.pod_names.iter().cloned().collect(),
    })
}

fn runs(pod: &Pod) -> bool {
    let phase = pod.status.as_ref().and_then(|status| status.phase.as_deref());
    phase == Some("Running") && pod.metadata.deletion_timestamp.is_none()
}
