//! The facts about a request that admission decides by.

use serde_json::Value;

use crate::auth::Identity;
use crate::resource::Resource;

/// The operation of a request.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Operation {
    Create,
    Update,
    Delete,
    /// A request that is passed on to a pod, a service or a node.
    Connect,
}

impl Operation {
    /// Returns the name in rules and reviews.
    pub(super) fn name(self) -> &'static str {
        match self {
            Self::Create => "CREATE",
            Self::Update => "UPDATE",
            Self::Delete => "DELETE",
            Self::Connect => "CONNECT",
        }
    }
}

/// The facts about a request that admission decides by.
pub(crate) struct Attributes<'a> {
    pub(crate) operation: Operation,
    /// The resource in the version of the request.
    pub(crate) resource: &'a Resource,
    /// Empty for the main resource.
    pub(crate) subresource: &'a str,
    /// For a Namespace object, the object's own name. Empty for other cluster-scoped objects.
    pub(crate) namespace: &'a str,
    /// Empty for a name that is to be generated, and for the deletion of a collection.
    pub(crate) name: &'a str,
    pub(crate) user: &'a Identity,
    pub(crate) dry_run: bool,
    /// `CreateOptions`, `UpdateOptions` or `DeleteOptions`; null for a connection.
    pub(crate) options: &'a Value,
}

/// A group, a version, and the name of a kind or resource.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct GroupVersion<'a> {
    pub(super) group: &'a str,
    pub(super) version: &'a str,
    pub(super) name: &'a str,
}

impl<'a> Attributes<'a> {
    pub(super) fn group_version_resource(&self) -> GroupVersion<'a> {
        resource_of(self.resource)
    }

    pub(super) fn group_version_kind(&self) -> GroupVersion<'a> {
        kind_of(self.resource, self.subresource)
    }

    /// Returns whether the object of the request has the kind of the resource, not a kind of only the
    /// subresource.
    pub(super) fn is_of_resource(&self) -> bool {
        self.group_version_kind().name == self.resource.kind
    }
}

pub(super) fn resource_of(resource: &Resource) -> GroupVersion<'_> {
    GroupVersion { group: &resource.group, version: &resource.version, name: &resource.plural }
}

/// Returns the kind of a resource or a subresource: a `Scale` for `scale`.
pub(super) fn kind_of<'a>(resource: &'a Resource, subresource: &str) -> GroupVersion<'a> {
    match resource.subresource(subresource) {
        Some(found) => GroupVersion { group: &found.group, version: &found.version, name: &found.kind },
        None => GroupVersion { group: &resource.group, version: &resource.version, name: &resource.kind },
    }
}
