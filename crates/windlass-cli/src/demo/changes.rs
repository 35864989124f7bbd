//! From the watches of CustomPods and pods to lines.

use std::sync::{Mutex, PoisonError};

use custom_pod::CustomPod;
use k8s_openapi::api::core::v1::Pod;
use kube::core::{Resource, ResourceExt};
use kube::discovery::ApiResource;
use serde::de::DeserializeOwned;
use tokio::sync::mpsc;
use windlass_runtime::{Action, BoxError, Context, Controller, Delta, EventHandler, Keys, MapContext, Watch};

use super::narrator::{Narrator, ParentSeen, PodSeen};

/// Where lines go.
pub(super) type Told = mpsc::UnboundedSender<String>;

/// A channel for lines. What people read is never so much that it had to be bounded.
pub(super) fn channel() -> (Told, mpsc::UnboundedReceiver<String>) {
    mpsc::unbounded_channel()
}

/// A controller that reconciles nothing: its watches talk.
pub(super) fn controller(told: Told) -> Controller<&'static str> {
    let narrator = std::sync::Arc::new(Mutex::new(Narrator::default()));
    let nothing = async |_: &'static str, _: Context<()>| Ok::<_, windlass_runtime::Error>(Action::done());
    let parents = Teller {
        told: told.clone(),
        narrator: narrator.clone(),
        seen: |narrator, parent: &CustomPod| narrator.parent(parent_seen(parent)),
        gone: |narrator, name| narrator.parent_gone(name),
    };
    let pods = Teller {
        told,
        narrator,
        seen: |narrator, pod: &Pod| narrator.pod(pod_seen(pod)),
        gone: |narrator, name| narrator.pod_gone(name),
    };
    Controller::keyed::<()>("narrator", nothing)
        .watch(Watch::with_handler(ApiResource::erase::<CustomPod>(&()), parents))
        .watch(Watch::with_handler(ApiResource::erase::<Pod>(&()), pods))
}

struct Teller<K> {
    told: Told,
    narrator: std::sync::Arc<Mutex<Narrator>>,
    seen: fn(&mut Narrator, &K) -> Vec<String>,
    gone: fn(&mut Narrator, &str) -> Vec<String>,
}

impl<K> EventHandler<&'static str> for Teller<K>
where
    K: Resource<DynamicType = ()> + DeserializeOwned + Send + Sync + 'static,
{
    fn handle(&self, delta: &Delta, _: &MapContext, _: &mut Keys<&'static str>) -> Result<(), BoxError> {
        let mut narrator = self.narrator.lock().unwrap_or_else(PoisonError::into_inner);
        let lines = match delta {
            Delta::Added { object, .. } | Delta::Updated { new: object, .. } => match object.decode::<K>() {
                Ok(object) => (self.seen)(&mut narrator, &object),
                Err(error) => vec![format!("{} cannot be read: {error}", object.key())],
            },
            Delta::Deleted { last, .. } => (self.gone)(&mut narrator, last.name()),
        };
        for line in lines {
            // Nobody listens any more when the demo ends.
            let _ = self.told.send(line);
        }
        Ok(())
    }
}

fn parent_seen(parent: &CustomPod) -> ParentSeen {
    ParentSeen {
        name: parent.name_any(),
        wanted: parent.spec.replicas,
        reported: parent.status.as_ref().map(|status| status.pod_names.clone()),
        deleting: parent.metadata.deletion_timestamp.is_some(),
    }
}

fn pod_seen(pod: &Pod) -> PodSeen {
    let status = pod.status.clone().unwrap_or_default();
    let owners = pod.metadata.owner_references.iter().flatten();
    PodSeen {
        name: pod.name_any(),
        owner: owners.filter(|owner| owner.controller == Some(true)).map(|owner| owner.name.clone()).next(),
        node: pod.spec.as_ref().and_then(|spec| spec.node_name.clone()),
        phase: status.phase.unwrap_or_default(),
        ip: status.pod_ip,
        deleting: pod.metadata.deletion_timestamp.is_some(),
    }
}
