//! The folder of a project.

use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::{fs, io};

use crate::{Error, Result};

/// The files that a plan reads. Paths are relative to the project, with `/`.
pub trait Disk {
    /// Returns the text of a file, or `None` if the file does not exist.
    ///
    /// # Errors
    /// The path exists and is not a readable file with UTF-8 text.
    fn read(&self, path: &str) -> Result<Option<String>>;

    /// Returns the paths of all files below a folder, sorted.
    ///
    /// # Errors
    /// A folder cannot be read.
    fn list(&self, folder: &str) -> Result<Vec<String>>;

    /// Returns whether version control has the present content of the file.
    fn is_committed(&self, path: &str) -> bool;
}

/// The folder of a project on a real disk.
#[derive(Clone, Debug)]
pub struct Folder {
    root: PathBuf,
}

impl Folder {
    /// Returns the folder. The folder need not exist.
    pub fn new(root: impl Into<PathBuf>) -> Self {
        Self { root: root.into() }
    }

    /// Returns the path of the folder.
    pub fn root(&self) -> &Path {
        &self.root
    }

    /// Returns the path of a file in the folder.
    pub fn path(&self, path: &str) -> PathBuf {
        self.root.join(path)
    }

    fn git(&self, arguments: &[&str]) -> Option<Vec<u8>> {
        let mut command = Command::new("git");
        command.arg("-C").arg(&self.root).args(arguments).stdin(Stdio::null()).stderr(Stdio::null());
        let output = command.output().ok()?;
        output.status.success().then_some(output.stdout)
    }

    /// Returns the files of the project that differ from the last commit, or `None` if the folder is not in a
    /// git repository.
    pub fn uncommitted(&self) -> Option<Vec<String>> {
        let listed =
            self.git(&["status", "--porcelain", "--no-renames", "-z", "--untracked-files=all", "--", "."])?;
        let entries = listed.split(|byte| *byte == 0).filter(|entry| entry.len() > 3);
        Some(entries.map(|entry| String::from_utf8_lossy(&entry[3..]).into_owned()).collect())
    }

    fn collect(folder: &Path, prefix: &str, found: &mut Vec<String>) -> io::Result<()> {
        for entry in fs::read_dir(folder)? {
            let entry = entry?;
            let path = format!("{prefix}/{}", entry.file_name().to_string_lossy());
            if entry.file_type()?.is_dir() {
                Self::collect(&entry.path(), &path, found)?;
            } else {
                found.push(path);
            }
        }
        Ok(())
    }
}

impl Disk for Folder {
    fn read(&self, path: &str) -> Result<Option<String>> {
        let full = self.path(path);
        match fs::read_to_string(&full) {
            Ok(text) => Ok(Some(text)),
            Err(error) if matches!(error.kind(), io::ErrorKind::NotFound | io::ErrorKind::NotADirectory) => {
                Ok(None)
            }
            Err(source) => Err(Error::Read { path: full, source }),
        }
    }

    fn list(&self, folder: &str) -> Result<Vec<String>> {
        let full = self.path(folder);
        if !full.is_dir() {
            return Ok(Vec::new());
        }
        let mut found = Vec::new();
        Self::collect(&full, folder, &mut found).map_err(|source| Error::Read { path: full, source })?;
        found.sort();
        Ok(found)
    }

    fn is_committed(&self, path: &str) -> bool {
        self.git(&["ls-files", "--error-unmatch", "--", path]).is_some()
            && self.git(&["diff", "--quiet", "HEAD", "--", path]).is_some()
    }
}
