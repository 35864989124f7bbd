//! The kind of each built-in resource.

use crate::kind::{Kind, KindConfig};
use crate::{
    admissionregistration, apiextensions, apiregistration, apps, authentication, authorization, autoscaling,
    batch, certificates, coordination, core, discovery, flowcontrol, networking, node, policy, rbac,
    resource, scheduling, storage, storagemigration,
};

/// A kind without code.
static PLAIN: Kind = Kind::new(KindConfig::SPEC);

/// Returns the kind of a built-in resource, by the API group and the plural name.
pub fn of(group: &str, resource: &str) -> &'static Kind {
    let found = of_group(group).iter().find(|(name, _)| *name == resource);
    found.map_or(&PLAIN, |(_, kind)| kind)
}

fn of_group(group: &str) -> &'static [(&'static str, &'static Kind)] {
    match group {
        "" => core::KINDS,
        "admissionregistration.k8s.io" => admissionregistration::KINDS,
        "apiextensions.k8s.io" => apiextensions::KINDS,
        "apiregistration.k8s.io" => apiregistration::KINDS,
        "apps" => apps::KINDS,
        "authentication.k8s.io" => authentication::KINDS,
        "authorization.k8s.io" => authorization::KINDS,
        "autoscaling" => autoscaling::KINDS,
        "batch" => batch::KINDS,
        "certificates.k8s.io" => certificates::KINDS,
        "coordination.k8s.io" => coordination::KINDS,
        "discovery.k8s.io" => discovery::KINDS,
        "events.k8s.io" => core::EVENTS_GROUP,
        "flowcontrol.apiserver.k8s.io" => flowcontrol::KINDS,
        "networking.k8s.io" => networking::KINDS,
        "node.k8s.io" => node::KINDS,
        "policy" => policy::KINDS,
        "rbac.authorization.k8s.io" => rbac::KINDS,
        "resource.k8s.io" => resource::KINDS,
        "scheduling.k8s.io" => scheduling::KINDS,
        "storage.k8s.io" => storage::KINDS,
        "storagemigration.k8s.io" => storagemigration::KINDS,
        _ => &[],
    }
}
