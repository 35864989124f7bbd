//! The directory of a runtime, and the removal of the directories of runtimes that have ended.

use std::fs::{self, File, Permissions};
use std::io;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};

use crate::cgroup::remove_cgroups;
use crate::random_id;

/// The begin of the names of directories.
const PREFIX: &str = "runtime-";

/// The directory of a runtime. Removed when the value is dropped, or by the next runtime.
#[derive(Debug)]
pub(super) struct State {
    path: PathBuf,
    _lock: File,
}

impl State {
    /// Creates a directory below `parent`, and removes those that no process uses.
    pub(super) fn create(parent: &Path) -> io::Result<Self> {
        fs::create_dir_all(parent)?;
        let parent = parent.canonicalize()?;
        sweep(&parent);
        let path = parent.join(format!("{PREFIX}{}", &random_id()?[..16]));
        // Under another name until it is locked, so that no sweep takes the directory.
        let draft = parent.join(format!("draft-{}", std::process::id()));
        let _ = remove_tree(&draft);
        fs::create_dir(&draft)?;
        fs::set_permissions(&draft, Permissions::from_mode(0o711))?;
        let lock = File::create(draft.join("lock"))?;
        lock.lock()?;
        fs::rename(&draft, &path)?;
        Ok(Self { path, _lock: lock })
    }

    pub(super) fn path(&self) -> &Path {
        &self.path
    }
}

impl State {
    /// Removes the directory and the control groups.
    pub(super) fn remove(&self) {
        remove_state(&self.path);
    }
}

impl Drop for State {
    fn drop(&mut self) {
        self.remove();
    }
}

fn sweep(parent: &Path) {
    let entries = fs::read_dir(parent).into_iter().flatten().flatten();
    for path in entries.map(|entry| entry.path()) {
        let ours = path.file_name().is_some_and(|name| name.to_string_lossy().starts_with(PREFIX));
        if ours && File::open(path.join("lock")).is_ok_and(|lock| lock.try_lock().is_ok()) {
            remove_state(&path);
        }
    }
}

/// Removes the directory and the control groups of a runtime. While a control group has processes, the list of the groups stays for the
/// helper, which ends the processes, and for the next runtime.
fn remove_state(path: &Path) {
    if remove_cgroups(path) {
        let _ = remove_tree(path);
        return;
    }
    for entry in fs::read_dir(path).into_iter().flatten().flatten() {
        if entry.file_type().is_ok_and(|kind| kind.is_dir()) {
            let _ = remove_tree(&entry.path());
        }
    }
}

/// Removes a directory, also with subdirectories that have no permissions. A directory that does not exist is no error.
pub(super) fn remove_tree(path: &Path) -> io::Result<()> {
    match fs::remove_dir_all(path) {
        Err(error) if error.kind() == io::ErrorKind::PermissionDenied => {
            permit(path);
            fs::remove_dir_all(path)
        }
        Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(()),
        result => result,
    }
}

fn permit(path: &Path) {
    let mut pending = vec![path.to_owned()];
    while let Some(path) = pending.pop() {
        if fs::symlink_metadata(&path).is_ok_and(|metadata| metadata.is_dir()) {
            let _ = fs::set_permissions(&path, Permissions::from_mode(0o700));
            pending.extend(fs::read_dir(&path).into_iter().flatten().flatten().map(|entry| entry.path()));
        }
    }
}
