//! A folder that no path leaves.

use std::collections::{HashSet, VecDeque};
use std::fs::File;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::path::Path;

use rustix::fs::{AtFlags, CWD, Dir, FileType, Mode, OFlags, Stat, Timespec, Timestamps};
use rustix::fs::{fchmod, fstat, futimens, linkat, mkdirat, openat, readlinkat, statat, symlinkat, unlinkat};
use rustix::io::Errno;

use crate::{Error, Result};

/// The deepest folder.
const DEEPEST: usize = 200;

/// The most symbolic links on a path, as in Linux.
const MOST_LINKS: usize = 40;

/// The most parts that the links of a path may add.
const MOST_PARTS: usize = 4096;

/// The rights to a folder that the user who unpacks keeps.
const OWN: u32 = 0o700;

/// The device and the number of a file.
pub(super) type FileId = (u64, u64);

/// The files that a layer has written.
pub(super) type Written = HashSet<FileId>;

/// A folder that no path leaves: `..` and links are resolved as if the folder were the root of the file system.
pub(super) struct Tree {
    root: OwnedFd,
}

/// An open folder of a [`Tree`].
pub(super) struct Folder {
    /// The folder, below all folders that lead to the folder.
    chain: Vec<OwnedFd>,
}

impl Tree {
    pub(super) fn open(path: &Path) -> Result<Self> {
        let root =
            openat(CWD, path, FOLDER, Mode::empty()).map_err(|error| Error::storage("open", path, error))?;
        Ok(Self { root })
    }

    /// Opens the folder with a path. Missing folders are created if `create` is true; else returns `None` for a missing folder.
    pub(super) fn folder(&self, path: &[String], create: bool) -> Result<Option<Folder>> {
        let root = self.root.try_clone().map_err(|error| Error::storage("open", Path::new("/"), error))?;
        let mut chain = vec![root];
        let mut waiting: VecDeque<String> = path.iter().cloned().collect();
        let (mut links, mut parts) = (0, 0);
        while let Some(part) = waiting.pop_front() {
            parts += 1;
            if chain.len() > DEEPEST || parts > MOST_PARTS {
                return Err(Error::Invalid(format!("the path {:?} is too deep", path.join("/"))));
            }
            match part.as_str() {
                "" | "." => continue,
                ".." if chain.len() > 1 => {
                    chain.pop();
                    continue;
                }
                ".." => continue,
                _ => {}
            }
            let Some(top) = chain.last() else { break };
            match openat(top, &part, FOLDER, Mode::empty()) {
                Ok(folder) => chain.push(folder),
                Err(Errno::NOENT) if create => {
                    mkdirat(top, &part, Mode::from_raw_mode(0o755))
                        .map_err(|error| failed("create", &part, error))?;
                    waiting.push_front(part);
                }
                Err(Errno::NOENT) => return Ok(None),
                Err(Errno::NOTDIR | Errno::LOOP | Errno::MLINK) => {
                    let Ok(target) = readlinkat(top, &part, Vec::new()) else {
                        return Err(Error::Invalid(format!(
                            "{part:?} of the path {:?} is not a folder",
                            path.join("/")
                        )));
                    };
                    links += 1;
                    if links > MOST_LINKS {
                        return Err(Error::Invalid(format!(
                            "the path {:?} has too many links",
                            path.join("/")
                        )));
                    }
                    let target = target.to_string_lossy().into_owned();
                    if target.starts_with('/') {
                        chain.truncate(1);
                    }
                    for part in target.split('/').rev() {
                        waiting.push_front(part.to_owned());
                    }
                }
                Err(error) => return Err(failed("open", &part, error)),
            }
        }
        Ok(Some(Folder { chain }))
    }
}

/// The flags of an open folder: links are not followed.
const FOLDER: OFlags = OFlags::RDONLY.union(OFlags::DIRECTORY).union(OFlags::NOFOLLOW).union(OFlags::CLOEXEC);

impl Folder {
    fn fd(&self) -> BorrowedFd<'_> {
        // A chain is never empty: the root is its first folder.
        self.chain.last().map_or(CWD, |folder| folder.as_fd())
    }

    /// Adds the folder, and the folders that lead to the folder, to the files that a layer has written.
    pub(super) fn mark(&self, written: &mut Written) -> Result<()> {
        for folder in self.chain.iter().rev() {
            if !written.insert(id(&fstat(folder).map_err(|error| failed("read", "a folder", error))?)) {
                break;
            }
        }
        Ok(())
    }

    /// Creates a folder, or takes the folder that exists. Anything else of the name is replaced.
    pub(super) fn make_folder(&self, name: &str, mode: u32, written: &mut Written) -> Result<()> {
        if !self.stat(name)?.is_some_and(|stat| is_folder(&stat)) {
            self.remove(name)?;
            mkdirat(self.fd(), name, Mode::from_raw_mode(OWN))
                .map_err(|error| failed("create", name, error))?;
        }
        let folder =
            openat(self.fd(), name, FOLDER, Mode::empty()).map_err(|error| failed("open", name, error))?;
        fchmod(&folder, Mode::from_raw_mode((mode & 0o1777) | OWN))
            .map_err(|error| failed("change", name, error))?;
        written.insert(id(&fstat(&folder).map_err(|error| failed("read", name, error))?));
        Ok(())
    }

    /// Creates an empty file. Anything of the name is replaced.
    pub(super) fn make_file(&self, name: &str, written: &mut Written) -> Result<File> {
        self.remove(name)?;
        let flags = OFlags::WRONLY | OFlags::CREATE | OFlags::EXCL | OFlags::NOFOLLOW | OFlags::CLOEXEC;
        let file = openat(self.fd(), name, flags, Mode::from_raw_mode(0o600))
            .map_err(|error| failed("create", name, error))?;
        written.insert(id(&fstat(&file).map_err(|error| failed("read", name, error))?));
        Ok(file.into())
    }

    /// Creates a symbolic link. The target may be any text: links are resolved inside the root.
    pub(super) fn make_link(&self, name: &str, target: &str, written: &mut Written) -> Result<()> {
        self.remove(name)?;
        symlinkat(target, self.fd(), name).map_err(|error| failed("create", name, error))?;
        self.written(name, written)
    }

    /// Creates another name for a file of the tree.
    pub(super) fn make_hard_link(
        &self,
        name: &str,
        from: &Self,
        target: &str,
        written: &mut Written,
    ) -> Result<()> {
        let Some(stat) = from.stat(target)?.filter(|stat| !is_folder(stat)) else {
            return Err(Error::Invalid(format!("the hard link {name:?} has no target {target:?}")));
        };
        if self.stat(name)?.is_some_and(|other| id(&other) == id(&stat)) {
            return self.written(name, written);
        }
        self.remove(name)?;
        linkat(from.fd(), target, self.fd(), name, AtFlags::empty())
            .map_err(|error| failed("create", name, error))?;
        self.written(name, written)
    }

    fn written(&self, name: &str, written: &mut Written) -> Result<()> {
        written.extend(self.stat(name)?.map(|stat| id(&stat)));
        Ok(())
    }

    /// Removes a file of lower layers. The files that this layer has written stay.
    pub(super) fn remove_lower(&self, name: &str, written: &Written) -> Result<()> {
        match self.stat(name)? {
            None => Ok(()),
            Some(stat) if !written.contains(&id(&stat)) => self.remove(name),
            Some(stat) if is_folder(&stat) => self.enter(name)?.clear_lower(written),
            Some(_) => Ok(()),
        }
    }

    /// Removes the files of lower layers from the folder.
    pub(super) fn clear_lower(&self, written: &Written) -> Result<()> {
        self.names()?.iter().try_for_each(|name| self.remove_lower(name, written))
    }

    /// Removes a file, a link, or a folder with all of its files. A missing file is no error.
    fn remove(&self, name: &str) -> Result<()> {
        let Some(stat) = self.stat(name)? else { return Ok(()) };
        let flags = if is_folder(&stat) {
            let folder = self.enter(name)?;
            folder.names()?.iter().try_for_each(|name| folder.remove(name))?;
            AtFlags::REMOVEDIR
        } else {
            AtFlags::empty()
        };
        unlinkat(self.fd(), name, flags).map_err(|error| failed("remove", name, error))
    }

    fn enter(&self, name: &str) -> Result<Self> {
        let folder =
            openat(self.fd(), name, FOLDER, Mode::empty()).map_err(|error| failed("open", name, error))?;
        Ok(Self { chain: vec![folder] })
    }

    fn names(&self) -> Result<Vec<String>> {
        let mut names = Vec::new();
        for entry in Dir::read_from(self.fd()).map_err(|error| failed("read", "a folder", error))? {
            let entry = entry.map_err(|error| failed("read", "a folder", error))?;
            // Only this module writes files, and names are UTF-8.
            names.extend(
                entry
                    .file_name()
                    .to_str()
                    .ok()
                    .filter(|name| !matches!(*name, "." | ".."))
                    .map(str::to_owned),
            );
        }
        Ok(names)
    }

    fn stat(&self, name: &str) -> Result<Option<Stat>> {
        match statat(self.fd(), name, AtFlags::SYMLINK_NOFOLLOW) {
            Ok(stat) => Ok(Some(stat)),
            Err(Errno::NOENT) => Ok(None),
            Err(Errno::NAMETOOLONG) => Err(Error::Invalid(format!("the name {name:?} is too long"))),
            Err(error) => Err(failed("read", name, error)),
        }
    }
}

/// Sets the mode and the time of a file.
pub(super) fn finish_file(file: &File, mode: u32, modified: u64) -> rustix::io::Result<()> {
    fchmod(file, Mode::from_raw_mode((mode & 0o777) | 0o400))?;
    let time = Timespec { tv_sec: modified.cast_signed(), tv_nsec: 0 };
    futimens(file, &Timestamps { last_access: time, last_modification: time })
}

fn is_folder(stat: &Stat) -> bool {
    FileType::from_raw_mode(stat.st_mode) == FileType::Directory
}

#[allow(clippy::unnecessary_cast, reason = "the types differ between operating systems")]
fn id(stat: &Stat) -> FileId {
    (stat.st_dev as u64, stat.st_ino as u64)
}

fn failed(doing: &str, name: &str, error: Errno) -> Error {
    Error::storage(doing, Path::new(name), error)
}
