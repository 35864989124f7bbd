//! Discovery without aggregation: a document for each level.

use std::net::SocketAddr;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use serde::Serialize;
use sha2::{Digest, Sha256};

use super::health::{self, Health};
use crate::aggregate::Merged;
use crate::resource::{Group, Resource, ServedResources, ServedSubresource, Version, api_version};
use crate::verb::Verb;
use windlass_kinds::resources::COMPONENT_STATUSES;

/// The `APIVersions` that `/api` returns.
#[derive(Serialize)]
pub(super) struct CoreVersions {
    kind: &'static str,
    versions: [&'static str; 1],
    #[serde(rename = "serverAddressByClientCIDRs")]
    addresses: [Address; 1],
}

#[derive(Serialize)]
struct Address {
    #[serde(rename = "clientCIDR")]
    client_range: &'static str,
    #[serde(rename = "serverAddress")]
    address: String,
}

pub(super) fn versions(address: Option<SocketAddr>) -> CoreVersions {
    // The same address for clients of all networks: that of this server.
    let address = address.map(|address| address.to_string()).unwrap_or_default();
    let addresses = [Address { client_range: "0.0.0.0/0", address }];
    CoreVersions { kind: "APIVersions", versions: ["v1"], addresses }
}

/// The `APIGroupList` that `/apis` returns.
#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
pub(super) struct GroupList {
    kind: &'static str,
    api_version: &'static str,
    groups: Vec<DescribedGroup>,
}

/// An `APIGroup`, with kind and version outside of a list.
#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
pub(super) struct DescribedGroup {
    #[serde(skip_serializing_if = "Option::is_none")]
    kind: Option<&'static str>,
    #[serde(skip_serializing_if = "Option::is_none")]
    api_version: Option<&'static str>,
    name: String,
    versions: Vec<GroupVersion>,
    preferred_version: GroupVersion,
}

#[derive(Clone, Default, Serialize)]
#[serde(rename_all = "camelCase")]
struct GroupVersion {
    group_version: String,
    version: String,
}

pub(super) fn group_list(groups: &Merged<'_>) -> GroupList {
    let own = named_groups(groups.served).map(|group| group.name.as_str());
    let groups = own.chain(groups.remote_groups()).filter_map(|name| described(groups, name)).collect();
    GroupList { kind: "APIGroupList", api_version: "v1", groups }
}

/// Returns the `APIGroup` that `/apis/GROUP` returns; `None` for an unknown group.
pub(super) fn group(groups: &Merged<'_>, name: &str) -> Option<DescribedGroup> {
    let described = described(groups, name)?;
    Some(DescribedGroup { kind: Some("APIGroup"), api_version: Some("v1"), ..described })
}

fn described(groups: &Merged<'_>, name: &str) -> Option<DescribedGroup> {
    let own = groups.served.group(name).map(|group| group.versions.as_slice()).unwrap_or_default();
    let own = own.iter().map(|version| version.name.as_str());
    let remote = groups.remote_versions().filter(|(found, _)| *found == name).map(|(_, version)| version);
    let versions: Vec<GroupVersion> = own
        .chain(remote)
        .map(|version| GroupVersion {
            group_version: api_version(name, version),
            version: version.to_owned(),
        })
        .collect();
    let preferred_version = versions.first()?.clone();
    Some(DescribedGroup { kind: None, api_version: None, name: name.to_owned(), versions, preferred_version })
}

fn named_groups(table: &ServedResources) -> impl Iterator<Item = &Group> {
    table.groups().iter().map(|group| &**group).filter(|group| !group.name.is_empty())
}

/// The paths of every server that `/` lists.
const PATHS: &[&str] = &[
    "/.well-known/openid-configuration",
    "/api",
    "/api/v1",
    "/apis",
    "/apis/",
    "/flagz",
    "/metrics",
    "/metrics/slis",
    "/openapi/v2",
    "/openapi/v3",
    "/openapi/v3/",
    "/openid/v1/jwks",
    "/statusz",
    "/version",
];

/// Returns the paths that `/` lists.
pub(super) fn paths(groups: &Merged<'_>, health: &Health) -> Vec<String> {
    let mut paths: Vec<String> = PATHS.iter().map(|path| (*path).to_owned()).collect();
    for endpoint in ["/healthz", "/livez", "/readyz"] {
        paths.push(endpoint.to_owned());
        paths.extend(health::names(health).map(|name| format!("{endpoint}/{name}")));
    }
    for group in named_groups(groups.served) {
        paths.push(format!("/apis/{}", group.name));
        paths.extend(group.versions.iter().map(|version| format!("/apis/{}/{}", group.name, version.name)));
    }
    paths.extend(groups.remote_groups().map(|group| format!("/apis/{group}")));
    paths.extend(groups.remote_versions().map(|(group, version)| format!("/apis/{group}/{version}")));
    paths.sort();
    paths
}

/// The `APIResourceList` that `/api/v1` and `/apis/GROUP/VERSION` return.
#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
pub(super) struct ResourceList<'a> {
    kind: &'static str,
    #[serde(skip_serializing_if = "Option::is_none")]
    api_version: Option<&'static str>,
    group_version: String,
    resources: Vec<Entry<'a>>,
}

#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct Entry<'a> {
    name: String,
    singular_name: &'a str,
    namespaced: bool,
    #[serde(skip_serializing_if = "str::is_empty")]
    group: &'a str,
    #[serde(skip_serializing_if = "str::is_empty")]
    version: &'a str,
    kind: &'a str,
    verbs: &'a [String],
    #[serde(skip_serializing_if = "<[String]>::is_empty")]
    short_names: &'a [String],
    #[serde(skip_serializing_if = "<[String]>::is_empty")]
    categories: &'a [String],
    #[serde(skip_serializing_if = "String::is_empty")]
    storage_version_hash: String,
}

pub(super) fn resource_list<'a>(group: &str, version: &'a Version) -> ResourceList<'a> {
    let resources = version.resources.values().flat_map(|resource| {
        let subresources = resource.subresources.iter().map(move |sub| subresource(resource, sub));
        std::iter::once(main_resource(resource)).chain(subresources)
    });
    ResourceList {
        kind: "APIResourceList",
        // The core group's document has none, on the real server too.
        api_version: (!group.is_empty()).then_some("v1"),
        group_version: api_version(group, &version.name),
        resources: resources.collect(),
    }
}

fn main_resource(resource: &Resource) -> Entry<'_> {
    Entry {
        name: resource.plural.clone(),
        singular_name: &resource.singular,
        namespaced: resource.namespaced,
        group: "",
        version: "",
        kind: &resource.kind,
        verbs: &resource.verbs,
        short_names: &resource.short_names,
        categories: &resource.categories,
        storage_version_hash: storage_version_hash(resource),
    }
}

fn subresource<'a>(resource: &'a Resource, subresource: &'a ServedSubresource) -> Entry<'a> {
    let elsewhere = (&subresource.group, &subresource.version) != (&resource.group, &resource.version);
    Entry {
        name: format!("{}/{}", resource.plural, subresource.name),
        singular_name: "",
        namespaced: resource.namespaced,
        group: if elsewhere { &subresource.group } else { "" },
        version: if elsewhere { &subresource.version } else { "" },
        kind: &subresource.kind,
        verbs: &subresource.verbs,
        short_names: &[],
        categories: &[],
        storage_version_hash: String::new(),
    }
}

/// Returns the storage version hash: the first eight bytes of the SHA-256 of `group/version/kind` as stored;
/// empty for resources that are not stored.
fn storage_version_hash(resource: &Resource) -> String {
    if !resource.allows(Verb::Get) || resource.storage == *COMPONENT_STATUSES {
        return String::new();
    }
    let (kind, version) = (&resource.kind, &resource.storage_version);
    let stored_as = match (version.split_once('/'), resource.strategy.config.stored_in_version) {
        (Some((group, "v1")), Some(stored)) => format!("{group}/{stored}/{kind}"),
        (Some(_), _) => format!("{version}/{kind}"),
        (None, _) => format!("/{version}/{kind}"),
    };
    STANDARD.encode(&Sha256::digest(stored_as)[..8])
}
