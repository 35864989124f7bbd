//! Aggregated discovery: a single document, `apidiscovery.k8s.io/v2` (KEP-3352).

use serde::Serialize;

use crate::aggregate::{Merged, RemoteVersion};
use crate::resource::{Resource, ServedSubresource, Version};

#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
pub(super) struct GroupDiscoveryList<'a> {
    kind: &'static str,
    api_version: &'static str,
    metadata: Metadata<'a>,
    items: Vec<GroupDiscovery<'a>>,
}

#[derive(Serialize)]
struct Metadata<'a> {
    #[serde(skip_serializing_if = "str::is_empty")]
    name: &'a str,
}

#[derive(Serialize)]
struct GroupDiscovery<'a> {
    metadata: Metadata<'a>,
    versions: Vec<AnyVersion<'a>>,
}

/// A version of this server, or the document of an extension server.
#[derive(Serialize)]
#[serde(untagged)]
enum AnyVersion<'a> {
    Own(VersionDiscovery<'a>),
    Remote(&'a RemoteVersion),
}

#[derive(Serialize)]
struct VersionDiscovery<'a> {
    version: &'a str,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    resources: Vec<ResourceDiscovery<'a>>,
    freshness: &'static str,
}

#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct ResourceDiscovery<'a> {
    resource: &'a str,
    response_kind: ResponseKind<'a>,
    scope: &'static str,
    singular_resource: &'a str,
    verbs: &'a [String],
    #[serde(skip_serializing_if = "<[String]>::is_empty")]
    short_names: &'a [String],
    #[serde(skip_serializing_if = "<[String]>::is_empty")]
    categories: &'a [String],
    #[serde(skip_serializing_if = "Vec::is_empty")]
    subresources: Vec<SubresourceDiscovery<'a>>,
}

#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct SubresourceDiscovery<'a> {
    subresource: &'a str,
    response_kind: ResponseKind<'a>,
    verbs: &'a [String],
}

/// Group and version are empty if equal to the enclosing document's.
#[derive(Serialize)]
struct ResponseKind<'a> {
    group: &'a str,
    version: &'a str,
    kind: &'a str,
}

/// Returns the groups of `/api` (the core group) or `/apis` (all other groups).
pub(super) fn list<'a>(groups: &'a Merged<'_>, core: bool) -> GroupDiscoveryList<'a> {
    let own = groups.served.groups().iter().filter(|group| group.name.is_empty() == core);
    let own = own.map(|group| {
        let versions = group.versions.iter().map(|found| AnyVersion::Own(version(found)));
        let remote = groups.remote_documents(&group.name).map(AnyVersion::Remote);
        let versions = versions.chain(remote).collect();
        GroupDiscovery { metadata: Metadata { name: &group.name }, versions }
    });
    let remote = groups.remote_groups().filter(|_| !core).map(|name| GroupDiscovery {
        metadata: Metadata { name },
        versions: groups.remote_documents(name).map(AnyVersion::Remote).collect(),
    });
    let items = own.chain(remote);
    GroupDiscoveryList {
        kind: "APIGroupDiscoveryList",
        api_version: "apidiscovery.k8s.io/v2",
        metadata: Metadata { name: "" },
        items: items.collect(),
    }
}

fn version(version: &Version) -> VersionDiscovery<'_> {
    let resources = version.resources.values().map(|served| resource(served));
    VersionDiscovery { version: &version.name, resources: resources.collect(), freshness: "Current" }
}

/// Returns the kind of responses. Built-in resources leave out the group and version of the enclosing
/// document; custom resources repeat the group and version.
fn response_kind(resource: &Resource) -> ResponseKind<'_> {
    let kind = &resource.kind;
    if resource.is_custom() {
        ResponseKind { group: &resource.group, version: &resource.version, kind }
    } else {
        ResponseKind { group: "", version: "", kind }
    }
}

fn resource(resource: &Resource) -> ResourceDiscovery<'_> {
    ResourceDiscovery {
        resource: &resource.plural,
        response_kind: response_kind(resource),
        scope: if resource.namespaced { "Namespaced" } else { "Cluster" },
        singular_resource: &resource.singular,
        verbs: &resource.verbs,
        short_names: &resource.short_names,
        categories: &resource.categories,
        subresources: resource.subresources.iter().map(|sub| subresource(resource, sub)).collect(),
    }
}

fn subresource<'a>(resource: &Resource, subresource: &'a ServedSubresource) -> SubresourceDiscovery<'a> {
    let elsewhere = resource.is_custom()
        || (&subresource.group, &subresource.version) != (&resource.group, &resource.version);
    SubresourceDiscovery {
        subresource: &subresource.name,
        response_kind: ResponseKind {
            group: if elsewhere { &subresource.group } else { "" },
            version: if elsewhere { &subresource.version } else { "" },
            kind: &subresource.kind,
        },
        verbs: &subresource.verbs,
    }
}
