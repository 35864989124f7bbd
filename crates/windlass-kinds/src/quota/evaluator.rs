//! The counting of the objects of a resource.

use std::collections::BTreeSet;

use jiff::Timestamp;
use serde_json::Value;
use windlass_schema::Quantity;

use super::resource_list::{ResourceList, add};
use super::resource_quota::Quota;
use super::{claims, pod, services};
use crate::subresource::Subresource;

/// The verb of a request.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Operation {
    /// The object is new.
    Create,
    /// The object is written over.
    Update,
}

/// The counting of the objects of a resource.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Evaluator {
    /// By the resources of containers.
    Pods,
    /// By ports.
    Services,
    /// By storage.
    VolumeClaims,
    /// By devices.
    DeviceClaims,
    /// As objects, under these names.
    Count(Vec<String>),
}

impl Evaluator {
    /// Returns the evaluator of a resource. `group` is empty for the core group. Returns `None` for resources
    /// that no quota counts: events, and resources that are not stored.
    pub fn of(group: &str, plural: &str) -> Option<Self> {
        let counted = |names: &[&str]| Some(Self::Count(names.iter().map(|&name| name.to_owned()).collect()));
        match (group, plural) {
            ("", "pods") => Some(Self::Pods),
            ("", "services") => Some(Self::Services),
            ("", "persistentvolumeclaims") => Some(Self::VolumeClaims),
            ("resource.k8s.io", "resourceclaims") => Some(Self::DeviceClaims),
            ("" | "events.k8s.io", "events")
            | ("", "bindings" | "componentstatuses")
            | ("authentication.k8s.io" | "authorization.k8s.io", _) => None,
            ("", "configmaps" | "resourcequotas" | "replicationcontrollers" | "secrets") => {
                counted(&[&format!("count/{plural}"), plural])
            }
            ("", plural) => counted(&[&format!("count/{plural}")]),
            (group, plural) => counted(&[&format!("count/{plural}.{group}")]),
        }
    }

    /// Returns whether the objects use a resource of a quota.
    pub fn uses(&self, resource: &str) -> bool {
        match self {
            Self::Pods => pod::uses(resource),
            Self::Services => services::use_resource(resource),
            Self::VolumeClaims => claims::volume_claims_use(resource),
            Self::DeviceClaims => claims::device_claims_use(resource),
            Self::Count(names) => names.iter().any(|name| name == resource),
        }
    }

    /// Returns whether each object counts as one, regardless of content.
    pub fn is_count(&self) -> bool {
        matches!(self, Self::Count(_))
    }

    /// Returns whether a request may change the usage.
    pub fn handles(
        &self,
        operation: Operation,
        subresource: &Subresource,
        object: &Value,
        old: Option<&Value>,
    ) -> bool {
        let is_create = operation == Operation::Create;
        match self {
            Self::Pods => match subresource {
                Subresource::None => {
                    is_create || old.is_some_and(|old| pod::has_deadline(old) != pod::has_deadline(object))
                }
                Subresource::Resize => !is_create,
                _ => false,
            },
            Self::VolumeClaims if *subresource == Subresource::Status => old.is_some(),
            Self::Services | Self::VolumeClaims | Self::DeviceClaims => subresource.is_empty(),
            Self::Count(_) => subresource.is_empty() && is_create,
        }
    }

    /// Returns whether a quota counts an object.
    pub(crate) fn matches(&self, quota: &Quota, object: &Value) -> bool {
        quota.hard.keys().any(|name| self.uses(name)) && self.is_in_scope(quota, object)
    }

    fn is_in_scope(&self, quota: &Quota, object: &Value) -> bool {
        quota.scopes.iter().all(|scope| match self {
            Self::Pods => scope.matches_pod(object),
            Self::VolumeClaims => scope.matches_claim(object),
            Self::Services | Self::DeviceClaims | Self::Count(_) => false,
        })
    }

    /// Returns the usage of an object at `now`, by names of resources.
    pub fn usage(&self, object: &Value, now: Timestamp) -> ResourceList {
        match self {
            Self::Pods => pod::usage(object, now),
            Self::Services => services::usage(object),
            Self::VolumeClaims => claims::of_volume_claim(object),
            Self::DeviceClaims => claims::of_device_claim(object),
            Self::Count(names) => names.iter().map(|name| (name.clone(), Quantity::whole(1))).collect(),
        }
    }

    /// Checks that an object specifies the amounts of the resources that a quota limits.
    pub(crate) fn check_constraints(&self, required: &BTreeSet<&str>, object: &Value) -> Result<(), String> {
        if *self == Self::Pods { pod::check_constraints(required, object) } else { Ok(()) }
    }

    /// Returns the sum of the usage of all objects that a quota counts, for the quota's resources. Unused
    /// resources are zero.
    pub fn used_of<'a>(
        &self,
        quota: &Quota,
        objects: impl IntoIterator<Item = &'a Value>,
        now: Timestamp,
    ) -> ResourceList {
        let mut used = self.unused(quota);
        for object in objects {
            if self.is_in_scope(quota, object) {
                add(&mut used, &self.usage(object, now));
            }
        }
        used.retain(|name, _| quota.hard.contains_key(name));
        used
    }

    /// Returns the usage of `count` objects, for a quota's resources, if each object counts as one.
    pub fn used_by_count(&self, quota: &Quota, count: usize) -> ResourceList {
        let mut used = self.unused(quota);
        if quota.scopes.is_empty() {
            used.values_mut().for_each(|amount| *amount = Quantity::whole(count as i64));
        }
        used
    }

    fn unused(&self, quota: &Quota) -> ResourceList {
        let used = quota.hard.keys().filter(|name| self.uses(name));
        used.map(|name| (name.clone(), Quantity::ZERO)).collect()
    }
}
