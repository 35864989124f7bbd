//! Notices when a file of the project is saved.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::time::{Duration, SystemTime};
use std::{fs, io};

use tokio::time::sleep;

/// The time between two looks at the files. A project has few: a look takes less than a millisecond.
const PERIOD: Duration = Duration::from_millis(200);

/// Folders that are not searched, besides hidden folders.
const SKIPPED: &[&str] = &["target", "node_modules"];

/// The source files of the operator and the samples, with the time and size of each file.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct Sources(BTreeMap<PathBuf, (Option<SystemTime>, u64)>);

impl Sources {
    /// Looks at the files below a folder.
    pub(super) fn of(root: &Path) -> Self {
        let mut sources = Self::default();
        // A folder that cannot be read contributes no file to the build.
        let _ = sources.add(root, root);
        sources
    }

    fn add(&mut self, root: &Path, folder: &Path) -> io::Result<()> {
        for entry in fs::read_dir(folder)?.flatten() {
            let (path, name) = (entry.path(), entry.file_name());
            let name = name.to_string_lossy();
            let Ok(kind) = entry.file_type() else { continue };
            if kind.is_dir() {
                if !name.starts_with('.') && !SKIPPED.contains(&&*name) && is_source_folder(root, &path) {
                    let _ = self.add(root, &path);
                }
            } else if is_source(&path)
                && let Ok(metadata) = entry.metadata()
            {
                self.0.insert(path, (metadata.modified().ok(), metadata.len()));
            }
        }
        Ok(())
    }

    /// Waits until files differ from the last call, and have not changed for a moment. Returns the path of a
    /// changed file.
    pub(super) async fn changed(&mut self, root: &Path) -> PathBuf {
        loop {
            sleep(PERIOD).await;
            let now = Self::of(root);
            if now == *self {
                continue;
            }
            let first = self.difference(&now).unwrap_or_default();
            // An editor writes several files, or a file in several steps.
            let mut last = now;
            loop {
                sleep(PERIOD / 2).await;
                let now = Self::of(root);
                if now == last {
                    break;
                }
                last = now;
            }
            *self = last;
            return first.strip_prefix(root).map(Path::to_path_buf).unwrap_or(first);
        }
    }

    fn difference(&self, other: &Self) -> Option<PathBuf> {
        let changed = other.0.iter().find(|(path, state)| self.0.get(*path) != Some(state));
        let gone = || self.0.iter().find(|(path, _)| !other.0.contains_key(*path));
        changed.or_else(gone).map(|(path, _)| path.clone())
    }
}

/// Returns whether a folder has sources. Of `config`, only the samples count: the rest is generated.
fn is_source_folder(root: &Path, folder: &Path) -> bool {
    let inside = folder.strip_prefix(root).unwrap_or(folder);
    !inside.starts_with("config") || inside == Path::new("config") || inside.starts_with("config/samples")
}

fn is_source(path: &Path) -> bool {
    let extension = path.extension().and_then(|extension| extension.to_str());
    let is_sample = || path.parent().is_some_and(|folder| folder.ends_with("config/samples"));
    match extension {
        Some("rs" | "toml") => true,
        Some("yaml" | "yml") => is_sample(),
        _ => false,
    }
}

#[cfg(test)]
#[allow(clippy::unwrap_used, reason = "a test that cannot go on fails")]
mod tests {
    use super::*;

    #[tokio::test]
    async fn a_saved_file_is_noticed_and_a_built_one_is_not() {
        let directory = tempfile::tempdir().unwrap();
        let root = directory.path();
        for folder in ["src", "target", "config/crd", "config/samples", ".git"] {
            fs::create_dir_all(root.join(folder)).unwrap();
        }
        fs::write(root.join("src/main.rs"), "a").unwrap();
        let mut sources = Sources::of(root);
        for built in ["target/x.rs", "config/crd/x.yaml", ".git/x.rs", "notes.txt"] {
            fs::write(root.join(built), "").unwrap();
            assert_eq!(Sources::of(root), sources, "{built}");
        }
        for saved in ["src/main.rs", "config/samples/x.yaml", "Cargo.toml"] {
            fs::write(root.join(saved), "longer").unwrap();
            assert_eq!(sources.changed(root).await, Path::new(saved));
        }
    }
}
