//! Roles and the bindings of roles.

mod escalation;
mod role;
mod role_binding;

use windlass_wire::names;

use crate::kind::{Kind, KindConfig};

/// The kinds by resource.
pub(crate) static KINDS: &[(&str, &Kind)] = &[
    ("clusterrolebindings", &role_binding::KIND),
    ("clusterroles", &role::CLUSTER_ROLES),
    ("rolebindings", &role_binding::KIND),
    ("roles", &role::ROLES),
];

/// The API group of roles and bindings.
const GROUP: &str = "rbac.authorization.k8s.io";

const CONFIG: KindConfig = KindConfig {
    name: |name, _| names::path_segment_name(name, false),
    create_on_update: true,
    ..KindConfig::DATA
};
