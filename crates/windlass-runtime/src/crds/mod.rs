//! CustomResourceDefinitions of an operator: installed by a command, or [applied by the
//! operator](crate::Manager::apply_crds) at the start.

mod conversion;
mod decision;
mod install;
mod keep;
mod startup;

use k8s_openapi::apiextensions_apiserver::pkg::apis::apiextensions::v1::CustomResourceDefinition;

pub use self::install::{
    FIELD_MANAGER, REPLACED_CONVERSION, install_crds, install_definitions, set_conversion,
};
pub(crate) use self::startup::{Progress, StartupCrds};
use crate::permission::{Permission, Verb};

/// Returns the rights to apply the CRDs. RBAC knows the name of a CRD only after the CRD was created.
pub(crate) fn permissions(crds: &[CustomResourceDefinition]) -> Vec<Permission> {
    let mut names: Vec<&str> = crds.iter().filter_map(|crd| crd.metadata.name.as_deref()).collect();
    names.sort_unstable();
    names.dedup();
    if names.is_empty() {
        return Vec::new();
    }
    let named = names
        .into_iter()
        .map(|name| Permission::to::<CustomResourceDefinition>([Verb::Get, Verb::Patch]).named(name));
    named.chain([Permission::to::<CustomResourceDefinition>([Verb::Create])]).collect()
}
