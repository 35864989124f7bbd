//! The discovery documents and OpenAPI documents of extension servers, and their place among the groups of this server.

use std::collections::BTreeMap;
use std::hash::{DefaultHasher, Hash, Hasher};
use std::sync::Arc;

use bytes::Bytes;
use http::{StatusCode, header};
use parking_lot::RwLock;
use serde::Serialize;
use serde_json::value::RawValue;
use windlass_schema::ExtensionDocument;

use super::Aggregator;
use super::discovery::{Form, Resources};
use super::remote::{Remote, Remotes};
use crate::apart::Apart;
use crate::resource::ServedResources;

/// The form of discovery that extension servers are asked for first.
const AGGREGATED: &str =
    "application/json;g=apidiscovery.k8s.io;v=v2;as=APIGroupDiscoveryList,application/json";

/// The limit of the OpenAPI v2 documents of all group versions together, in bytes.
const MAX_DESCRIPTIONS: usize = 64 << 20;

/// The limit of the resources of all group versions together, in bytes.
const MAX_RESOURCES: usize = 16 << 20;

/// The resources of each group version of extension servers, in the form of aggregated discovery.
#[derive(Default)]
pub(super) struct Documents {
    known: RwLock<BTreeMap<(String, String), Known>>,
    /// The OpenAPI v2 document of each group version.
    descriptions: RwLock<BTreeMap<(String, String), Arc<Description>>>,
}

/// The resources of a group version.
struct Known {
    /// Changes with the document of the server.
    hash: u64,
    resources: Arc<RawValue>,
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

    /// Gets the resources of a group version. If the server does not answer, the last resources stay.
    pub(super) async fn refresh(&self, aggregator: &Aggregator, remote: &Arc<Remote>, apart: &Apart) {
        for form in [Form::Aggregated, Form::ResourceList] {
            let Some(body) = discovery(aggregator, remote, form).await else { continue };
            let mut hasher = DefaultHasher::new();
            body.hash(&mut hasher);
            let hash = hasher.finish();
            if self.known.read().get(&remote.key()).is_some_and(|known| known.hash == hash) {
                return;
            }
            let of = Arc::clone(remote);
            match apart.work(move || Resources::read(form, &body, &of)).await {
                Ok(Ok(Some(resources))) => return self.insert(remote, hash, resources),
                Ok(Err(why)) => {
                    let name = &remote.name;
                    tracing::warn!(
                        name,
                        "the discovery document of an extension server cannot be read: {why}"
                    );
                }
                Ok(Ok(None)) | Err(_) => {}
            }
        }
    }

    /// Keeps the resources of a group version, if the resources of all group versions are within the limit.
    fn insert(&self, remote: &Remote, hash: u64, resources: Resources) {
        let Resources { json, left_out } = resources;
        let (key, name) = (remote.key(), &remote.name);
        if left_out > 0 {
            tracing::warn!(
                name,
                left_out,
                "the group version of an extension server has too many resources, or too long names: the rest is not in discovery"
            );
        }
        let mut known = self.known.write();
        let others =
            known.iter().filter(|(other, _)| **other != key).map(|(_, other)| other.resources.get().len());
        if others.sum::<usize>() + json.get().len() > MAX_RESOURCES {
            tracing::warn!(
                name,
                "the resources of extension servers take more than 16 MiB: the last resources stay"
            );
            return;
        }
        known.insert(key, Known { hash, resources: json.into() });
    }

    /// Gets the OpenAPI v2 document of a group version, unless the document is known. If the server has no document, the last document
    /// stays.
    pub(super) async fn refresh_description(
        &self,
        aggregator: &Aggregator,
        remote: &Arc<Remote>,
        apart: &Apart,
    ) {
        let key = remote.key();
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

    fn of(&self, remote: &Remote) -> RemoteVersion {
        let known = self.known.read().get(&remote.key()).map(|known| Arc::clone(&known.resources));
        RemoteVersion {
            version: remote.version.clone(),
            resources: known,
            freshness: if remote.is_available { "Current" } else { "Stale" },
        }
    }
}

/// Gets a discovery document of a server. `None` if the server does not have the document.
async fn discovery(aggregator: &Aggregator, remote: &Remote, form: Form) -> Option<Bytes> {
    let reply = match form {
        Form::Aggregated => aggregator.get(remote, "/apis", Some(AGGREGATED)).await,
        Form::ResourceList => aggregator.get(remote, &remote.path(), None).await,
    };
    reply.ok().filter(|(head, _)| head.status.is_success()).map(|(_, body)| body)
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
    versions: Vec<RemoteVersion>,
}

/// A group version of an extension server, in the form of aggregated discovery.
#[derive(Serialize)]
pub(crate) struct RemoteVersion {
    version: String,
    #[serde(skip_serializing_if = "Option::is_none")]
    resources: Option<Arc<RawValue>>,
    freshness: &'static str,
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
        // The definitions of the first servers keep their names.
        let descriptions = found.iter().filter_map(|remote| known.get(&remote.key()).cloned()).collect();
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
            group.versions.iter().map(|version| (group.name.as_str(), version.version.as_str()))
        })
    }

    /// Returns the names of the groups that this server has no version of.
    pub(crate) fn remote_groups(&self) -> impl Iterator<Item = &str> {
        let names = self.groups.iter().map(|group| group.name.as_str());
        names.filter(|name| self.served.group(name).is_none())
    }

    /// Returns the versions of a group on extension servers, with the resources.
    pub(crate) fn remote_documents(&self, group: &str) -> impl Iterator<Item = &RemoteVersion> {
        let found = self.groups.iter().find(|found| found.name == group);
        found.into_iter().flat_map(|found| &found.versions)
    }
}
