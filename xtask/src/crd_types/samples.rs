//! The objects in the files of a project.

use std::fs;
use std::path::{Path, PathBuf};

use serde_json::Value;
use windlass_codegen::definition::Definition;
use windlass_schema::{Schema, default, prune, validate};

/// Returns the objects of these kinds in the files of a folder, in the stored form of an API server: pruned
/// and with defaults.
///
/// Objects that the CRD refuses are left out: some samples of projects show errors. Patches are left out,
/// too.
pub(super) fn samples(folder: &Path, definitions: &[Definition]) -> Vec<Value> {
    let kinds: Vec<Kind> = definitions.iter().flat_map(Kind::of).collect();
    let mut found = Vec::new();
    for path in yaml_files(folder) {
        let text = fs::read_to_string(&path).unwrap_or_default();
        if !kinds.iter().any(|kind| text.contains(&kind.api_version)) {
            continue;
        }
        for mut document in documents(&path) {
            let Some(kind) = kinds.iter().find(|kind| kind.is_of(&document)) else { continue };
            prune(&kind.schema, &mut document);
            default(&kind.schema, &mut document);
            if document["metadata"]["name"].is_string() && validate(&kind.schema, &document).is_empty() {
                found.push(document);
            }
        }
    }
    found
}

/// A version of a kind.
struct Kind {
    api_version: String,
    name: String,
    schema: Schema,
}

impl Kind {
    fn of(definition: &Definition) -> impl Iterator<Item = Self> + '_ {
        let spec = &definition.spec;
        spec.versions.iter().filter(|version| version.served).map(|version| Self {
            api_version: format!("{}/{}", spec.group, version.name),
            name: spec.names.kind.clone(),
            schema: Schema::compile(version.open_api_schema()),
        })
    }

    fn is_of(&self, object: &Value) -> bool {
        object["apiVersion"] == self.api_version.as_str() && object["kind"] == self.name.as_str()
    }
}

/// Returns the documents of a file, or no documents for a template or a broken file.
pub(crate) fn documents(path: &Path) -> Vec<Value> {
    let text = fs::read_to_string(path).unwrap_or_default();
    let parts = text.split("\n---").map(|part| part.trim_start_matches("---"));
    parts.filter_map(|part| serde_saphyr::from_str(part).ok()).collect()
}

pub(crate) fn yaml_files(folder: &Path) -> Vec<PathBuf> {
    let mut found = Vec::new();
    let mut folders = vec![folder.to_owned()];
    while let Some(folder) = folders.pop() {
        for entry in fs::read_dir(folder).into_iter().flatten().flatten() {
            let path = entry.path();
            if path.is_dir() {
                folders.push(path);
            } else if path.extension().is_some_and(|extension| extension == "yaml" || extension == "yml") {
                found.push(path);
            }
        }
    }
    found.sort();
    found
}
