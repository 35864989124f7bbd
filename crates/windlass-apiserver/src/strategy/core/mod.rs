//! The kinds of the core group.

mod claim;
mod config_map;
mod endpoints;
mod event;
mod limit_range;
mod namespace;
mod node;
mod pod;
mod pod_security;
mod replication_controller;
mod resource_quota;
mod secret;
mod service;
mod service_account;
mod volume;
mod volume_claim;
mod volume_source;

pub(super) use self::claim::{claim_spec_warnings, validate_claim_spec};
pub(super) use self::event::of as event_of;
pub(super) use self::pod::{
    default_spec, node_label, pod_template_warnings, validate_amount, validate_container_name,
    validate_template, validate_tolerations,
};
use super::{Facts, FactsOnly, Strategy};

pub(super) fn of(resource: &str) -> &'static dyn Strategy {
    match resource {
        "configmaps" => &config_map::ConfigMaps,
        "endpoints" => &endpoints::Endpoints,
        "events" => event::of(""),
        "limitranges" => &limit_range::LimitRanges,
        "namespaces" => &namespace::Namespaces,
        "nodes" => &node::Nodes,
        "persistentvolumeclaims" => &volume_claim::Claims,
        "persistentvolumes" => &volume::Volumes,
        "pods" | "podtemplates" => pod::of(resource),
        "replicationcontrollers" => &replication_controller::ReplicationControllers,
        "resourcequotas" => &resource_quota::ResourceQuotas,
        "secrets" => &secret::Secrets,
        "serviceaccounts" => &service_account::ServiceAccounts,
        "services" => &service::Services,
        _ => &FactsOnly(&Facts::SPEC),
    }
}
