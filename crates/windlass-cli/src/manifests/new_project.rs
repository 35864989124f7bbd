//! The manifests of a project without kinds and controllers: `windlass init` writes them without a build.

use std::collections::BTreeMap;

use windlass_codegen::manifests::{Manifests, Options};
use windlass_codegen::{ElectionDeclaration, Inventory, MetricsDeclaration, Rights};
use windlass_runtime::Manager;
use windlass_runtime::client::ConfigSource;
use windlass_runtime::leader_election::LeaderElection;
use windlass_runtime::manager::SecureMetrics;
use windlass_runtime::permission::Permissions;
use windlass_scaffold::Project;

use crate::error::Result;

/// The ports of [`Options::inventory_arguments`].
const METRICS_PORT: u16 = 8443;
const HEALTH_PORT: u16 = 8081;

/// Returns the files below `config/` of a new project, by path. `windlass manifests` writes the same files while the project has no kinds.
pub(crate) fn new_project_files(project: &Project) -> Result<BTreeMap<String, String>> {
    let mut options = Options::new(&project.project_name);
    options.namespaced = project.namespaced;
    Ok(Manifests::new(&inventory(&options), options)?.files())
}

/// Returns the declarations of a new project's operator.
fn inventory(options: &Options) -> Inventory {
    let mut manager = Manager::from_config(ConfigSource::default())
        .leader_election(LeaderElection::new(&options.project))
        .secure_metrics(SecureMetrics::new(([0, 0, 0, 0], METRICS_PORT).into()))
        .health_address(([0, 0, 0, 0], HEALTH_PORT).into());
    if options.namespaced {
        manager = manager.namespaces([&options.namespace]);
    }
    let election = manager.election();
    let metrics = manager.served_metrics();
    Inventory {
        format: Inventory::FORMAT,
        name: options.project.clone(),
        rights: rights(&manager.own_permissions()),
        election: election.map(|election| ElectionDeclaration {
            lease: election.lease,
            rights: rights(&election.permissions),
        }),
        metrics: metrics.map(|metrics| MetricsDeclaration {
            port: metrics.port,
            secure: metrics.secure,
            rights: rights(&metrics.permissions),
        }),
        health_port: manager.health_port(),
        ..Inventory::default()
    }
}

fn rights(permissions: &Permissions) -> Rights {
    Rights {
        cluster: permissions.cluster_role(),
        operator: permissions.operator_role(),
        namespaces: permissions.roles(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_new_project_has_the_tree_of_kubebuilder() {
        let files = new_project_files(&Project::new("web", "example.com", "0.1.0")).expect("files");
        for path in [
            "config/default/kustomization.yaml",
            "config/manager/manager.yaml",
            "config/network-policy/allow-metrics-traffic.yaml",
            "config/prometheus/monitor.yaml",
            "config/rbac/leader_election_role.yaml",
            "config/rbac/metrics_auth_role.yaml",
            "config/rbac/service_account.yaml",
        ] {
            assert!(files.contains_key(path), "{path} is missing: {:?}", files.keys());
        }
        assert!(files["config/rbac/leader_election_role.yaml"].contains("leases"));
    }
}
