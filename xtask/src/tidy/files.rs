//! Reading the files of the workspace.

use std::fs;
use std::path::{Path, PathBuf};

use crate::{Result, project};

/// Returns all Rust files below a folder, sorted by path, without build output and hidden folders.
pub(super) fn rust_files(folder: &Path) -> Result<Vec<PathBuf>> {
    files(folder, "rs")
}

/// Returns all files below a folder with this extension, sorted by path, without build output and hidden folders.
pub(super) fn files(folder: &Path, extension: &str) -> Result<Vec<PathBuf>> {
    let mut found = Vec::new();
    let mut folders = vec![folder.to_owned()];
    while let Some(folder) = folders.pop() {
        let entries = fs::read_dir(&folder).map_err(|error| format!("{}: {error}", shown(&folder)))?;
        for entry in entries {
            let path = entry?.path();
            let name = path.file_name().unwrap_or_default().to_string_lossy();
            if path.is_dir() {
                if name != "target" && !name.starts_with('.') {
                    folders.push(path);
                }
            } else if path.extension().is_some_and(|found| found == extension) {
                found.push(path);
            }
        }
    }
    found.sort();
    Ok(found)
}

pub(super) fn read(path: &Path) -> Result<String> {
    fs::read_to_string(path).map_err(|error| format!("{}: {error}", shown(path)).into())
}

/// Returns a path relative to the root of the workspace.
pub(super) fn shown(path: &Path) -> String {
    let root = project::root().canonicalize().unwrap_or_default();
    let path = path.canonicalize().unwrap_or_else(|_| path.to_owned());
    path.strip_prefix(root).unwrap_or(&path).display().to_string()
}
