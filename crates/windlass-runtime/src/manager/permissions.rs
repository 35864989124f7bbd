//! The rights of a manager and the manager's parts.

use super::Manager;
use crate::permission::{Permission, Permissions};

impl Manager {
    /// Declares a right that no controller and no [runnable](crate::Runnable::needs) declares.
    pub fn needs(mut self, permission: Permission) -> Self {
        self.needs.push(permission);
        self
    }

    /// Returns the rights that the operator needs: for controllers, runnables, events, and leader election.
    ///
    /// Call setters that change rights, such as [`namespaces`](Self::namespaces), before this method.
    ///
    /// ```
    /// # use k8s_openapi::api::core::v1::{ConfigMap, Secret};
    /// # use windlass_runtime::{Action, Context, Controller, Manager, ObjectKey, Result};
    /// # async fn reconcile(_: ObjectKey, _: Context<ConfigMap>) -> Result<Action> { Ok(Action::done()) }
    /// use windlass_runtime::{client::ConfigSource, permission::{Permission, Verb}};
    ///
    /// let controller = Controller::of::<ConfigMap>(reconcile).needs(Permission::to::<Secret>([Verb::Create]));
    /// let permissions = Manager::from_config(ConfigSource::default()).controller(controller).permissions();
    /// let resources: Vec<_> = permissions.cluster_role().into_iter().flat_map(|rule| rule.resources.unwrap_or_default()).collect();
    /// assert_eq!(resources, ["configmaps", "events", "secrets"]);
    /// ```
    pub fn permissions(&self) -> Permissions {
        all(self)
    }

    /// Returns the rights that the operator needs in a further [`cluster`](Self::cluster): for watches and
    /// declared permissions of that cluster, and for events.
    pub fn permissions_in(&self, cluster: &str) -> Permissions {
        let mut needed = of_parts(self, Some(cluster));
        let events = event_permissions(self, needed.iter().map(|(_, permission)| permission));
        needed.extend(events.into_iter().map(|permission| (MANAGER, permission)));
        let found = self.clusters.iter().find(|further| further.name == cluster);
        Permissions::merge(needed, found.map_or(&[], |further| &further.namespaces))
    }
}

/// The name of the manager among the parts that need rights.
const MANAGER: &str = "manager";

/// The name of leader election among the parts that need rights.
pub(super) const LEADER_ELECTION: &str = "leader-election";

/// The name of the metrics endpoint among the parts that need rights.
pub(super) const METRICS: &str = "metrics";

/// Collects the rights that the parts of a manager declare for a cluster.
fn of_parts<'a>(manager: &'a Manager, cluster: Option<&str>) -> Vec<(&'a str, Permission)> {
    let mut needed: Vec<(&str, Permission)> = Vec::new();
    let selected = manager.controllers.iter().filter(|controller| manager.selection.has(controller.name()));
    for controller in selected {
        needed.extend(controller.permissions().into_iter().map(|permission| (controller.name(), permission)));
    }
    for runnable in &manager.runnables {
        needed.extend(runnable.permissions().map(|permission| (runnable.name.as_str(), permission)));
    }
    needed.extend(manager.needs.iter().map(|permission| (MANAGER, permission.clone())));
    needed.retain(|(_, permission)| permission.cluster.as_deref() == cluster);
    needed
        .into_iter()
        .map(|(part, permission)| (part, permission.with_scope_of_kind(&manager.crds)))
        .collect()
}

/// Collects the rights of all parts of a manager in the manager's own cluster.
fn all(manager: &Manager) -> Permissions {
    let mut needed = of_parts(manager, None);
    let events = event_permissions(manager, needed.iter().map(|(_, permission)| permission));
    needed.extend(events.into_iter().map(|permission| (MANAGER, permission)));
    if manager.applies_crds() {
        let permissions = crate::crds::permissions(&manager.crds);
        needed.extend(permissions.into_iter().map(|permission| (MANAGER, permission)));
    }
    if let Some(metrics) = &manager.secure_metrics {
        needed.extend(metrics.permissions().into_iter().map(|permission| (METRICS, permission)));
    }
    if let Some(election) = &manager.leader_election {
        let events = Permission::of_events(manager.events_api);
        let events = match election.own_namespace() {
            Some(namespace) => events.in_namespace(namespace),
            None => events.in_operator_namespace(),
        };
        let permissions = election.permissions().into_iter().chain([events]);
        needed.extend(permissions.map(|permission| (LEADER_ELECTION, permission)));
    }
    if let Some(sharding) = &manager.sharding {
        needed.extend(sharding.permissions().into_iter().map(|permission| ("sharding", permission)));
    }
    Permissions::merge(needed, &manager.namespaces)
}

/// Returns the rights to record events, wherever an event may be about.
fn event_permissions<'a>(manager: &Manager, needed: impl Iterator<Item = &'a Permission>) -> Vec<Permission> {
    let events = Permission::of_events(manager.events_api);
    let mut all = vec![events.clone()];
    for permission in needed {
        if permission.is_cluster_wide() {
            // Events about cluster-scoped objects are in this namespace.
            all.push(events.clone().in_namespace("default"));
        }
        all.extend(
            permission.own_namespaces().iter().map(|namespace| events.clone().in_namespace(namespace)),
        );
    }
    all
}
