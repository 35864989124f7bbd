//! The mapping between kinds and resources.

use kube_client::{Client, discovery};
use kube_core::{
    ApiResource,
    gvk::{GroupVersion, GroupVersionKind, GroupVersionResource},
};
use windlass_runtime::{Error, Result};

use super::Scheme;

/// Maps kinds to resources, and resources to kinds.
///
/// If several versions or groups match, the order of registration decides; a server names preferred versions
/// first.
#[derive(Clone, Debug, Default)]
pub struct RestMapper {
    rows: Vec<Row>,
}

#[derive(Clone, Debug)]
struct Row {
    mapping: RestMapping,
    singular: String,
}

/// A kind with the resource and the scope.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct RestMapping {
    /// The kind.
    pub kind: GroupVersionKind,
    /// The resource.
    pub resource: GroupVersionResource,
    /// True if objects are in namespaces.
    pub namespaced: bool,
}

/// Why a kind or a resource has no mapping.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum MappingError {
    /// No kind of this name.
    #[error("no matches for kind {kind:?} in {place}")]
    NoKind {
        /// The kind.
        kind: String,
        /// The group or the version.
        place: String,
    },
    /// No resource of this name.
    #[error("no matches for resource {0:?}")]
    NoResource(String),
    /// A resource name fits several groups.
    #[error("{resource} matches multiple resources: {}", .matches.join(", "))]
    Ambiguous {
        /// The name that was asked for.
        resource: String,
        /// The matching resources, with groups.
        matches: Vec<String>,
    },
}

impl RestMapping {
    /// Returns kube's description of the resource, for requests with dynamic objects.
    pub fn api_resource(&self) -> ApiResource {
        ApiResource::from_gvk_with_plural(&self.kind, &self.resource.resource)
    }
}

impl From<&Scheme> for RestMapper {
    fn from(scheme: &Scheme) -> Self {
        let rows = scheme.known_types().map(|known| Row {
            mapping: RestMapping {
                kind: known.group_version_kind(),
                resource: known.group_version_resource(),
                namespaced: known.namespaced,
            },
            singular: known.singular.to_owned(),
        });
        Self { rows: rows.collect() }
    }
}

impl RestMapper {
    /// Asks a server for the server's kinds and resources. A CRD that is installed later needs a new mapper. The kinds
    /// of an aggregated API whose server is down are left out.
    ///
    /// # Errors
    /// The server did not answer, or is older than Kubernetes 1.27.
    pub async fn discover(client: &Client) -> Result<Self> {
        let found = discovery::Discovery::new(client.clone()).run_aggregated().await;
        let found =
            found.map_err(|error| Error::from(error).while_doing("asking the server for its kinds"))?;
        let mut mapper = Self::default();
        for group in found.groups_alphabetical() {
            let preferred = group.preferred_version_or_latest();
            let others = group.versions().filter(|version| *version != preferred);
            for version in std::iter::once(preferred).chain(others) {
                let resources = group.versioned_resources(version);
                mapper.rows.extend(resources.iter().map(|(resource, served)| Row::of(resource, served)));
            }
        }
        Ok(mapper)
    }

    /// Returns the resource of a kind, in the first of the versions with the kind. Without versions, takes
    /// the preferred version.
    ///
    /// # Errors
    /// There is no such kind.
    pub fn rest_mapping(
        &self,
        group: &str,
        kind: &str,
        versions: &[&str],
    ) -> Result<RestMapping, MappingError> {
        let of_kind = |row: &&Row| row.mapping.kind.group == group && row.mapping.kind.kind == kind;
        let found = match versions {
            [] => self.rows.iter().find(of_kind),
            versions => versions.iter().find_map(|wanted| {
                self.rows.iter().filter(of_kind).find(|row| row.mapping.kind.version == *wanted)
            }),
        };
        found.map(|row| row.mapping.clone()).ok_or_else(|| MappingError::NoKind {
            kind: kind.to_owned(),
            place: match versions {
                [] => format!("group {group:?}"),
                versions => versions
                    .iter()
                    .map(|version| format!("version {:?}", GroupVersion::gv(group, version).api_version()))
                    .collect::<Vec<_>>()
                    .join(", "),
            },
        })
    }

    /// Returns the kind of a resource. An empty group or version means any.
    ///
    /// # Errors
    /// There is no such resource, or there are some in several groups.
    pub fn kind_for(&self, resource: &GroupVersionResource) -> Result<GroupVersionKind, MappingError> {
        self.find(resource).map(|mapping| mapping.kind.clone())
    }

    /// Returns the full name of a resource that is named in the singular or plural. An empty group or version means any.
    ///
    /// # Errors
    /// As [`kind_for`](Self::kind_for).
    pub fn resource_for(
        &self,
        resource: &GroupVersionResource,
    ) -> Result<GroupVersionResource, MappingError> {
        self.find(resource).map(|mapping| mapping.resource.clone())
    }

    /// Returns the kind of a resource in any group and version, named in the singular or plural.
    ///
    /// # Errors
    /// As [`kind_for`](Self::kind_for).
    pub fn kind_for_resource(&self, resource: &str) -> Result<GroupVersionKind, MappingError> {
        self.kind_for(&GroupVersionResource::gvr("", "", resource))
    }

    fn find(&self, wanted: &GroupVersionResource) -> Result<&RestMapping, MappingError> {
        let name = wanted.resource.to_ascii_lowercase();
        let fits = |row: &&Row| {
            let resource = &row.mapping.resource;
            (resource.resource == name || row.singular == name)
                && (wanted.group.is_empty() || resource.group == wanted.group)
                && (wanted.version.is_empty() || resource.version == wanted.version)
        };
        let found: Vec<_> = self.rows.iter().filter(fits).map(|row| &row.mapping).collect();
        let Some(first) = found.first().copied() else {
            return Err(MappingError::NoResource(wanted.resource.clone()));
        };
        if found.iter().all(|mapping| mapping.resource.group == first.resource.group) {
            return Ok(first);
        }
        let mut matches: Vec<String> = found.iter().map(|mapping| qualified(&mapping.resource)).collect();
        matches.dedup();
        Err(MappingError::Ambiguous { resource: wanted.resource.clone(), matches })
    }
}

impl Row {
    fn of(resource: &ApiResource, served: &discovery::ApiCapabilities) -> Self {
        let (group, version) = (resource.group.as_str(), resource.version.as_str());
        Self {
            mapping: RestMapping {
                kind: GroupVersionKind::gvk(group, version, &resource.kind),
                resource: GroupVersionResource::gvr(group, version, &resource.plural),
                namespaced: served.scope == discovery::Scope::Namespaced,
            },
            singular: resource.kind.to_ascii_lowercase(),
        }
    }
}

fn qualified(resource: &GroupVersionResource) -> String {
    if resource.group.is_empty() {
        resource.resource.clone()
    } else {
        format!("{}.{}", resource.resource, resource.group)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::scheme::KnownType;

    const fn known(group: &'static str, version: &'static str) -> KnownType {
        KnownType { group, version, kind: "Event", resource: "events", singular: "event", namespaced: true }
    }

    fn scheme() -> Scheme {
        let types =
            [known("a.example.com", "v2"), known("a.example.com", "v1"), known("b.example.com", "v1")];
        Scheme::new().add_known_types(&types)
    }

    fn mapper() -> RestMapper {
        RestMapper::from(&scheme())
    }

    #[test]
    fn a_scheme_lists_its_versions_in_the_order_of_registration() {
        let versions: Vec<_> =
            scheme().prioritized_versions().iter().map(GroupVersion::api_version).collect();
        assert_eq!(versions, ["a.example.com/v2", "a.example.com/v1", "b.example.com/v1"]);
        assert!(scheme().recognizes(&GroupVersionKind::gvk("a.example.com", "v1", "Event")));
        assert!(!scheme().recognizes(&GroupVersionKind::gvk("a.example.com", "v1", "Node")));
    }

    #[test]
    fn a_kind_has_the_resource_of_the_first_version_that_was_registered() {
        let mapping = mapper().rest_mapping("a.example.com", "Event", &[]).expect("a mapping");
        assert_eq!(mapping.resource, GroupVersionResource::gvr("a.example.com", "v2", "events"));
        let mapping = mapper().rest_mapping("a.example.com", "Event", &["v9", "v1"]).expect("a mapping");
        assert_eq!(mapping.resource.version, "v1");
        let error = mapper().rest_mapping("a.example.com", "Event", &["v9"]).expect_err("no mapping");
        assert_eq!(error.to_string(), "no matches for kind \"Event\" in version \"a.example.com/v9\"");
    }

    #[test]
    fn a_resource_is_found_by_part_of_its_name_if_one_group_has_it() {
        let wanted = GroupVersionResource::gvr("b.example.com", "", "event");
        let kind = mapper().kind_for(&wanted).expect("a kind");
        assert_eq!(kind, GroupVersionKind::gvk("b.example.com", "v1", "Event"));
        let resource = mapper().resource_for(&wanted).expect("a resource");
        assert_eq!(resource, GroupVersionResource::gvr("b.example.com", "v1", "events"));
        let error = mapper().kind_for_resource("events").expect_err("two groups");
        assert!(error.to_string().ends_with("events.a.example.com, events.b.example.com"), "{error}");
        assert_eq!(mapper().kind_for_resource("x"), Err(MappingError::NoResource("x".to_owned())));
    }
}
