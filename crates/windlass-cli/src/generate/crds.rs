//! The CRDs in files.

use std::fs;
use std::path::{Path, PathBuf};

use windlass_codegen::definition::Definition;

use crate::error::Result;

/// Reads the CRDs of files, each with any number of YAML documents. Other objects are skipped.
pub(super) fn read(paths: &[PathBuf]) -> Result<Vec<Definition>> {
    let mut found = Vec::new();
    for path in paths {
        found.extend(read_file(path)?);
    }
    Ok(found)
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
