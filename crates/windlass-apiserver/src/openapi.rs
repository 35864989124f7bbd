//! OpenAPI: in v3 an index of group versions and a document for each group version, in v2 a document of all;
//! generated on request.

use std::collections::{BTreeMap, VecDeque};
use std::fmt::Write;
use std::sync::{Arc, Weak};

use bytes::Bytes;
use http::{HeaderMap, HeaderValue, Response, StatusCode, header};
use parking_lot::Mutex;
use serde_json::{Value, json};
use sha2::{Digest, Sha512};
use windlass_schema::{CustomKind, GroupVersion, Gvk};

use crate::aggregate::Merged;
use crate::body::Body;
use crate::crd;
use crate::resource::Resource;
use crate::state::State;
use crate::wire::{self, MediaType};
use windlass_kinds::resources::DEFINITIONS;

const ROOT: &str = "/openapi/v3";
const JSON: &str = "application/json";
/// The number of cached documents: documents are large, and few are requested again.
const KEPT: usize = 3;
/// The limit of the cached documents together, in bytes: the document of thousands of kinds has tens of megabytes.
const KEPT_BYTES: usize = 16 << 20;

/// The bytes of a document, in pieces.
type Document = Arc<[Bytes]>;

/// The last requested documents, by hash, and documents that are being sent: clients that do not read share a document.
#[derive(Default)]
pub(crate) struct Documents(Mutex<Kept>);

#[derive(Default)]
struct Kept {
    recent: VecDeque<(String, Document)>,
    sent: Vec<(String, Weak<[Bytes]>)>,
}

impl Documents {
    fn get(&self, hash: &str, write: impl FnOnce() -> Document) -> Document {
        if let Some(known) = self.0.lock().find(hash) {
            return known;
        }
        let document = write();
        self.0.lock().insert(hash, &document);
        document
    }
}

impl Kept {
    fn find(&self, hash: &str) -> Option<Document> {
        let (_, document) = self.sent.iter().find(|(known, _)| known == hash)?;
        document.upgrade()
    }

    fn insert(&mut self, hash: &str, document: &Document) {
        self.recent.push_back((hash.to_owned(), Arc::clone(document)));
        while self.recent.len() > KEPT || self.size() > KEPT_BYTES {
            self.recent.pop_front();
        }
        self.sent.retain(|(known, sent)| known != hash && sent.strong_count() > 0);
        self.sent.push((hash.to_owned(), Arc::downgrade(document)));
    }

    fn size(&self) -> usize {
        self.recent.iter().flat_map(|(_, document)| document.iter().map(Bytes::len)).sum()
    }
}

/// Answers a GET of `/openapi/v2` or below `/openapi/v3`; `None` for other paths.
pub(crate) fn respond(
    state: &State,
    groups: &Merged<'_>,
    documents: &Documents,
    path: &str,
    query: Option<&str>,
    headers: &HeaderMap,
) -> Option<Response<Body>> {
    if path == "/openapi/v2" {
        return Some(version_two(state, documents, headers));
    }
    let name = path.strip_prefix(ROOT)?;
    if name.is_empty() {
        return Some(index(state, groups));
    }
    if name == "/" {
        return Some(empty(StatusCode::NOT_FOUND));
    }
    Some(document(state, documents, name.strip_prefix('/')?, query, headers))
}

/// Answers a GET of `/openapi/v2`: a document of all group versions.
fn version_two(state: &State, documents: &Documents, headers: &HeaderMap) -> Response<Body> {
    const PROTOBUF: &str = "application/com.github.proto-openapi.spec.v2.v1.0+protobuf";
    let accept = header_text(headers, header::ACCEPT);
    let in_protobuf = accept.is_some_and(|accept| accept.contains("proto-openapi.spec.v2"));
    if !in_protobuf && !accepts_json(headers) {
        return empty(StatusCode::NOT_ACCEPTABLE);
    }
    let (form, content_type) = if in_protobuf { ("protobuf", PROTOBUF) } else { ("JSON", JSON) };
    let all: String = hashes(state).into_values().collect();
    let hash = hash(&format!("v2 {form} {all}"));
    let write = || {
        let served = hashes(state).into_keys().map(|name| document_of(state, &name));
        let version = state.catalog.minor_version();
        let pieces = if in_protobuf {
            windlass_schema::openapi_v2_protobuf(served, version)
        } else {
            windlass_schema::openapi_v2(served, version)
        };
        pieces.into_iter().map(Bytes::from).collect()
    };
    reply(headers, &hash, content_type, || documents.get(&hash, write))
}

/// Returns whether the client takes a document in JSON.
fn accepts_json(headers: &HeaderMap) -> bool {
    header_text(headers, header::ACCEPT)
        .filter(|accept| !accept.is_empty())
        .is_none_or(|accept| MediaType::parse_accept(accept).iter().any(|clause| clause.includes(JSON)))
}

/// Returns a reply without a body.
fn empty(code: StatusCode) -> Response<Body> {
    let mut response = Response::new(Body::empty());
    *response.status_mut() = code;
    response
}

fn header_text(headers: &HeaderMap, name: header::HeaderName) -> Option<&str> {
    headers.get(name).and_then(|value| value.to_str().ok())
}

/// Returns a reply with a document, or 304 for a client that has the document.
fn reply(
    headers: &HeaderMap,
    hash: &str,
    content_type: &'static str,
    read: impl FnOnce() -> Document,
) -> Response<Body> {
    let tag = format!("\"{hash}\"");
    let known = header_text(headers, header::IF_NONE_MATCH)
        .is_some_and(|tags| tags.split(',').any(|known| known.trim() == tag));
    let mut response = if known {
        let mut response = Response::new(Body::empty());
        *response.status_mut() = StatusCode::NOT_MODIFIED;
        response
    } else {
        let (document, is_compressed) = compressed(headers, read());
        let mut response = Response::new(Body::shared(document));
        if is_compressed {
            response.headers_mut().insert(header::CONTENT_ENCODING, HeaderValue::from_static("gzip"));
        }
        response
    };
    insert_tag(&mut response, hash);
    with_type(response, content_type)
}

/// Compresses a large document if the client accepts compression.
fn compressed(headers: &HeaderMap, document: Document) -> (Document, bool) {
    let accept = header_text(headers, header::ACCEPT_ENCODING);
    let size: usize = document.iter().map(Bytes::len).sum();
    if size < wire::GZIP_FROM || !wire::accepts_gzip(accept) {
        return (document, false);
    }
    (wire::gzip_pieces(document.iter().cloned()).collect(), true)
}

fn with_type(mut response: Response<Body>, content_type: &'static str) -> Response<Body> {
    let headers = response.headers_mut();
    headers.insert(header::CONTENT_TYPE, HeaderValue::from_static(content_type));
    headers.insert(header::VARY, HeaderValue::from_static("Accept"));
    response
}

/// Returns the path of each document, and a hash that changes when the document does.
fn hashes(state: &State) -> BTreeMap<String, String> {
    let mut hashes = BTreeMap::new();
    let builtin = format!("{} {}", env!("CARGO_PKG_VERSION"), state.catalog.version());
    for version in state.catalog.group_versions() {
        let name = name_of(&version.group, &version.version);
        hashes.insert(name.clone(), hash(&format!("{builtin} {name}")));
    }
    for name in windlass_schema::discovery_names(&state.catalog) {
        let hash = hash(&format!("{builtin} {name}"));
        hashes.insert(name, hash);
    }
    let served = state.served.load();
    for group in served.groups() {
        for version in &group.versions {
            let mut seen = String::new();
            for custom in version.resources.values().filter_map(|resource| resource.custom.as_ref()) {
                // Writing to a string does not fail.
                let _ = write!(seen, " {} {}", custom.definition_uid, custom.generation);
            }
            let name = name_of(&group.name, &version.name);
            if !seen.is_empty() {
                let hash = hash(&format!("{builtin} {name}{seen}"));
                hashes.insert(name, hash);
            }
        }
    }
    hashes
}

fn name_of(group: &str, version: &str) -> String {
    if group.is_empty() { format!("api/{version}") } else { format!("apis/{group}/{version}") }
}

fn hash(text: &str) -> String {
    Sha512::digest(text.as_bytes()).iter().fold(String::with_capacity(128), |mut hash, byte| {
        let _ = write!(hash, "{byte:02X}");
        hash
    })
}

/// Writes the index. The real server sets no type for the index, and Go treats the index as text.
fn index(state: &State, groups: &Merged<'_>) -> Response<Body> {
    let mut paths: serde_json::Map<String, Value> = hashes(state)
        .into_iter()
        .map(|(name, hash)| {
            let url = format!("{ROOT}/{name}?hash={hash}");
            (name, json!({"serverRelativeURL": url}))
        })
        .collect();
    for (group, version) in groups.remote_versions() {
        // The extension server tells clients by the entity tag that a document has changed.
        let name = name_of(group, version);
        let url = format!("{ROOT}/{name}");
        paths.insert(name, json!({"serverRelativeURL": url}));
    }
    let mut response = Response::new(Body::full(json!({"paths": paths}).to_string()));
    response
        .headers_mut()
        .insert(header::CONTENT_TYPE, HeaderValue::from_static("text/plain; charset=utf-8"));
    response
}

fn document(
    state: &State,
    documents: &Documents,
    name: &str,
    query: Option<&str>,
    headers: &HeaderMap,
) -> Response<Body> {
    let Some(hash) = hashes(state).remove(name) else {
        return empty(StatusCode::NOT_FOUND);
    };
    if !accepts_json(headers) {
        return empty(StatusCode::NOT_ACCEPTABLE);
    }
    let asked = crate::route::Query::parse(query).get("hash").map(str::to_owned);
    if asked.as_ref().is_some_and(|asked| *asked != hash) {
        let mut response = with_type(redirect(&format!("{ROOT}/{name}?hash={hash}")), JSON);
        insert_tag(&mut response, &hash);
        return response;
    }
    let mut response =
        reply(headers, &hash, JSON, || documents.get(&hash, || document_in_pieces(state, name)));
    if asked.is_some() {
        let immutable = HeaderValue::from_static("public, immutable");
        response.headers_mut().insert(header::CACHE_CONTROL, immutable);
    }
    response
}

fn insert_tag(response: &mut Response<Body>, hash: &str) {
    if let Ok(tag) = HeaderValue::from_str(&format!("\"{hash}\"")) {
        response.headers_mut().insert(header::ETAG, tag);
    }
}

/// Redirects a request with an outdated hash.
fn redirect(location: &str) -> Response<Body> {
    let mut response = Response::new(Body::empty());
    *response.status_mut() = StatusCode::MOVED_PERMANENTLY;
    if let Ok(location) = HeaderValue::from_str(location) {
        response.headers_mut().insert(header::LOCATION, location);
    }
    response
}

/// Writes the v3 document of a group version, in a piece.
fn document_in_pieces(state: &State, name: &str) -> Document {
    [Bytes::from(document_of(state, name).to_string())].into()
}

/// Makes the v3 document of a group version; an empty object for a group version that is not served.
fn document_of(state: &State, name: &str) -> Value {
    let served = state.served.load_full();
    let group_versions = served
        .groups()
        .iter()
        .flat_map(|group| group.versions.iter().map(move |version| (group.name.as_str(), version)));
    let found = group_versions.into_iter().find(|(group, version)| name_of(group, &version.name) == name);
    let Some((group, version)) = found else {
        return windlass_schema::openapi_v3_discovery(&state.catalog, name);
    };
    let custom: Vec<&Resource> = version
        .resources
        .values()
        .map(|resource| &**resource)
        .filter(|resource| resource.is_custom())
        .collect();
    let builtin =
        state.catalog.group_versions().iter().find(|known| name_of(&known.group, &known.version) == name);
    match builtin {
        Some(builtin) if custom.is_empty() => windlass_schema::openapi_v3(&state.catalog, builtin, &[]),
        _ => custom_document(state, group, &version.name, builtin, &custom),
    }
}

fn custom_document(
    state: &State,
    group: &str,
    version: &str,
    builtin: Option<&GroupVersion>,
    resources: &[&Resource],
) -> Value {
    let view = state.store.view();
    let definitions: Vec<Value> = resources
        .iter()
        .filter_map(|resource| resource.custom.as_ref())
        .map(|custom| view.get(&DEFINITIONS, &custom.definition).map(|stored| stored.value()))
        .map(Option::unwrap_or_default)
        .collect();
    let schemas = definitions.iter().map(|definition| {
        let versions = crd::list(&definition["spec"], "versions");
        let found = versions.iter().find(|candidate| crd::text(candidate, &["name"]) == version);
        found.and_then(|version| version.pointer("/schema/openAPIV3Schema"))
    });
    let custom: Vec<CustomKind<'_>> = resources
        .iter()
        .zip(schemas)
        .map(|(resource, schema)| CustomKind {
            kind: &resource.kind,
            list_kind: &resource.list_kind,
            plural: &resource.plural,
            schema,
            selectable_fields: resource.custom.as_ref().map_or(&[], |custom| &custom.selectable),
        })
        .collect();
    let group_version = GroupVersion {
        group: group.into(),
        version: version.into(),
        resources: builtin
            .into_iter()
            .flat_map(|builtin| builtin.resources.iter().cloned())
            .chain(resources.iter().map(|resource| described(resource)))
            .collect(),
    };
    windlass_schema::openapi_v3(&state.catalog, &group_version, &custom)
}

fn described(resource: &Resource) -> windlass_schema::Resource {
    let boxed = |names: &[String]| names.iter().map(|name| name.as_str().into()).collect::<Vec<Box<str>>>();
    windlass_schema::Resource {
        name: resource.plural.as_str().into(),
        singular: resource.singular.as_str().into(),
        kind: Gvk::new(&resource.group, &resource.version, &resource.kind),
        namespaced: resource.namespaced,
        verbs: boxed(&resource.verbs),
        short_names: boxed(&resource.short_names),
        categories: boxed(&resource.categories),
        subresources: resource
            .subresources
            .iter()
            .map(|subresource| windlass_schema::Subresource {
                name: subresource.name.as_str().into(),
                kind: Gvk::new(&subresource.group, &subresource.version, &subresource.kind),
                verbs: boxed(&subresource.verbs),
            })
            .collect(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn document(size: usize) -> Document {
        [Bytes::from(vec![b' '; size])].into()
    }

    #[test]
    fn clients_share_a_large_document_that_is_being_sent() {
        let documents = Documents::default();
        let first = documents.get("a", || document(KEPT_BYTES + 1));
        let second = documents.get("a", || unreachable!("the document is being sent"));
        assert!(Arc::ptr_eq(&first, &second));
        drop((first, second));
        assert_eq!(documents.get("a", || document(1)).len(), 1, "the document was dropped");
    }

    #[test]
    fn the_last_documents_are_kept() {
        let documents = Documents::default();
        for hash in ["a", "b", "c", "d"] {
            documents.get(hash, || document(1));
        }
        documents.get("d", || unreachable!("the document is kept"));
        assert_eq!(documents.get("a", || document(2))[0].len(), 2);
    }
}
