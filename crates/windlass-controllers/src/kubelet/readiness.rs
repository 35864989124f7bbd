//! The conditions of a pod, derived from the states of the containers.

use k8s_openapi::api::core::v1::{ContainerStatus, PodCondition, PodSpec, PodStatus};

use super::lifecycle::exit_code;
use super::restart::is_sidecar;

/// Returns the conditions that the kubelet manages.
pub(super) fn conditions(status: &PodStatus, spec: &PodSpec) -> Vec<PodCondition> {
    let finished = match status.phase.as_deref() {
        Some("Succeeded") => Some("PodCompleted"),
        Some("Failed") => Some("PodFailed"),
        _ => None,
    };
    let inits = status.init_container_statuses.as_deref().unwrap_or_default();
    let mains = status.container_statuses.as_deref().unwrap_or_default();
    // A pod that has been initialized stays initialized, also while a sidecar restarts.
    let was_initialised = mains.iter().any(has_started)
        || crate::conditions::is_true(status.conditions.as_ref(), "Initialized");
    let incomplete = names(inits, |init| !was_initialised && !initialised(init));
    let sidecars: Vec<&str> = sidecars(spec).collect();
    let mut unready = names(inits, |init| sidecars.contains(&init.name.as_str()) && !init.ready);
    unready.extend(names(mains, |main| !main.ready));

    let initialised = match (incomplete.is_empty(), finished) {
        (true, Some("PodCompleted")) => new_condition("Initialized", true, Some(("PodCompleted", None))),
        (true, _) => new_condition("Initialized", true, None),
        (false, _) => {
            let message = format!("containers with incomplete status: [{}]", incomplete.join(" "));
            new_condition("Initialized", false, Some(("ContainersNotInitialized", Some(message))))
        }
    };
    let containers_ready = match (finished, unready.is_empty()) {
        (Some(reason), _) => new_condition("ContainersReady", false, Some((reason, None))),
        (None, true) => new_condition("ContainersReady", true, None),
        (None, false) => {
            let message = format!("containers with unready status: [{}]", unready.join(" "));
            new_condition("ContainersReady", false, Some(("ContainersNotReady", Some(message))))
        }
    };
    let gates = spec.readiness_gates.iter().flatten().map(|gate| gate.condition_type.as_str());
    let closed: Vec<&str> =
        gates.filter(|gate| !crate::conditions::is_true(status.conditions.as_ref(), gate)).collect();
    let ready = if containers_ready.status == "True" && !closed.is_empty() {
        let message = format!("the status of pod readiness gate {:?} is not \"True\"", closed[0]);
        new_condition("Ready", false, Some(("ReadinessGatesNotReady", Some(message))))
    } else {
        PodCondition { type_: "Ready".to_owned(), ..containers_ready.clone() }
    };
    vec![
        new_condition("PodReadyToStartContainers", status.pod_ip.is_some() && finished.is_none(), None),
        initialised,
        ready,
        containers_ready,
        new_condition("PodScheduled", true, None),
    ]
}

fn sidecars(spec: &PodSpec) -> impl Iterator<Item = &str> {
    let inits = spec.init_containers.iter().flatten();
    inits.filter(|init| is_sidecar(init)).map(|init| init.name.as_str())
}

/// Returns whether a main container runs or has ended. A container that waits for a restart does not count.
fn has_started(main: &ContainerStatus) -> bool {
    main.state.as_ref().is_some_and(|state| state.running.is_some() || state.terminated.is_some())
}

fn initialised(init: &ContainerStatus) -> bool {
    exit_code(init) == Some(0) || init.started == Some(true)
}

fn names(statuses: &[ContainerStatus], keep: impl Fn(&ContainerStatus) -> bool) -> Vec<&str> {
    statuses.iter().filter(|status| keep(status)).map(|status| status.name.as_str()).collect()
}

fn new_condition(kind: &str, holds: bool, why: Option<(&str, Option<String>)>) -> PodCondition {
    let (reason, message) = why.map_or((None, None), |(reason, message)| (Some(reason.to_owned()), message));
    PodCondition {
        type_: kind.to_owned(),
        status: if holds { "True" } else { "False" }.to_owned(),
        reason,
        message,
        ..PodCondition::default()
    }
}
