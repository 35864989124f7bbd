//! The directories of a pod on this machine: volumes that are replaced as a whole, and messages of containers.

use std::fs;
use std::io;
use std::path::{Path, PathBuf};
use std::time::{SystemTime, UNIX_EPOCH};

use super::resolve::Files;

/// The link to the current files of a volume.
const DATA: &str = "..data";
const NEXT_DATA: &str = "..data_tmp";

/// Makes the files of a volume equal to `files`. A reader sees either all old or all new files, as with a kubelet: the names in the
/// volume are links into `..data`, which is a link that is replaced atomically.
pub(super) fn write_volume(volume: &Path, files: &Files, group: Option<u32>) -> io::Result<()> {
    fs::create_dir_all(volume)?;
    if is_current(volume, files) {
        return Ok(());
    }
    let old = fs::read_link(volume.join(DATA)).ok();
    let stamp = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default().as_nanos();
    let fresh = format!("..{stamp}");
    for (path, (bytes, mode)) in files {
        let file = volume.join(&fresh).join(path);
        if let Some(parent) = file.parent() {
            fs::create_dir_all(parent)?;
        }
        fs::write(&file, bytes)?;
        protect(&file, *mode, group)?;
    }
    fs::create_dir_all(volume.join(&fresh))?;
    let _ = fs::remove_file(volume.join(NEXT_DATA));
    link(&fresh, &volume.join(NEXT_DATA))?;
    fs::rename(volume.join(NEXT_DATA), volume.join(DATA))?;
    link_names(volume, files)?;
    if let Some(old) = old {
        let _ = fs::remove_dir_all(volume.join(old));
    }
    Ok(())
}

fn is_current(volume: &Path, files: &Files) -> bool {
    let data = volume.join(DATA);
    let same = |(path, (bytes, _)): (&String, &(Vec<u8>, u32))| {
        fs::read(data.join(path)).is_ok_and(|present| present == *bytes)
    };
    data.exists() && files.iter().all(same) && count(&data) == files.len()
}

fn count(directory: &Path) -> usize {
    let Ok(entries) = fs::read_dir(directory) else { return 0 };
    let count_one = |entry: fs::DirEntry| {
        if entry.file_type().is_ok_and(|kind| kind.is_dir()) { count(&entry.path()) } else { 1 }
    };
    entries.flatten().map(count_one).sum()
}

/// Links the first parts of all paths, and removes links to files that are gone.
fn link_names(volume: &Path, files: &Files) -> io::Result<()> {
    let names: std::collections::BTreeSet<&str> =
        files.keys().map(|path| path.split('/').next().unwrap_or(path)).collect();
    for entry in fs::read_dir(volume)?.flatten() {
        let name = entry.file_name();
        let name = name.to_string_lossy();
        if !name.starts_with("..") && !names.contains(name.as_ref()) {
            fs::remove_file(entry.path())?;
        }
    }
    for name in names {
        if fs::symlink_metadata(volume.join(name)).is_err() {
            link(&format!("{DATA}/{name}"), &volume.join(name))?;
        }
    }
    Ok(())
}

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

#[cfg(unix)]
fn link(target: &str, link: &Path) -> io::Result<()> {
    std::os::unix::fs::symlink(target, link)
}

#[cfg(not(unix))]
fn link(target: &str, link: &Path) -> io::Result<()> {
    Err(io::Error::new(
        io::ErrorKind::Unsupported,
        format!("{}: links to {target} are made on Unix only", link.display()),
    ))
}

#[cfg(test)]
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

    fn files(all: &[(&str, &str)]) -> Files {
        all.iter().map(|(path, text)| ((*path).to_owned(), (text.as_bytes().to_vec(), 0o640))).collect()
    }

    #[test]
    fn a_volume_is_replaced_as_a_whole() {
        let directory = Directory::new("replaced");
        let volume = &directory.0;
        write_volume(volume, &files(&[("a", "1"), ("d/b", "2")]), None).unwrap();
        let first = fs::read_link(volume.join("..data")).unwrap();
        write_volume(volume, &files(&[("a", "1"), ("d/b", "2")]), None).unwrap();
        assert_eq!(fs::read_link(volume.join("..data")).unwrap(), first);
        write_volume(volume, &files(&[("a", "3")]), None).unwrap();
        assert_eq!(fs::read_to_string(volume.join("a")).unwrap(), "3");
        assert!(!volume.join("d").exists() && !volume.join(first).exists());
        write_volume(volume, &files(&[]), None).unwrap();
        assert!(!volume.join("a").exists());
    }

    #[test]
    fn a_part_of_a_volume_stays_inside_even_through_links() {
        let directory = Directory::new("part");
        let volume = directory.0.join("volume");
        fs::create_dir_all(&volume).unwrap();
        link("/etc", &volume.join("out")).unwrap();
        for part in ["../x", "/etc", "out", "out/passwd", "a/../../x"] {
            assert!(part_of_volume(&volume, part).is_err(), "{part}");
        }
        assert!(part_of_volume(&volume, "a/b").unwrap().ends_with("volume/a/b"));
        assert!(!directory.0.join("x").exists());
    }
}
