//! Request paths of the API.

use std::borrow::Cow;

use kube_core::ApiResource;
use windlass_cache::ObjectKey;
use windlass_workqueue::Equivalent;

use crate::path_segment::{InvalidName, path_segment, segment_name};

/// A resource of an API group, without the version: all versions of a resource are the same objects.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct GroupResource {
    /// The API group; empty for the core group.
    pub group: String,
    /// The plural.
    pub resource: String,
}

impl GroupResource {
    /// Returns the resource without its version.
    pub fn of(resource: &ApiResource) -> Self {
        Self { group: resource.group.clone(), resource: resource.plural.clone() }
    }
}

impl std::fmt::Display for GroupResource {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(&self.resource)?;
        if self.group.is_empty() { Ok(()) } else { write!(f, ".{}", self.group) }
    }
}

/// Returns the path of a resource's group and version, without a slash at the end: `/api/v1`,
/// `/apis/apps/v1`.
pub(crate) fn version_path(resource: &ApiResource) -> String {
    let root = if resource.group.is_empty() { "api" } else { "apis" };
    format!("/{root}/{}", resource.api_version)
}

/// Returns the path of a resource's collection, in a namespace or in all namespaces.
///
/// # Errors
/// The namespace has an invalid name.
pub(crate) fn collection_path(
    resource: &ApiResource,
    namespace: Option<&str>,
) -> Result<String, InvalidName> {
    let (version, plural) = (version_path(resource), &resource.plural);
    Ok(match namespace {
        Some(namespace) => format!("{version}/namespaces/{}/{plural}", path_segment(namespace)?),
        None => format!("{version}/{plural}"),
    })
}

/// Returns the path of an object.
///
/// # Errors
/// The namespace or the object has an invalid name.
pub(crate) fn object_path(resource: &ApiResource, key: &ObjectKey) -> Result<String, InvalidName> {
    Ok(format!("{}/{}", collection_path(resource, key.namespace())?, path_segment(key.name())?))
}

/// A parsed path of the API: `/apis/{group}/{version}/namespaces/{namespace}/{resource}/{name}/{subresource}`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ResourcePath<'a> {
    /// The API group; empty for the core group.
    pub group: &'a str,
    /// The plural.
    pub resource: &'a str,
    /// The namespace, if the path has one.
    pub namespace: Option<Cow<'a, str>>,
    /// The name of the object, if the path has one.
    pub name: Option<Cow<'a, str>>,
    /// The subresource, if the path has one.
    pub subresource: Option<&'a str>,
}

impl<'a> ResourcePath<'a> {
    /// Returns `None` for a path that names no resource: `/version`, `/openapi/v3`, discovery.
    pub fn parse(path: &'a str) -> Option<Self> {
        let mut segments = path.split('/').filter(|segment| !segment.is_empty());
        let group = match segments.next()? {
            "api" => "",
            "apis" => segments.next()?,
            _ => return None,
        };
        let _version = segments.next()?;
        let mut rest = [None; 5];
        for (place, segment) in rest.iter_mut().zip(segments) {
            *place = Some(segment);
        }
        let (namespace, [resource, name, subresource]) = match rest {
            // A Namespace object and its subresources look like a resource inside of a namespace.
            [Some("namespaces"), None, ..]
            | [Some("namespaces"), Some(_), None, ..]
            | [Some("namespaces"), Some(_), Some("status" | "finalize"), None, ..] => {
                (None, [rest[0], rest[1], rest[2]])
            }
            [Some("namespaces"), namespace, resource, name, subresource] => {
                (namespace, [resource, name, subresource])
            }
            [resource, name, subresource, ..] => (None, [resource, name, subresource]),
        };
        let (namespace, name) = (namespace.map(segment_name), name.map(segment_name));
        Some(Self { group, resource: resource?, namespace, name, subresource })
    }

    /// Returns the group and the resource, to look up a [`GroupResource`].
    pub fn group_resource(&self) -> GroupResourceRef<'a> {
        GroupResourceRef { group: self.group, resource: self.resource }
    }
}

/// A borrowed [`GroupResource`], with the same hash.
#[derive(Clone, Copy, Hash)]
pub struct GroupResourceRef<'a> {
    group: &'a str,
    resource: &'a str,
}

impl<'a> GroupResourceRef<'a> {
    pub(crate) fn of(resource: &'a ApiResource) -> Self {
        Self { group: &resource.group, resource: &resource.plural }
    }
}

impl From<GroupResourceRef<'_>> for GroupResource {
    fn from(borrowed: GroupResourceRef<'_>) -> Self {
        Self { group: borrowed.group.to_owned(), resource: borrowed.resource.to_owned() }
    }
}

impl Equivalent<GroupResource> for GroupResourceRef<'_> {
    fn equivalent(&self, key: &GroupResource) -> bool {
        self.group == key.group && self.resource == key.resource
    }
}

/// Returns whether a query sets `key` to a value that the API server reads as true.
pub fn query_flag(query: Option<&str>, key: &str) -> bool {
    query.unwrap_or_default().split('&').any(|pair| {
        pair.split_once('=')
            .is_some_and(|(name, value)| name == key && matches!(value, "true" | "1" | "True" | "TRUE" | "t"))
    })
}
