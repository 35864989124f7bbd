//! Watches CustomPods and pods, and sends a line for each change.

use std::sync::{Mutex, PoisonError};

use custom_pod::CustomPod;
use k8s_openapi::api::core::v1::Pod;
use kube::core::{Resource, ResourceExt};
use serde::de::DeserializeOwned;
use tokio::sync::mpsc;
use windlass_runtime::{
    Action, BoxError, Context, Controller, Delta, Enqueuer, EventHandler, HandlerContext, Watch, kind,
};

use super::narrator::{CustomPodState, Narrator, PodState};

/// The receiver of the lines.
pub(super) type LineSender = mpsc::UnboundedSender<String>;

/// Creates a channel for lines. The channel is unbounded: a demo has few changes.
pub(super) fn channel() -> (LineSender, mpsc::UnboundedReceiver<String>) {
    mpsc::unbounded_channel()
}

/// Returns a controller whose watches send lines. The controller reconciles no object.
pub(super) fn controller(lines: LineSender) -> Controller<&'static str> {
    let narrator = std::sync::Arc::new(Mutex::new(Narrator::default()));
    let nothing = async |_: &'static str, _: Context<()>| Ok::<_, windlass_runtime::Error>(Action::done());
    let parents = DescribeChanges {
        lines: lines.clone(),
        narrator: narrator.clone(),
        changed: |narrator, parent: &CustomPod| narrator.parent(custom_pod_state(parent)),
        gone: |narrator, name| narrator.parent_gone(name),
    };
    let pods = DescribeChanges {
        lines,
        narrator,
        changed: |narrator, pod: &Pod| narrator.pod(pod_state(pod)),
        gone: |narrator, name| narrator.pod_gone(name),
    };
    Controller::keyed::<()>("narrator", nothing)
        .watch(Watch::with_handler(kind::<CustomPod>(), parents))
        .watch(Watch::with_handler(kind::<Pod>(), pods))
}

struct DescribeChanges<K> {
    lines: LineSender,
    narrator: std::sync::Arc<Mutex<Narrator>>,
    changed: fn(&mut Narrator, &K) -> Vec<String>,
    gone: fn(&mut Narrator, &str) -> Vec<String>,
}

impl<K> EventHandler<&'static str> for DescribeChanges<K>
where
    K: Resource<DynamicType = ()> + DeserializeOwned + Send + Sync + 'static,
{
    fn handle(
        &self,
        delta: &Delta,
        _: &HandlerContext,
        _: &mut Enqueuer<&'static str>,
    ) -> Result<(), BoxError> {
        let mut narrator = self.narrator.lock().unwrap_or_else(PoisonError::into_inner);
        let lines = match delta {
            Delta::Added { object, .. } | Delta::Updated { new: object, .. } => match object.decode::<K>() {
                Ok(object) => (self.changed)(&mut narrator, &object),
                Err(error) => vec![format!("{} does not decode: {error}", object.key())],
            },
            Delta::Deleted { last, .. } => (self.gone)(&mut narrator, last.name()),
        };
        for line in lines {
            // The receiver is dropped when the demo ends.
            let _ = self.lines.send(line);
        }
        Ok(())
    }
}

fn custom_pod_state(parent: &CustomPod) -> CustomPodState {
    CustomPodState {
        name: parent.name_any(),
        wanted: parent.spec.replicas,
        reported: parent.status.as_ref().map(|status| status.pod_names.clone()),
        deleting: parent.metadata.deletion_timestamp.is_some(),
    }
}

fn pod_state(pod: &Pod) -> PodState {
    let status = pod.status.clone().unwrap_or_default();
    let owners = pod.metadata.owner_references.iter().flatten();
    PodState {
        name: pod.name_any(),
        owner: owners.filter(|owner| owner.controller == Some(true)).map(|owner| owner.name.clone()).next(),
        node: pod.spec.as_ref().and_then(|spec| spec.node_name.clone()),
        phase: status.phase.unwrap_or_default(),
        ip: status.pod_ip,
        deleting: pod.metadata.deletion_timestamp.is_some(),
    }
}
