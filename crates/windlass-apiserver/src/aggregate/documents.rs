//! The discovery documents and OpenAPI documents of extension servers, and their place among the groups of this server.

use std::collections::BTreeMap;
use std::hash::{DefaultHasher, Hash, Hasher};
use std::sync::Arc;

use http::{StatusCode, header};
use parking_lot::RwLock;
use serde_json::{Value, json};
use windlass_schema::ExtensionDocument;

use super::Aggregator;
use super::remote::{Remote, Remotes};
use crate::apart::Apart;
use crate::resource::ServedResources;

/// The form of discovery that extension servers are asked for first.
const AGGREGATED: &str =
    "application/json;g=apidiscovery.k8s.io;v=v2;as=APIGroupDiscoveryList,application/json";

/// The limit of the OpenAPI v2 documents of all group versions together, in bytes.
const MAX_DESCRIPTIONS: usize = 64 << 20;

/// The resources of each group version of extension servers, in the form of aggregated discovery.
#[derive(Default)]
pub(super) struct Documents {
    known: RwLock<BTreeMap<(String, String), Value>>,
    /// The OpenAPI v2 document of each group version.
    descriptions: RwLock<BTreeMap<(String, String), Arc<Description>>>,
}

/// The OpenAPI v2 document of a group version, in JSON: as values, the document takes up to a hundred times the memory.
pub(crate) struct Description {
    /// Changes with the document.
    pub(crate) hash: u64,
    /// The entity tag of the server.
    tag: Option<String>,
    group: String,
    version: String,
    text: Vec<u8>,
}

impl Description {
    /// Reads the part of a server's document that describes the group version.
    fn read(remote: &Remote, tag: Option<String>, body: &[u8]) -> Option<Self> {
        let (group, version) = (remote.group.clone(), remote.version.clone());
        let mut hasher = DefaultHasher::new();
        (&group, &version, body).hash(&mut hasher);
        let text = selected(body, &group, &version)?.into_json();
        Some(Self { hash: hasher.finish(), tag, group, version, text })
    }

    pub(crate) fn document(&self) -> Option<ExtensionDocument> {
        selected(&self.text, &self.group, &self.version)
    }
}

/// Selects the part of a document that describes a group version. `None` for a document that is no JSON, or whose values take too much memory.
fn selected(document: &[u8], group: &str, version: &str) -> Option<ExtensionDocument> {
    let (document, _) = crate::wire::from_json_with_duplicates(document).ok()?;
    Some(ExtensionDocument::new(document, group, version))
}

impl Documents {
    /// Forgets all other group versions.
    pub(super) fn keep(&self, is_kept: impl Fn(&str, &str) -> bool) {
        self.known.write().retain(|(group, version), _| is_kept(group, version));
        self.descriptions.write().retain(|(group, version), _| is_kept(group, version));
    }

    /// Gets the document of a group version. If the server does not answer, the last document stays.
    pub(super) async fn refresh(&self, aggregator: &Aggregator, remote: &Remote) {
        let found = match aggregated(aggregator, remote).await {
            Some(found) => Some(found),
            None => unaggregated(aggregator, remote).await,
        };
        if let Some(found) = found {
            self.known.write().insert((remote.group.clone(), remote.version.clone()), found);
        }
    }

    /// Gets the OpenAPI v2 document of a group version, unless the document is known. If the server has no document, the last document
    /// stays.
    pub(super) async fn refresh_description(
        &self,
        aggregator: &Aggregator,
        remote: &Arc<Remote>,
        apart: &Apart,
    ) {
        let key = (remote.group.clone(), remote.version.clone());
        let tag = self.descriptions.read().get(&key).and_then(|known| known.tag.clone());
        let reply = aggregator.get_changed(remote, "/openapi/v2", None, tag.as_deref()).await;
        let Some((head, body)) = reply.ok().filter(|(head, _)| head.status == StatusCode::OK) else { return };
        let tag = head.headers.get(header::ETAG).and_then(|tag| Some(tag.to_str().ok()?.to_owned()));
        let of = Arc::clone(remote);
        let Ok(Some(description)) = apart.work(move || Description::read(&of, tag, &body)).await else {
            tracing::warn!(name = remote.name, "the OpenAPI document of an extension server cannot be read");
            return;
        };
        let mut known = self.descriptions.write();
        let others = known.iter().filter(|(other, _)| **other != key).map(|(_, other)| other.text.len());
        if others.sum::<usize>() + description.text.len() > MAX_DESCRIPTIONS {
            tracing::warn!(name = remote.name, "the OpenAPI documents of extension servers are too large");
            return;
        }
        known.insert(key, Arc::new(description));
    }

    fn of(&self, remote: &Remote) -> Value {
        let key = (remote.group.clone(), remote.version.clone());
        let known = self.known.read().get(&key).cloned();
        let mut document = known.unwrap_or_else(|| json!({"version": remote.version}));
        document["freshness"] = if remote.is_available { "Current" } else { "Stale" }.into();
        document
    }
}

/// Reads a group version in the aggregated document of a server.
async fn aggregated(aggregator: &Aggregator, remote: &Remote) -> Option<Value> {
    let (head, body) = aggregator.get(remote, "/apis", Some(AGGREGATED)).await.ok()?;
    let list: Value = serde_json::from_slice(&body).ok().filter(|_| head.status.is_success())?;
    (list["kind"] == "APIGroupDiscoveryList").then_some(())?;
    let groups = list["items"].as_array()?;
    let group = groups.iter().find(|group| group["metadata"]["name"] == *remote.group)?;
    let version =
        group["versions"].as_array()?.iter().find(|version| version["version"] == *remote.version)?;
    Some(version.clone())
}

/// Reads the resources of a group version of a server without aggregated discovery.
async fn unaggregated(aggregator: &Aggregator, remote: &Remote) -> Option<Value> {
    let (head, body) = aggregator.get(remote, &remote.path(), None).await.ok()?;
    let list: Value = serde_json::from_slice(&body).ok().filter(|_| head.status.is_success())?;
    let mut resources: Vec<Value> = Vec::new();
    for resource in list["resources"].as_array()? {
        let name = resource["name"].as_str().unwrap_or_default();
        let or_own = |field: &str, own: &str| match resource[field].as_str().unwrap_or_default() {
            "" => own.to_owned(),
            other => other.to_owned(),
        };
        let kind = json!({
            "group": or_own("group", &remote.group),
            "version": or_own("version", &remote.version),
            "kind": resource["kind"],
        });
        if let Some((parent, subresource)) = name.split_once('/') {
            let found = resources.iter_mut().find(|resource| resource["resource"] == parent);
            let entry = json!({"subresource": subresource, "responseKind": kind, "verbs": resource["verbs"]});
            // A subresource follows its resource.
            if let Some(subresources) = found.and_then(|found| found["subresources"].as_array_mut()) {
                subresources.push(entry);
            }
            continue;
        }
        let scope = if resource["namespaced"] == true { "Namespaced" } else { "Cluster" };
        let mut entry = json!({
            "resource": name, "responseKind": kind, "scope": scope, "subresources": [],
            "singularResource": resource["singularName"], "verbs": resource["verbs"],
        });
        for list in ["shortNames", "categories"] {
            if resource[list].is_array() {
                entry[list] = resource[list].clone();
            }
        }
        resources.push(entry);
    }
    Some(json!({"version": remote.version, "resources": resources}))
}

/// The groups of this server and of extension servers.
pub(crate) struct Merged<'a> {
    pub(crate) served: &'a ServedResources,
    /// The group versions of extension servers, in the order of discovery.
    groups: Vec<RemoteGroup>,
    /// The OpenAPI v2 documents of the group versions, in the order of discovery.
    descriptions: Vec<Arc<Description>>,
}

/// The versions of a group on extension servers.
struct RemoteGroup {
    name: String,
    /// The versions, the preferred version first, with the resources.
    versions: Vec<Value>,
}

impl<'a> Merged<'a> {
    pub(super) fn new(served: &'a ServedResources, remotes: &Remotes, documents: &Documents) -> Self {
        let mut found: Vec<_> = remotes
            .iter()
            .filter(|remote| !remote.group.is_empty())
            .filter(|remote| served.version(&remote.group, &remote.version).is_none())
            .collect();
        found.sort_by_key(|remote| {
            let rank = crate::resource::version_rank(&remote.version);
            (remote.group.clone(), std::cmp::Reverse(remote.priorities.1), rank)
        });
        found.sort_by_key(|remote| std::cmp::Reverse(remotes.priority(&remote.group)));
        let known = documents.descriptions.read();
        let key = |remote: &Remote| (remote.group.clone(), remote.version.clone());
        // The definitions of the first servers keep their names.
        let descriptions = found.iter().filter_map(|remote| known.get(&key(remote)).cloned()).collect();
        let mut groups: Vec<RemoteGroup> = Vec::new();
        for remote in found {
            if groups.last().is_none_or(|last| last.name != remote.group) {
                groups.push(RemoteGroup { name: remote.group.clone(), versions: Vec::new() });
            }
            if let Some(last) = groups.last_mut() {
                last.versions.push(documents.of(remote));
            }
        }
        Self { served, groups, descriptions }
    }

    /// Returns the OpenAPI v2 documents of the group versions of extension servers.
    pub(crate) fn descriptions(&self) -> impl Iterator<Item = &Arc<Description>> {
        self.descriptions.iter()
    }

    /// Returns the group versions of extension servers as `(group, version)`.
    pub(crate) fn remote_versions(&self) -> impl Iterator<Item = (&str, &str)> {
        self.groups.iter().flat_map(|group| {
            let names = group.versions.iter().filter_map(|version| version["version"].as_str());
            names.map(|version| (group.name.as_str(), version))
        })
    }

    /// Returns the names of the groups that this server has no version of.
    pub(crate) fn remote_groups(&self) -> impl Iterator<Item = &str> {
        let names = self.groups.iter().map(|group| group.name.as_str());
        names.filter(|name| self.served.group(name).is_none())
    }

    /// Returns the versions of a group on extension servers, with the resources.
    pub(crate) fn remote_documents(&self, group: &str) -> impl Iterator<Item = &Value> {
        let found = self.groups.iter().find(|found| found.name == group);
        found.into_iter().flat_map(|found| &found.versions)
    }
}
