//! Deployments, replica sets, stateful sets and daemon sets.

mod controller_revision;
mod daemon_set;
mod deployment;
mod replica_set;
mod stateful_set;

use crate::kind::Kind;

/// The kinds by resource.
pub(crate) static KINDS: &[(&str, &Kind)] = &[
    ("controllerrevisions", &controller_revision::KIND),
    ("daemonsets", &daemon_set::KIND),
    ("deployments", &deployment::KIND),
    ("replicasets", &replica_set::KIND),
    ("statefulsets", &stateful_set::KIND),
];
