//! The files of volumes.

mod payload;
mod sub_path;
mod termination;

pub use self::payload::{Payload, PayloadFile};
pub use self::sub_path::{create_sub_path, resolve_sub_path};
pub use self::termination::{TERMINATION_MESSAGE_BYTES, read_termination_message};

use std::fs::{self, Permissions};
use std::io;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};

/// Where Linux keeps files in memory.
const MEMORY: &str = "/dev/shm";

/// A directory of an `emptyDir` volume. Dropping the value leaves the directory; [`remove`](Self::remove) removes the directory.
#[derive(Debug)]
pub struct EmptyDirectory {
    path: PathBuf,
    link: Option<PathBuf>,
}

impl EmptyDirectory {
    /// Creates an empty directory at `path`, with mode 0777 as the kubelet does. With `in_memory` (`medium: Memory`), the files are in `/dev/shm`
    /// where that directory exists, under a name made of `id`; `path` is then a link to the files, and [`path`](Self::path) is the source to mount.
    pub fn create(path: &Path, in_memory: bool, id: &str) -> io::Result<Self> {
        let parent = path.parent().unwrap_or(Path::new("/"));
        fs::create_dir_all(parent)?;
        let memory = Path::new(MEMORY);
        if in_memory && memory.is_dir() {
            let name: String =
                id.chars().map(|c| if c.is_ascii_alphanumeric() || c == '-' { c } else { '_' }).collect();
            let real = memory.join(format!("windlass-{name}"));
            if fs::create_dir(&real).is_ok() {
                fs::set_permissions(&real, Permissions::from_mode(0o777))?;
                std::os::unix::fs::symlink(&real, path)?;
                return Ok(Self { path: real, link: Some(path.to_owned()) });
            }
        }
        fs::create_dir(path)?;
        fs::set_permissions(path, Permissions::from_mode(0o777))?;
        Ok(Self { path: path.canonicalize()?, link: None })
    }

    /// Returns the directory to mount, without symbolic links.
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// Removes the directory and its files.
    pub fn remove(self) -> io::Result<()> {
        if let Some(link) = &self.link {
            fs::remove_file(link)?;
        }
        fs::remove_dir_all(&self.path)
    }
}

/// Gives a volume to the group `fsGroup`: group, write permission of the group, and the set-group-ID bit of directories. Links are not followed.
///
/// Returns `false` if this process may not change groups; the volume is unchanged then.
pub fn set_group(path: &Path, group: u32) -> io::Result<bool> {
    let mut pending = vec![path.to_owned()];
    while let Some(path) = pending.pop() {
        let metadata = fs::symlink_metadata(&path)?;
        if metadata.is_symlink() {
            continue;
        }
        match std::os::unix::fs::chown(&path, None, Some(group)) {
            Err(error)
                if matches!(error.kind(), io::ErrorKind::PermissionDenied | io::ErrorKind::InvalidInput) =>
            {
                return Ok(false);
            }
            changed => changed?,
        }
        let mode = metadata.permissions().mode() & 0o7777;
        let more = if metadata.is_dir() { 0o2770 } else { (mode & 0o700) >> 3 };
        fs::set_permissions(&path, Permissions::from_mode(mode | more))?;
        if metadata.is_dir() {
            for entry in fs::read_dir(&path)? {
                pending.push(entry?.path());
            }
        }
    }
    Ok(true)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_empty_directory_is_writable_for_all_and_goes_away() {
        let folder = tempfile::tempdir().unwrap();
        for (name, memory) in [("disk", false), ("memory", true)] {
            let path = folder.path().join("volumes").join(name);
            let volume =
                EmptyDirectory::create(&path, memory, &format!("test/{}-{name}", std::process::id()))
                    .unwrap();
            let mode = fs::metadata(volume.path()).unwrap().permissions().mode();
            assert_eq!(mode & 0o777, 0o777);
            fs::write(path.join("file"), "x").unwrap();
            let real = volume.path().to_owned();
            assert!(real.join("file").exists());
            volume.remove().unwrap();
            assert!(!real.exists() && !path.is_symlink());
        }
    }
}
