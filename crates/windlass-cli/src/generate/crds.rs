//! The CRDs for the generated code: CRDs in files, or the CRDs that an operator declares.

use std::fs;
use std::path::{Path, PathBuf};

use windlass_codegen::definition::Definition;
use windlass_codegen::manifests::Manifests;

use crate::error::Result;

/// Returns the CRDs of files, each with any number of YAML documents, and of the YAML files in folders. Other objects are skipped.
pub(super) fn read(paths: &[PathBuf]) -> Result<Vec<Definition>> {
    let mut found = Vec::new();
    for path in paths {
        let files = if path.is_dir() { yaml_files(path) } else { vec![path.clone()] };
        for file in files {
            found.extend(read_file(&file)?);
        }
    }
    Ok(found)
}

/// Returns the CRDs that an operator declares.
pub(super) fn declared(manifests: &Manifests) -> Result<Vec<Definition>> {
    let mut found = Vec::new();
    for crd in manifests.crds() {
        found.extend(Definition::parse(crd)?);
    }
    Ok(found)
}

/// Returns the YAML files of a folder, sorted.
pub(super) fn yaml_files(folder: &Path) -> Vec<PathBuf> {
    let entries = fs::read_dir(folder).into_iter().flatten().flatten();
    let is_yaml =
        |path: &PathBuf| path.extension().is_some_and(|extension| extension == "yaml" || extension == "yml");
    let mut found: Vec<PathBuf> = entries.map(|entry| entry.path()).filter(is_yaml).collect();
    found.sort();
    found
}

fn read_file(path: &Path) -> Result<Vec<Definition>> {
    let text =
        fs::read_to_string(path).map_err(|error| format!("cannot read {}: {error}", path.display()))?;
    let documents: Vec<serde_json::Value> =
        serde_saphyr::from_multiple(&text).map_err(|error| format!("{}: {error}", path.display()))?;
    let mut found = Vec::new();
    for document in &documents {
        let items = match document["items"].as_array() {
            Some(items) => items.iter().collect(),
            None => vec![document],
        };
        for item in items {
            let definition =
                Definition::parse(item).map_err(|error| format!("{}: {error}", path.display()))?;
            found.extend(definition);
        }
    }
    Ok(found)
}
