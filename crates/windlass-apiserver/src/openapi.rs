//! OpenAPI v3: an index of group-versions, and a document for each, written when it is asked for.

use std::collections::{BTreeMap, VecDeque};
use std::fmt::Write;

use bytes::Bytes;
use http::{HeaderMap, HeaderValue, Response, StatusCode, header};
use parking_lot::Mutex;
use serde_json::{Value, json};
use sha2::{Digest, Sha512};
use windlass_schema::{CustomKind, GroupVersion, Gvk};

use crate::crd;
use crate::definitions;
use crate::meta;
use crate::resource::Resource;
use crate::serve::Body;
use crate::state::State;
use crate::wire::{self, ApiError};

const ROOT: &str = "/openapi/v3";
/// How many documents are kept: they are large, and few are asked for again.
const KEPT: usize = 3;

/// Documents that were asked for lately, by their hash.
#[derive(Default)]
pub(crate) struct Documents(Mutex<VecDeque<(String, Bytes)>>);

impl Documents {
    fn get(&self, hash: &str, write: impl FnOnce() -> Bytes) -> Bytes {
        if let Some((_, document)) = self.0.lock().iter().find(|(known, _)| known == hash) {
            return document.clone();
        }
        let document = write();
        let mut kept = self.0.lock();
        kept.push_back((hash.to_owned(), document.clone()));
        while kept.len() > KEPT {
            kept.pop_front();
        }
        document
    }
}

/// Answers a GET below `/openapi/v3`; `None` for other paths.
pub(crate) fn respond(
    state: &State,
    documents: &Documents,
    path: &str,
    query: Option<&str>,
    headers: &HeaderMap,
) -> Option<Result<Response<Body>, ApiError>> {
    if path == "/openapi/v2" {
        return Some(Ok(version_two(headers)));
    }
    let name = path.strip_prefix(ROOT)?;
    if name.is_empty() || name == "/" {
        return Some(Ok(index(state)));
    }
    Some(document(state, documents, name.strip_prefix('/')?, query, headers))
}

/// OpenAPI v2, for clients that look a kind up there when v3 does not have it: a document that describes nothing.
fn version_two(headers: &HeaderMap) -> Response<Body> {
    const PROTOBUF: &str = "application/com.github.proto-openapi.spec.v2.v1.0+protobuf";
    let accept = headers.get(header::ACCEPT).and_then(|value| value.to_str().ok()).unwrap_or_default();
    let (content_type, document): (_, &[u8]) = if accept.contains("proto-openapi.spec.v2") {
        // Field 1 of the document, `swagger`, is "2.0".
        (PROTOBUF, b"\x0a\x032.0")
    } else {
        ("application/json", br#"{"swagger":"2.0","info":{"title":"Kubernetes","version":"v1.36.0"},"paths":{},"definitions":{}}"#)
    };
    let mut response = Response::new(Body::full(document));
    let headers = response.headers_mut();
    headers.insert(header::CONTENT_TYPE, HeaderValue::from_static(content_type));
    headers.insert(header::VARY, HeaderValue::from_static("Accept"));
    response
}

/// What is said about each group-version: a name for the path, and a hash that changes when the document does.
fn hashes(state: &State) -> BTreeMap<String, String> {
    let mut hashes = BTreeMap::new();
    let builtin = format!("{} {}", env!("CARGO_PKG_VERSION"), state.catalog.version());
    for version in state.catalog.group_versions() {
        let name = name_of(&version.group, &version.version);
        hashes.insert(name.clone(), hash(&format!("{builtin} {name}")));
    }
    let mut custom: BTreeMap<String, String> = BTreeMap::new();
    for definition in established(state) {
        for version in served(&definition) {
            let name = name_of(text(&definition, "/spec/group"), text(version, "/name"));
            let seen = custom.entry(name).or_default();
            let generation = meta::integer(&definition, "generation").unwrap_or(0);
            // Writing to a string does not fail.
            let _ = write!(seen, " {} {generation}", meta::uid(&definition));
        }
    }
    hashes.extend(
        custom.into_iter().map(|(name, seen)| (name.clone(), hash(&format!("{builtin} {name}{seen}")))),
    );
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

fn index(state: &State) -> Response<Body> {
    let paths: serde_json::Map<String, Value> = hashes(state)
        .into_iter()
        .map(|(name, hash)| {
            let url = format!("{ROOT}/{name}?hash={hash}");
            (name, json!({"serverRelativeURL": url}))
        })
        .collect();
    let mut response = Response::new(Body::full(json!({"paths": paths}).to_string()));
    response.headers_mut().insert(header::CONTENT_TYPE, HeaderValue::from_static("application/json"));
    response
}

fn document(
    state: &State,
    documents: &Documents,
    name: &str,
    query: Option<&str>,
    headers: &HeaderMap,
) -> Result<Response<Body>, ApiError> {
    let Some(hash) = hashes(state).remove(name) else {
        let mut response = Response::new(Body::empty());
        *response.status_mut() = StatusCode::NOT_FOUND;
        return Ok(response);
    };
    let header_text = |name: header::HeaderName| headers.get(name).and_then(|value| value.to_str().ok());
    wire::negotiate(header_text(header::ACCEPT), wire::Target::Object)?;
    let tag = format!("\"{hash}\"");
    let asked = crate::route::Query::parse(query).get("hash").map(str::to_owned);
    let location = format!("{ROOT}/{name}?hash={hash}");
    let known = header_text(header::IF_NONE_MATCH)
        .is_some_and(|tags| tags.split(',').any(|known| known.trim() == tag));
    let outdated = asked.as_ref().is_some_and(|asked| *asked != hash);
    let mut response = if outdated {
        redirect(&location)
    } else if known {
        let mut response = Response::new(Body::empty());
        *response.status_mut() = StatusCode::NOT_MODIFIED;
        response
    } else {
        let bytes = documents.get(&hash, || write(state, name));
        let (bytes, compressed) = wire::maybe_gzip(header_text(header::ACCEPT_ENCODING), bytes);
        let mut response = Response::new(Body::full(bytes));
        if compressed {
            response.headers_mut().insert(header::CONTENT_ENCODING, HeaderValue::from_static("gzip"));
        }
        response
    };
    let headers = response.headers_mut();
    headers.insert(header::CONTENT_TYPE, HeaderValue::from_static("application/json"));
    headers.insert(header::VARY, HeaderValue::from_static("Accept"));
    if let Ok(tag) = HeaderValue::from_str(&tag) {
        headers.insert(header::ETAG, tag);
    }
    if asked.is_some() && !outdated {
        headers.insert(header::CACHE_CONTROL, HeaderValue::from_static("public, immutable"));
    }
    Ok(response)
}

/// An outdated hash leads to the right one.
fn redirect(location: &str) -> Response<Body> {
    let mut response = Response::new(Body::empty());
    *response.status_mut() = StatusCode::MOVED_PERMANENTLY;
    if let Ok(location) = HeaderValue::from_str(location) {
        response.headers_mut().insert(header::LOCATION, location);
    }
    response
}

fn write(state: &State, name: &str) -> Bytes {
    let builtin = state
        .catalog
        .group_versions()
        .iter()
        .find(|version| name_of(&version.group, &version.version) == name);
    let definitions = established(state);
    let served: Vec<(&Value, &Value)> = definitions
        .iter()
        .flat_map(|definition| served(definition).map(move |version| (definition, version)))
        .filter(|(definition, version)| {
            name_of(text(definition, "/spec/group"), text(version, "/name")) == name
        })
        .collect();
    let document = match (builtin, served.first()) {
        (Some(version), _) => windlass_schema::openapi_v3(&state.catalog, version, &[]),
        (None, Some((definition, version))) => {
            let (group, version) = (text(definition, "/spec/group"), text(version, "/name"));
            custom_document(state, group, version, &served)
        }
        (None, None) => json!({}),
    };
    document.to_string().into()
}

fn custom_document(state: &State, group: &str, version: &str, served: &[(&Value, &Value)]) -> Value {
    let served_now = state.served.load();
    let resources: Vec<&Resource> = served
        .iter()
        .filter_map(|(definition, _)| {
            served_now.resource(group, version, text(definition, "/spec/names/plural"))
        })
        .map(|resource| &**resource)
        .collect();
    let schemas: Vec<Option<&Value>> =
        served.iter().map(|(_, version)| version.pointer("/schema/openAPIV3Schema")).collect();
    let custom: Vec<CustomKind<'_>> = resources
        .iter()
        .zip(&schemas)
        .map(|(resource, schema)| CustomKind {
            kind: &resource.kind,
            list_kind: &resource.list_kind,
            plural: &resource.plural,
            schema: *schema,
            selectable_fields: resource.custom.as_ref().map_or(&[], |custom| &custom.selectable),
        })
        .collect();
    let group_version = GroupVersion {
        group: group.into(),
        version: version.into(),
        resources: resources.iter().map(|resource| described(resource)).collect(),
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

/// The definitions whose resources are served.
fn established(state: &State) -> Vec<Value> {
    let view = state.store.view();
    let all = view.range(&definitions::id(), None).map(|(_, stored)| stored.value());
    all.filter(crd::is_established).collect()
}

fn served(definition: &Value) -> impl Iterator<Item = &Value> {
    let versions = definition.pointer("/spec/versions").and_then(Value::as_array);
    versions.into_iter().flatten().filter(|version| version["served"] == true)
}

fn text<'a>(value: &'a Value, pointer: &str) -> &'a str {
    value.pointer(pointer).and_then(Value::as_str).unwrap_or_default()
}
