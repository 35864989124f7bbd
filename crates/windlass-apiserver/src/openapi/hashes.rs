//! The names of the OpenAPI documents, and hashes that change with the documents.

use std::collections::BTreeMap;
use std::fmt::Write;

use bytes::Bytes;
use serde_json::{Map, Value, json};
use sha2::{Digest, Sha512};
use windlass_schema::Catalog;

use crate::resource::ServedResources;

/// The hashes of all documents.
pub(super) struct Hashes {
    /// The hash of each document of v3, by the path below `/openapi/v3/`.
    pub(super) of_version_three: BTreeMap<String, String>,
    /// The paths of the documents of v3, in the form of the index.
    pub(super) paths: Map<String, Value>,
    /// The index, if no extension server has documents.
    pub(super) index: Bytes,
    /// The hash of the document of v2 in JSON.
    pub(super) of_version_two: String,
    /// The hash of the document of v2 in protobuf.
    pub(super) of_version_two_in_protobuf: String,
}

impl Hashes {
    /// Makes the hashes of the documents for the served resources.
    pub(super) fn of(catalog: &Catalog, served: &ServedResources) -> Self {
        let of_version_three = of_version_three(catalog, served);
        let all: String = of_version_three.values().map(String::as_str).collect();
        let of_form = |form: &str| hash(&format!("v2 {form} {all}"));
        let (of_version_two, of_version_two_in_protobuf) = (of_form("JSON"), of_form("protobuf"));
        let paths = of_version_three.iter().map(|(name, hash)| {
            let url = format!("/openapi/v3/{name}?hash={hash}");
            (name.clone(), json!({"serverRelativeURL": url}))
        });
        let paths: Map<String, Value> = paths.collect();
        let index = index(&paths);
        Self { of_version_three, paths, index, of_version_two, of_version_two_in_protobuf }
    }
}

/// Writes the index of the documents of v3.
pub(super) fn index(paths: &Map<String, Value>) -> Bytes {
    json!({ "paths": paths }).to_string().into()
}

fn of_version_three(catalog: &Catalog, served: &ServedResources) -> BTreeMap<String, String> {
    let mut hashes = BTreeMap::new();
    let builtin = format!("{} {}", env!("CARGO_PKG_VERSION"), catalog.version());
    for version in catalog.group_versions() {
        let name = name_of(&version.group, &version.version);
        hashes.insert(name.clone(), hash(&format!("{builtin} {name}")));
    }
    for name in windlass_schema::discovery_names(catalog) {
        let hash = hash(&format!("{builtin} {name}"));
        hashes.insert(name, hash);
    }
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

/// Returns the path of a document below `/openapi/v3/`.
pub(super) fn name_of(group: &str, version: &str) -> String {
    if group.is_empty() { format!("api/{version}") } else { format!("apis/{group}/{version}") }
}

pub(super) fn hash(text: &str) -> String {
    Sha512::digest(text.as_bytes()).iter().fold(String::with_capacity(128), |mut hash, byte| {
        let _ = write!(hash, "{byte:02X}");
        hash
    })
}
