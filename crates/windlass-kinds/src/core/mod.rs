//! The kinds of the core group.

mod component_status;
mod config_map;
mod endpoints;
mod event;
mod limit_range;
mod namespace;
mod node;
pub(crate) mod persistent_volume;
mod persistent_volume_claim;
mod pod;
mod pod_template;
mod replication_controller;
mod resource_quota;
mod secret;
mod service;
mod service_account;

use crate::kind::Kind;

/// The kinds by resource.
pub(crate) static KINDS: &[(&str, &Kind)] = &[
    ("componentstatuses", &component_status::KIND),
    ("configmaps", &config_map::KIND),
    ("endpoints", &endpoints::KIND),
    ("events", &event::KIND),
    ("limitranges", &limit_range::KIND),
    ("namespaces", &namespace::KIND),
    ("nodes", &node::KIND),
    ("persistentvolumeclaims", &persistent_volume_claim::KIND),
    ("persistentvolumes", &persistent_volume::KIND),
    ("pods", &pod::KIND),
    ("podtemplates", &pod_template::KIND),
    ("replicationcontrollers", &replication_controller::KIND),
    ("resourcequotas", &resource_quota::KIND),
    ("secrets", &secret::KIND),
    ("serviceaccounts", &service_account::KIND),
    ("services", &service::KIND),
];

/// The kinds of `events.k8s.io`.
pub(crate) static EVENTS_GROUP: &[(&str, &Kind)] = &[("events", &event::NEW)];
