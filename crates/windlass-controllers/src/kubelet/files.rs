//! The directories of a pod on this machine: volumes, and messages of containers.

use std::fs;
use std::io;
use std::path::{Path, PathBuf};

/// Creates an empty directory that every user of the pod may write to.
pub(super) fn create_empty_directory(path: &Path, group: Option<u32>) -> io::Result<()> {
    fs::create_dir_all(path)?;
    protect(path, 0o777, group)
}

/// Creates an empty file that every user of the pod may write to.
pub(super) fn create_message_file(path: &Path) -> io::Result<()> {
    if let Some(parent) = path.parent() {
        fs::create_dir_all(parent)?;
    }
    fs::write(path, "")?;
    protect(path, 0o666, None)
}

/// Creates the directory of all pods, for the own user only: Secrets are below.
pub(super) fn create_private_directory(path: &Path) -> io::Result<()> {
    if path.exists() {
        return Ok(());
    }
    fs::create_dir_all(path)?;
    protect(path, 0o700, None)
}

/// Returns the path of a part of a volume. A part that is missing becomes a directory if the volume can be written.
///
/// # Errors
/// The part is outside of the volume, by a link for example.
pub(super) fn part_of_volume(volume: &Path, part: &str) -> io::Result<PathBuf> {
    let is_plain = !part.starts_with('/') && part.split('/').all(|name| name != "..");
    let outside = || io::Error::other(format!("subPath {part:?} leaves the volume"));
    if !is_plain {
        return Err(outside());
    }
    let root = fs::canonicalize(volume)?;
    // Every step is checked before the next, so that no directory is made outside.
    let mut path = root.clone();
    for name in part.split('/').filter(|name| !matches!(*name, "" | ".")) {
        let next = path.join(name);
        if fs::symlink_metadata(&next).is_err() {
            fs::create_dir(&next)?;
            protect(&next, 0o777, None)?;
        }
        path = fs::canonicalize(&next)?;
        if !path.starts_with(&root) {
            return Err(outside());
        }
    }
    Ok(path)
}

#[cfg(unix)]
fn protect(path: &Path, mode: u32, group: Option<u32>) -> io::Result<()> {
    use std::os::unix::fs::{PermissionsExt as _, chown};
    // Only a privileged process may give files away. Otherwise the files are those of the pod's user already.
    let is_given = group.is_some() && chown(path, None, group).is_ok();
    let shared = if is_given { (mode & 0o400) >> 3 } else { 0 };
    fs::set_permissions(path, fs::Permissions::from_mode(mode | shared))
}

#[cfg(not(unix))]
fn protect(_: &Path, _: u32, _: Option<u32>) -> io::Result<()> {
    Ok(())
}

#[cfg(all(test, unix))]
#[allow(clippy::unwrap_used, reason = "a test that cannot go on fails")]
mod tests {
    use super::*;

    struct Directory(PathBuf);

    impl Directory {
        fn new(name: &str) -> Self {
            let path = std::env::temp_dir().join(format!("windlass-{name}-{}", std::process::id()));
            let _ = fs::remove_dir_all(&path);
            fs::create_dir_all(&path).unwrap();
            Self(path)
        }
    }

    impl Drop for Directory {
        fn drop(&mut self) {
            let _ = fs::remove_dir_all(&self.0);
        }
    }

    #[test]
    fn a_part_of_a_volume_stays_inside_even_through_links() {
        let directory = Directory::new("part");
        let volume = directory.0.join("volume");
        fs::create_dir_all(&volume).unwrap();
        std::os::unix::fs::symlink("/etc", volume.join("out")).unwrap();
        for part in ["../x", "/etc", "out", "out/passwd", "a/../../x"] {
            assert!(part_of_volume(&volume, part).is_err(), "{part}");
        }
        assert!(part_of_volume(&volume, "a/b").unwrap().ends_with("volume/a/b"));
        assert!(!directory.0.join("x").exists());
    }
}
