//! Parts of volumes.

use std::fs;
use std::io;
use std::path::{Component, Path, PathBuf};

/// Returns the path of `sub_path` in the volume at `volume`, with all links resolved, for the source of a mount.
///
/// # Errors
/// The path is absolute, contains `..`, does not exist, or leads out of the volume.
pub fn resolve_sub_path(volume: &Path, sub_path: &str) -> io::Result<PathBuf> {
    let volume = volume.canonicalize()?;
    let found = checked(&volume, sub_path)?.canonicalize()?;
    if found.starts_with(&volume) {
        return Ok(found);
    }
    Err(outside(sub_path))
}

/// Works like [`resolve_sub_path`], but creates directories that do not exist, as the kubelet does.
pub fn create_sub_path(volume: &Path, sub_path: &str) -> io::Result<PathBuf> {
    let volume = volume.canonicalize()?;
    checked(&volume, sub_path)?;
    let mut present = volume.clone();
    for component in Path::new(sub_path).components() {
        let next = present.join(component);
        match fs::create_dir(&next) {
            Err(error) if error.kind() != io::ErrorKind::AlreadyExists => return Err(error),
            _ => {}
        }
        present = next.canonicalize()?;
        if !present.starts_with(&volume) {
            return Err(outside(sub_path));
        }
    }
    Ok(present)
}

fn checked(volume: &Path, sub_path: &str) -> io::Result<PathBuf> {
    let normal = |part| matches!(part, Component::Normal(_) | Component::CurDir);
    if Path::new(sub_path).components().all(normal) {
        return Ok(volume.join(sub_path));
    }
    Err(outside(sub_path))
}

fn outside(sub_path: &str) -> io::Error {
    io::Error::new(io::ErrorKind::InvalidInput, format!("subPath {sub_path:?} leads out of the volume"))
}

#[cfg(test)]
mod tests {
    use std::os::unix::fs::symlink;

    use super::*;

    #[test]
    fn a_sub_path_stays_in_its_volume() {
        let folder = tempfile::tempdir().unwrap();
        let volume = folder.path().join("volume");
        fs::create_dir_all(volume.join("a")).unwrap();
        fs::create_dir(folder.path().join("other")).unwrap();
        symlink("../other", volume.join("out")).unwrap();
        symlink("a", volume.join("in")).unwrap();
        let real = volume.canonicalize().unwrap();
        assert_eq!(resolve_sub_path(&volume, "in").unwrap(), real.join("a"));
        assert_eq!(create_sub_path(&volume, "in/b/c").unwrap(), real.join("a/b/c"));
        for path in ["out", "../other", "/etc", "out/x", "missing"] {
            assert!(resolve_sub_path(&volume, path).is_err(), "{path}");
        }
        for path in ["out/x", "../other/x", "/x"] {
            assert!(create_sub_path(&volume, path).is_err(), "{path}");
        }
        assert!(fs::read_dir(folder.path().join("other")).unwrap().next().is_none());
    }
}
