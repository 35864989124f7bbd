//! The directory of a node: volumes, logs, and the files of a runtime.

use std::fs::{self, File};
use std::io;
use std::path::{Path, PathBuf};

use tempfile::TempDir;

/// The begin of the names of directories.
const PREFIX: &str = "pods-";
/// Locked while the process lives.
const LOCK: &str = "lock";

/// A directory that is removed at the end, or by the next node after a kill.
#[derive(Debug)]
pub(super) struct NodeDirectory {
    parent: PathBuf,
    own: TempDir,
    _lock: File,
}

impl NodeDirectory {
    /// Creates a directory in the cache of the user, or in the folder for temporary files if the user has no home.
    pub(super) fn create() -> io::Result<Self> {
        let cached = windlass_image::Store::default_folder();
        let cached = cached.and_then(|images| Some(images.parent()?.join("node")));
        let parent = cached.filter(|parent| fs::create_dir_all(parent).is_ok());
        Self::create_in(parent.unwrap_or_else(|| std::env::temp_dir().join("windlass-node")))
    }

    fn create_in(parent: PathBuf) -> io::Result<Self> {
        fs::create_dir_all(&parent)?;
        sweep(&parent);
        let own = tempfile::Builder::new().prefix(PREFIX).tempdir_in(&parent)?;
        // Other nodes see the file only after the lock is taken.
        let draft = own.path().join("draft");
        let lock = File::create(&draft)?;
        lock.lock()?;
        fs::rename(&draft, own.path().join(LOCK))?;
        Ok(Self { parent, own, _lock: lock })
    }

    /// Returns the directory of volumes and logs.
    pub(super) fn pods(&self) -> PathBuf {
        self.own.path().join("node")
    }

    /// Returns the directory of the kubeconfigs of plain processes.
    pub(super) fn kubeconfigs(&self) -> PathBuf {
        self.own.path().join("kubeconfigs")
    }

    /// Returns the directory of the files that a container runtime mounts into pods.
    #[cfg(all(target_os = "linux", feature = "cri"))]
    pub(super) fn sandboxes(&self) -> PathBuf {
        self.own.path().join("sandboxes")
    }

    /// Returns the directory that runtimes share.
    #[cfg(target_os = "linux")]
    pub(super) fn runtimes(&self) -> PathBuf {
        self.parent.clone()
    }
}

/// Removes the directories of nodes that have been killed.
fn sweep(parent: &Path) {
    let entries = fs::read_dir(parent).into_iter().flatten().flatten();
    for path in entries.map(|entry| entry.path()) {
        let is_ours = path.file_name().is_some_and(|name| name.to_string_lossy().starts_with(PREFIX));
        if is_ours && File::open(path.join(LOCK)).is_ok_and(|lock| lock.try_lock().is_ok()) {
            let _ = fs::remove_dir_all(path);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_directory_goes_with_its_node_or_with_the_next_one() {
        let parent = tempfile::tempdir().unwrap();
        let first = NodeDirectory::create_in(parent.path().to_owned()).unwrap();
        let second = NodeDirectory::create_in(parent.path().to_owned()).unwrap();
        assert!(first.own.path().exists());
        let gone = first.own.path().to_owned();
        drop(first);
        assert!(!gone.exists());
        // A killed process removes no directory, and the lock is free.
        let NodeDirectory { own, _lock: lock, .. } = second;
        let killed = own.keep();
        drop(lock);
        let _third = NodeDirectory::create_in(parent.path().to_owned()).unwrap();
        assert!(!killed.exists());
    }
}
