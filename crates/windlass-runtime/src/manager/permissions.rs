//! The rights that a manager and its parts need.

use super::Manager;
use crate::permission::{Permission, Permissions};

/// The name of the manager among the parts that need rights.
const MANAGER: &str = "manager";

/// Collects the rights of all parts of a manager.
pub(super) fn of(manager: &Manager) -> Permissions {
    let mut needed: Vec<(&str, Permission)> = Vec::new();
    for controller in &manager.controllers {
        needed.extend(controller.permissions().into_iter().map(|permission| (controller.name(), permission)));
    }
    for runnable in &manager.runnables {
        needed.extend(runnable.needs.iter().map(|permission| (runnable.name.as_str(), permission.clone())));
    }
    needed.extend(manager.needs.iter().map(|permission| (MANAGER, permission.clone())));
    let events = event_permissions(manager, needed.iter().map(|(_, permission)| permission));
    needed.extend(events.into_iter().map(|permission| (MANAGER, permission)));
    if let Some(election) = &manager.leader_election {
        needed.extend(election.permissions().into_iter().map(|permission| ("leader-election", permission)));
    }
    if let Some(sharding) = &manager.sharding {
        needed.extend(sharding.permissions().into_iter().map(|permission| ("sharding", permission)));
    }
    Permissions::merge(needed, &manager.namespaces)
}

/// The rights to record events, wherever an event may be about.
fn event_permissions<'a>(manager: &Manager, needed: impl Iterator<Item = &'a Permission>) -> Vec<Permission> {
    let events = Permission::of_events(manager.events_api);
    let mut all = vec![events.clone()];
    for permission in needed {
        if permission.is_cluster_wide() {
            // Events about objects in no namespace are in this one.
            all.push(events.clone().in_namespace("default"));
        }
        all.extend(
            permission.own_namespaces().iter().map(|namespace| events.clone().in_namespace(namespace)),
        );
    }
    if let Some(election) = &manager.leader_election {
        all.push(match election.own_namespace() {
            Some(namespace) => events.in_namespace(namespace),
            None => events.in_operator_namespace(),
        });
    }
    all
}
