//! Deployments, replica sets, stateful sets, daemon sets.

mod controller_revision;
mod counters;
mod daemon_set;
mod deployment;
mod replica_set;
mod rollout;
mod stateful_set;
mod template;

pub(super) use self::replica_set::COUNTERS as REPLICA_COUNTERS;
pub(super) use self::rollout::{at_most_all, positive_int_or_percent};
pub(super) use self::template::{
    default_template, label_selector, template_warnings, validate_restarts, validate_template_of,
};
use super::{Facts, FactsOnly, Strategy};

pub(super) fn of(resource: &str) -> &'static dyn Strategy {
    match resource {
        "deployments" => &deployment::Deployments,
        "replicasets" => &replica_set::ReplicaSets,
        "statefulsets" => &stateful_set::StatefulSets,
        "daemonsets" => &daemon_set::DaemonSets,
        "controllerrevisions" => &controller_revision::ControllerRevisions,
        _ => &FactsOnly(&Facts::DATA),
    }
}
