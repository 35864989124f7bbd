//! The sources that declare the types of kinds.

use std::fs;
use std::path::{Path, PathBuf};

/// The files that declare kinds.
pub(super) struct Sources(Vec<String>);

impl Sources {
    /// Reads the Rust files below a folder that declare a kind.
    pub(super) fn read(root: &Path) -> Self {
        let mut texts = Vec::new();
        let mut folders: Vec<PathBuf> = vec![root.to_owned()];
        while let Some(folder) = folders.pop() {
            for entry in fs::read_dir(folder).into_iter().flatten().flatten() {
                let path = entry.path();
                if path.is_dir() {
                    folders.push(path);
                } else if path.extension().is_some_and(|extension| extension == "rs")
                    && let Ok(text) = fs::read_to_string(&path)
                    && text.contains("kube(")
                {
                    texts.push(text);
                }
            }
        }
        Self(texts)
    }

    /// Returns whether the file that declares a version of a kind derives `ApplyConfiguration`.
    pub(super) fn derives_apply_configuration(&self, kind: &str, version: &str) -> bool {
        let declares = |text: &&String| {
            let squeezed: String = text.split_whitespace().collect();
            squeezed.contains(&format!("kind=\"{kind}\""))
                && squeezed.contains(&format!("version=\"{version}\""))
        };
        self.0.iter().filter(declares).any(|text| text.contains("ApplyConfiguration"))
    }
}
