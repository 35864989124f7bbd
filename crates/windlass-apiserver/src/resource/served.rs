//! The table of all resources that are served.

use std::collections::{BTreeMap, HashMap};
use std::sync::Arc;

use super::Resource;
use crate::store::ResourceId;

/// A version of a group.
#[derive(Clone)]
pub(crate) struct Version {
    pub(crate) name: String,
    /// By plural name.
    pub(crate) resources: BTreeMap<String, Arc<Resource>>,
}

/// An API group, with versions in order of preference.
#[derive(Clone)]
pub(crate) struct Group {
    /// Empty for the core group.
    pub(crate) name: String,
    pub(crate) versions: Vec<Version>,
}

/// All served resources at a moment. The whole value is replaced when a definition is added, changed or
/// removed; unchanged groups are shared.
#[derive(Clone, Default)]
pub(crate) struct ServedResources {
    groups: Vec<Arc<Group>>,
    /// Where each group is in `groups`.
    places: HashMap<String, usize>,
}

impl ServedResources {
    /// Returns the groups in the order of discovery.
    pub(crate) fn groups(&self) -> &[Arc<Group>] {
        &self.groups
    }

    pub(crate) fn group(&self, name: &str) -> Option<&Group> {
        self.places.get(name).and_then(|place| self.groups.get(*place)).map(|group| &**group)
    }

    pub(crate) fn version(&self, group: &str, version: &str) -> Option<&Version> {
        self.group(group)?.versions.iter().find(|candidate| candidate.name == version)
    }

    pub(crate) fn resource(&self, group: &str, version: &str, plural: &str) -> Option<&Arc<Resource>> {
        self.version(group, version)?.resources.get(plural)
    }

    /// Returns a built-in resource of a version.
    pub(crate) fn builtin(&self, id: &ResourceId, version: &str) -> Option<&Arc<Resource>> {
        self.resource(&id.group, version, &id.resource)
    }

    /// Returns the resource that serves a kind.
    pub(crate) fn kind(&self, group: &str, version: &str, kind: &str) -> Option<&Arc<Resource>> {
        self.version(group, version)?.resources.values().find(|resource| resource.kind == kind)
    }

    /// Adds a resource. Groups and versions are created in the order of the first resource.
    pub(crate) fn insert(&mut self, resource: Arc<Resource>) {
        let group = self.group_mut(&resource.group);
        let at = group.versions.iter().position(|version| version.name == resource.version);
        let at = at.unwrap_or_else(|| {
            group.versions.push(Version { name: resource.version.clone(), resources: BTreeMap::new() });
            group.versions.len() - 1
        });
        group.versions[at].resources.insert(resource.plural.clone(), resource);
    }

    /// Replaces the part of a group that definitions determine: the built-in part `builtin`, and `custom`.
    ///
    /// A custom resource never replaces a built-in resource.
    pub(crate) fn replace_group(&mut self, name: &str, builtin: Option<&Group>, custom: Vec<Arc<Resource>>) {
        let group = self.group_mut(name);
        group.versions = builtin.map(|group| group.versions.clone()).unwrap_or_default();
        for resource in custom {
            let is_built_in = builtin.is_some_and(|group| {
                group.versions.iter().any(|version| version.resources.contains_key(&resource.plural))
            });
            if !is_built_in {
                self.insert(resource);
            }
        }
        let group = self.group_mut(name);
        // `v2`, `v1`, `v1beta1`, and then by name.
        group.versions.sort_by_key(|version| version_rank(&version.name));
        if group.versions.is_empty() {
            self.remove_group(name);
        }
    }

    fn group_mut(&mut self, name: &str) -> &mut Group {
        let place = *self.places.entry(name.to_owned()).or_insert_with(|| {
            self.groups.push(Arc::new(Group { name: name.to_owned(), versions: Vec::new() }));
            self.groups.len() - 1
        });
        Arc::make_mut(&mut self.groups[place])
    }

    fn remove_group(&mut self, name: &str) {
        let Some(place) = self.places.remove(name) else { return };
        self.groups.remove(place);
        for later in self.places.values_mut().filter(|later| **later > place) {
            *later -= 1;
        }
    }
}

/// Orders versions as discovery does: general availability before beta before alpha, newer first, then other names.
pub(crate) fn version_rank(version: &str) -> (u8, std::cmp::Reverse<u64>, std::cmp::Reverse<u64>, String) {
    use std::cmp::Reverse;
    let other = || (3, Reverse(0), Reverse(0), version.to_owned());
    let Some(rest) = version.strip_prefix('v') else { return other() };
    let (stage, major, minor) = if let Some((major, minor)) = rest.split_once("beta") {
        (1, major, minor)
    } else if let Some((major, minor)) = rest.split_once("alpha") {
        (2, major, minor)
    } else {
        (0, rest, "0")
    };
    match (major.parse(), minor.parse()) {
        (Ok(major), Ok(minor)) => (stage, Reverse(major), Reverse(minor), String::new()),
        _ => other(),
    }
}
