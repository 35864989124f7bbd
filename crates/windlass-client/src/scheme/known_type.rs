//! The kinds that a program knows.

use kube_core::{
    ApiResource,
    gvk::{GroupVersion, GroupVersionKind, GroupVersionResource},
};

/// A kind with the names of the resource.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct KnownType {
    /// The group; empty for the core group.
    pub group: &'static str,
    /// The version.
    pub version: &'static str,
    /// The kind.
    pub kind: &'static str,
    /// The name of the resource, a plural in lower case.
    pub resource: &'static str,
    /// The singular of the resource.
    pub singular: &'static str,
    /// True if objects are in namespaces.
    pub namespaced: bool,
}

impl KnownType {
    /// Returns group and version: `SchemeGroupVersion` in Go.
    pub fn group_version(&self) -> GroupVersion {
        GroupVersion::gv(self.group, self.version)
    }

    /// Returns group, version and kind.
    pub fn group_version_kind(&self) -> GroupVersionKind {
        GroupVersionKind::gvk(self.group, self.version, self.kind)
    }

    /// Returns group, version and resource.
    pub fn group_version_resource(&self) -> GroupVersionResource {
        GroupVersionResource::gvr(self.group, self.version, self.resource)
    }

    /// Returns kube's description of the resource, for requests with dynamic objects.
    pub fn api_resource(&self) -> ApiResource {
        ApiResource::from_gvk_with_plural(&self.group_version_kind(), self.resource)
    }
}

/// The kinds that a program knows. Go also needs a scheme to decode objects; Rust does not.
#[derive(Clone, Debug, Default)]
pub struct Scheme {
    types: Vec<KnownType>,
}

impl Scheme {
    /// Makes a scheme without kinds.
    pub fn new() -> Self {
        Self::default()
    }

    /// Adds kinds, such as a generated `register::KNOWN_TYPES`. Kinds that the scheme already has are
    /// ignored.
    pub fn add_known_types(mut self, types: &[KnownType]) -> Self {
        for known in types {
            if !self.types.contains(known) {
                self.types.push(*known);
            }
        }
        self
    }

    /// Returns all kinds, in the order of registration. The first version of a group is the preferred
    /// version.
    pub fn known_types(&self) -> impl Iterator<Item = &KnownType> {
        self.types.iter()
    }

    /// Returns whether the scheme knows a kind.
    pub fn recognizes(&self, kind: &GroupVersionKind) -> bool {
        self.types.iter().any(|known| known.group_version_kind() == *kind)
    }

    /// Returns the group versions, in the order of registration.
    pub fn prioritized_versions(&self) -> Vec<GroupVersion> {
        let mut versions = Vec::new();
        for known in &self.types {
            let version = known.group_version();
            if !versions.contains(&version) {
                versions.push(version);
            }
        }
        versions
    }
}
