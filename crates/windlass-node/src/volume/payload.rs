//! The files of a ConfigMap, Secret, projected or downward API volume.

use std::collections::BTreeMap;
use std::fs::{self, File, Permissions};
use std::io::{self, Write};
use std::os::unix::fs::{PermissionsExt, symlink};
use std::path::{Component, Path, PathBuf};
use std::sync::atomic::{AtomicU32, Ordering};
use std::time::SystemTime;

use jiff::Timestamp;

/// The link to the directory with the present files.
const DATA: &str = "..data";

/// The link, until it is renamed.
const NEXT: &str = "..data_tmp";

/// Makes the names of directories different within a nanosecond.
static COUNT: AtomicU32 = AtomicU32::new(0);

/// A file of a [`Payload`].
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PayloadFile {
    /// The contents.
    pub contents: Vec<u8>,
    /// The permissions, such as 0o644.
    pub mode: u32,
}

/// The files of a volume, by their paths in the volume.
///
/// The files are written as the kubelet does: into a directory `..2026_11_23_…` with the link `..data`, and a link for each first part of a path. A
/// program sees all files of one payload or all files of the next, never a mixture.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Payload {
    /// The files, by relative paths.
    pub files: BTreeMap<PathBuf, PayloadFile>,
}

impl Payload {
    /// Adds a file.
    pub fn insert(&mut self, path: impl Into<PathBuf>, contents: impl Into<Vec<u8>>, mode: u32) {
        self.files.insert(path.into(), PayloadFile { contents: contents.into(), mode });
    }

    /// Writes the files to the volume at `directory`, if the files of the volume differ. Creates the
    /// directory. Returns whether files were written. `group` is the `fsGroup`; the group is left out where
    /// this process may not change groups.
    ///
    /// # Errors
    /// A path is absolute, contains `..`, or begins with `..`; or the files cannot be written. The volume is unchanged then.
    pub fn write(&self, directory: &Path, group: Option<u32>) -> io::Result<bool> {
        self.check()?;
        fs::create_dir_all(directory)?;
        let present = fs::read_link(directory.join(DATA)).ok();
        if let Some(present) = &present
            && self.is_in(&directory.join(present))
        {
            return Ok(false);
        }
        let name = new_name();
        let next = directory.join(&name);
        if let Err(error) = self.write_files(&next, group).and_then(|()| link(directory, &name)) {
            let _ = fs::remove_dir_all(&next);
            return Err(error);
        }
        self.link_names(directory)?;
        remove_stale(directory, &name, &self.names())?;
        Ok(true)
    }

    fn check(&self) -> io::Result<()> {
        for path in self.files.keys() {
            let normal = path.components().all(|part| matches!(part, Component::Normal(_)));
            let hidden = path.to_string_lossy().starts_with("..");
            if !normal || hidden || path.as_os_str().is_empty() {
                let text = format!("{} is no path of a file in a volume", path.display());
                return Err(io::Error::new(io::ErrorKind::InvalidInput, text));
            }
        }
        Ok(())
    }

    /// Returns whether a directory has exactly these files.
    fn is_in(&self, directory: &Path) -> bool {
        let same = |(path, file): (&PathBuf, &PayloadFile)| {
            let path = directory.join(path);
            fs::metadata(&path)
                .is_ok_and(|metadata| metadata.permissions().mode() & 0o777 == file.mode & 0o777)
                && fs::read(&path).is_ok_and(|contents| contents == file.contents)
        };
        self.files.iter().all(same) && count(directory) == self.files.len()
    }

    fn write_files(&self, directory: &Path, group: Option<u32>) -> io::Result<()> {
        fs::create_dir(directory)?;
        fs::set_permissions(directory, Permissions::from_mode(0o755))?;
        for (path, content) in &self.files {
            let path = directory.join(path);
            fs::create_dir_all(path.parent().unwrap_or(directory))?;
            let mut file = File::create_new(&path)?;
            file.write_all(&content.contents)?;
            let mut mode = content.mode & 0o7777;
            if let Some(group) = group
                && std::os::unix::fs::fchown(&file, None, Some(group)).is_ok()
            {
                // The group may do what the owner may, as with the kubelet.
                mode |= (mode & 0o400) >> 3;
            }
            file.set_permissions(Permissions::from_mode(mode))?;
        }
        Ok(())
    }

    /// Returns the first parts of the paths.
    fn names(&self) -> Vec<PathBuf> {
        let mut names: Vec<PathBuf> = self
            .files
            .keys()
            .filter_map(|path| path.components().next())
            .map(|name| PathBuf::from(name.as_os_str()))
            .collect();
        names.dedup();
        names
    }

    fn link_names(&self, directory: &Path) -> io::Result<()> {
        for name in self.names() {
            match symlink(Path::new(DATA).join(&name), directory.join(&name)) {
                Err(error) if error.kind() == io::ErrorKind::AlreadyExists => {}
                linked => linked?,
            }
        }
        Ok(())
    }
}

fn new_name() -> String {
    let now = Timestamp::try_from(SystemTime::now()).unwrap_or(Timestamp::UNIX_EPOCH);
    let count = COUNT.fetch_add(1, Ordering::Relaxed);
    format!("..{}.{}{count:04}", now.strftime("%Y_%m_%d_%H_%M_%S"), now.subsec_nanosecond())
}

/// Turns the link to the present files, in one step.
fn link(directory: &Path, name: &str) -> io::Result<()> {
    let next = directory.join(NEXT);
    match fs::remove_file(&next) {
        Err(error) if error.kind() != io::ErrorKind::NotFound => return Err(error),
        _ => {}
    }
    symlink(name, &next)?;
    fs::rename(next, directory.join(DATA))
}

/// Removes the links of files that are gone, and directories of earlier payloads.
fn remove_stale(directory: &Path, present: &str, names: &[PathBuf]) -> io::Result<()> {
    for entry in fs::read_dir(directory)? {
        let entry = entry?;
        let (name, kind) = (PathBuf::from(entry.file_name()), entry.file_type()?);
        let text = name.to_string_lossy().into_owned();
        if kind.is_dir() && text.starts_with("..") && text != present {
            fs::remove_dir_all(entry.path())?;
        } else if kind.is_symlink() && text != DATA && !names.contains(&name) {
            fs::remove_file(entry.path())?;
        }
    }
    Ok(())
}

/// Counts the files below a directory.
fn count(directory: &Path) -> usize {
    let entries = fs::read_dir(directory).into_iter().flatten().flatten();
    entries.map(|entry| if entry.path().is_dir() { count(&entry.path()) } else { 1 }).sum()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn payload(files: &[(&str, &str)]) -> Payload {
        let mut payload = Payload::default();
        for (path, text) in files {
            payload.insert(*path, *text, 0o640);
        }
        payload
    }

    #[test]
    fn files_are_replaced_as_a_whole() {
        let folder = tempfile::tempdir().unwrap();
        let volume = folder.path().join("volume");
        assert!(payload(&[("a", "1"), ("deep/b", "2"), ("old", "3")]).write(&volume, None).unwrap());
        assert_eq!(fs::read_to_string(volume.join("a")).unwrap(), "1");
        assert_eq!(fs::read_to_string(volume.join("deep/b")).unwrap(), "2");
        assert_eq!(fs::metadata(volume.join("a")).unwrap().permissions().mode() & 0o777, 0o640);
        assert_eq!(fs::read_link(volume.join("a")).unwrap(), Path::new("..data/a"));
        let next = payload(&[("a", "new"), ("c", "4")]);
        assert!(next.write(&volume, None).unwrap());
        assert!(!next.write(&volume, None).unwrap(), "the same files are written again");
        let mut names: Vec<_> =
            fs::read_dir(&volume).unwrap().map(|entry| entry.unwrap().file_name()).collect();
        names.sort();
        assert_eq!(names.len(), 4, "{names:?}");
        assert_eq!(names[1..], ["..data", "a", "c"]);
        assert_eq!(fs::read_to_string(volume.join("a")).unwrap(), "new");
    }

    #[test]
    fn a_reader_never_sees_files_of_two_payloads() {
        let folder = tempfile::tempdir().unwrap();
        let volume = folder.path().to_owned();
        payload(&[("a", "0"), ("b", "0")]).write(&volume, None).unwrap();
        let reader = volume.clone();
        let reading = std::thread::spawn(move || {
            let mut seen = 0;
            while seen < 300 {
                let data = reader.join(fs::read_link(reader.join(DATA)).unwrap());
                let pair = (fs::read_to_string(data.join("a")), fs::read_to_string(data.join("b")));
                if let (Ok(a), Ok(b)) = pair {
                    assert_eq!(a, b);
                    seen += 1;
                }
            }
        });
        let mut number = 1;
        while !reading.is_finished() {
            let text = number.to_string();
            payload(&[("a", &text), ("b", &text)]).write(&volume, None).unwrap();
            number += 1;
        }
        reading.join().unwrap();
    }

    #[test]
    fn paths_out_of_the_volume_are_refused() {
        let folder = tempfile::tempdir().unwrap();
        for path in ["../x", "/x", "a/../../x", "..data", ""] {
            let error = payload(&[(path, "x")]).write(folder.path(), None).unwrap_err();
            assert_eq!(error.kind(), io::ErrorKind::InvalidInput, "{path}");
        }
        assert_eq!(fs::read_dir(folder.path()).unwrap().count(), 0);
    }
}
