//! The pods of a set: creation and state.

use k8s_openapi::{api::core::v1::Pod, jiff::Timestamp};
use kube::api::ObjectMeta;
use windlass::prelude::*;

use crate::OrderedSet;

/// The label with the name of the set.
pub(crate) const SET: &str = "apps.abc.com/ordered-set";

/// The label with the index of the pod.
const INDEX: &str = "apps.abc.com/pod-index";

/// The label with the revision of the template that the pod was made from.
const REVISION: &str = "apps.abc.com/revision";

/// Returns the revision of the template: a digest of the template's JSON.
pub(crate) fn revision_of(set: &OrderedSet) -> Result<String> {
    // FNV-1a: short, and the same in every build of the operator.
    let digest =
        serde_json::to_vec(&set.spec.template)?.iter().fold(0xcbf2_9ce4_8422_2325_u64, |digest, byte| {
            (digest ^ u64::from(*byte)).wrapping_mul(0x0100_0000_01b3)
        });
    Ok(format!("{digest:016x}"))
}

/// Returns the pod with an index. The name and the host name of the pod are the set's name and the index.
pub(crate) fn pod_of(set: &OrderedSet, index: u32, revision: &str) -> Result<Pod> {
    let (template, name) = (set.spec.template.clone(), format!("{}-{index}", set.name_any()));
    let given = template.metadata.unwrap_or_default();
    let mut labels = given.labels.unwrap_or_default();
    labels.insert(SET.to_owned(), set.name_any());
    labels.insert(INDEX.to_owned(), index.to_string());
    labels.insert(REVISION.to_owned(), revision.to_owned());
    let mut spec = template.spec.unwrap_or_default();
    spec.hostname = Some(name.clone());
    let metadata = ObjectMeta {
        name: Some(name),
        namespace: set.namespace(),
        labels: Some(labels),
        annotations: given.annotations,
        ..ObjectMeta::default()
    };
    Pod { metadata, spec: Some(spec), ..Pod::default() }.controlled_by(set)
}

/// A pod, as far as the order is concerned.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Member {
    pub(crate) index: u32,
    pub(crate) revision: String,
    pub(crate) state: State,
    /// The time at which the pod became ready.
    pub(crate) since: Option<Timestamp>,
}

/// The state of a pod.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum State {
    /// The pod is running and ready.
    Ready,
    /// The pod is not ready; with the reason from the pod's status.
    NotReady(Option<String>),
    /// The pod has ended and does not start again.
    Ended,
    /// The pod is terminating.
    Terminating,
}

/// Returns the index of a pod of a set: the index in the pod's name, because labels can change and names
/// cannot.
pub(crate) fn index_in(set: &str, pod: &Pod) -> Option<u32> {
    let name = pod.name_any();
    let index = name.strip_prefix(set)?.strip_prefix('-')?;
    let parsed: u32 = index.parse().ok()?;
    (parsed.to_string() == index).then_some(parsed)
}

impl Member {
    /// Returns `None` for a pod that was not made for the owning set.
    pub(crate) fn of(pod: &Pod) -> Option<Self> {
        let label = |name: &str| pod.labels().get(name).cloned();
        let index = index_in(&pod.controller()?.name, pod)?;
        let status = pod.status.clone().unwrap_or_default();
        let conditions = status.conditions.unwrap_or_default();
        let condition = |name: &str| conditions.iter().find(|condition| condition.type_ == name);
        let ready = condition("Ready");
        let phase = status.phase.as_deref();
        let (state, since) = if pod.metadata.deletion_timestamp.is_some() {
            (State::Terminating, None)
        } else if matches!(phase, Some("Failed" | "Succeeded")) {
            (State::Ended, None)
        } else if phase == Some("Running") && ready.is_some_and(|ready| ready.status == "True") {
            (State::Ready, ready.and_then(|ready| ready.last_transition_time.as_ref()).map(|time| time.0))
        } else {
            let waiting = status.container_statuses.unwrap_or_default().into_iter().find_map(|container| {
                container.state?.waiting?.reason.filter(|reason| reason != "ContainerCreating")
            });
            let unscheduled = condition("PodScheduled").filter(|scheduled| scheduled.status == "False");
            let reason = waiting.or_else(|| unscheduled.and_then(|scheduled| scheduled.reason.clone()));
            (State::NotReady(reason), None)
        };
        Some(Self { index, revision: label(REVISION).unwrap_or_default(), state, since })
    }
}
