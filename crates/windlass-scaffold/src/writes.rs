//! A set of files to write and to remove.

use std::collections::BTreeMap;
use std::io::Write;
use std::path::Path;
use std::{fs, io};

use crate::{Disk, Error, Folder, GENERATED, Result, STATE};

/// Files that belong to the machinery, and are not shown to the person.
const HIDDEN: &str = ".windlass/";

/// How the names of folders with drafts begin, below [`HIDDEN`].
const STAGE: &str = "stage-";

/// How the names of drafts on another file system begin, beside the file.
const NEAR: &str = ".windlass-";

/// The change of a file.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Action {
    /// The file is new.
    Create,
    /// The text changes.
    Change,
    /// The file is removed.
    Remove,
}

impl Action {
    /// Returns the participle: `created`.
    pub fn done(self) -> &'static str {
        match self {
            Self::Create => "created",
            Self::Change => "changed",
            Self::Remove => "removed",
        }
    }
}

#[derive(Clone, Debug, PartialEq, Eq)]
struct Change {
    before: Option<String>,
    after: Option<String>,
}

/// A set of files to write and to remove, below a folder.
///
/// [`apply`](Self::apply) writes new texts beside the project first and then renames them into place,
/// `windlass.toml` last: a file is never half-written, and an interrupted command can be repeated.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Writes {
    changes: BTreeMap<String, Change>,
}

impl Writes {
    /// Returns an empty set.
    pub fn new() -> Self {
        Self::default()
    }

    /// Writes a file, unless the file has this text already.
    ///
    /// # Errors
    /// The present file cannot be read.
    pub fn write(&mut self, disk: &dyn Disk, path: impl Into<String>, text: impl Into<String>) -> Result<()> {
        let (path, text) = (path.into(), text.into());
        let before = disk.read(&path)?;
        if before.as_deref() == Some(text.as_str()) {
            self.changes.remove(&path);
        } else {
            self.changes.insert(path, Change { before, after: Some(text) });
        }
        Ok(())
    }

    /// Removes a file, if the file exists.
    ///
    /// # Errors
    /// The present file cannot be read.
    pub fn remove(&mut self, disk: &dyn Disk, path: impl Into<String>) -> Result<()> {
        let path = path.into();
        if let Some(before) = disk.read(&path)? {
            self.changes.insert(path, Change { before: Some(before), after: None });
        }
        Ok(())
    }

    /// Makes the generated files below `folder` exactly these files. Generated files have [`GENERATED`] in
    /// the first line. All other files are the user's and stay.
    ///
    /// # Errors
    /// The user has a file of the same path, or a file cannot be read.
    pub fn generated(
        &mut self,
        disk: &dyn Disk,
        folder: &str,
        files: BTreeMap<String, String>,
    ) -> Result<()> {
        for path in disk.list(folder)? {
            if !files.contains_key(&path)
                && disk.read(&path).is_ok_and(|text| text.is_some_and(|text| is_generated(&text)))
            {
                self.remove(disk, path)?;
            }
        }
        for (path, text) in files {
            self.overwrite_generated(disk, path, text)?;
        }
        Ok(())
    }

    /// Writes a generated file, and keeps all other files of the folder.
    ///
    /// # Errors
    /// The user has a file of this path, or the present file cannot be read.
    pub fn overwrite_generated(&mut self, disk: &dyn Disk, path: String, text: String) -> Result<()> {
        if disk.read(&path)?.is_some_and(|before| before != text && !is_generated(&before)) {
            return Error::refused(format!(
                "{path} is not generated: its first line does not say `{GENERATED}`. Move it away, because a generated file has this path"
            ));
        }
        self.write(disk, path, text)
    }

    /// Adds another set. Files of the other set win.
    pub fn extend(&mut self, other: Self) {
        self.changes.extend(other.changes);
    }

    /// Returns whether the set is empty.
    pub fn is_empty(&self) -> bool {
        self.changes.is_empty()
    }

    /// Returns the paths of all files, sorted.
    pub fn paths(&self) -> impl Iterator<Item = &str> {
        self.changes.keys().map(String::as_str)
    }

    /// Returns the new text of a file.
    pub fn text(&self, path: &str) -> Option<&str> {
        self.changes.get(path)?.after.as_deref()
    }

    /// Returns the change of each file that the user knows, sorted by path. `windlass.toml` is listed if no
    /// other file changes.
    pub fn actions(&self) -> impl Iterator<Item = (Action, &str)> {
        let known = || self.changes.iter().filter(|(path, _)| !path.starts_with(HIDDEN));
        let is_alone = known().all(|(path, _)| path == STATE);
        known().filter(move |(path, _)| *path != STATE || is_alone).map(|(path, change)| {
            let action = match (&change.before, &change.after) {
                (_, None) => Action::Remove,
                (None, _) => Action::Create,
                (Some(_), _) => Action::Change,
            };
            (action, path.as_str())
        })
    }

    /// Returns the changes as a unified diff, without the files of the machinery.
    pub fn diff(&self) -> String {
        let mut text = String::new();
        for (path, change) in &self.changes {
            if path.starts_with(HIDDEN) {
                continue;
            }
            let (before, after) =
                (change.before.as_deref().unwrap_or(""), change.after.as_deref().unwrap_or(""));
            let mut options = diffy::DiffOptions::new();
            options.set_original_filename(
                change.before.as_ref().map_or("/dev/null".to_owned(), |_| format!("a/{path}")),
            );
            options.set_modified_filename(
                change.after.as_ref().map_or("/dev/null".to_owned(), |_| format!("b/{path}")),
            );
            text += &options.create_patch(before, after).to_string();
        }
        text
    }

    /// Writes and removes the files, and removes the drafts of commands that were killed. Waits while another command writes to the folder.
    ///
    /// # Errors
    /// Another command has changed one of the files since the plan: no file has been written. Or a file cannot be written: files that were
    /// renamed before the error stay.
    pub fn apply(&self, folder: &Folder) -> Result<()> {
        let at = |path: &Path, source| Error::Io { path: path.to_owned(), source };
        let machinery = folder.path(HIDDEN);
        if self.is_empty() && !machinery.is_dir() {
            return Ok(());
        }
        fs::create_dir_all(&machinery).map_err(|error| at(&machinery, error))?;
        let _lock = clear_drafts(&machinery).map_err(|error| at(&machinery, error))?;
        if self.is_empty() {
            return Ok(());
        }
        self.check_unchanged(folder)?;
        let stage = tempfile::Builder::new()
            .prefix(STAGE)
            .tempdir_in(&machinery)
            .map_err(|error| at(&machinery, error))?;
        let mut staged = Vec::new();
        for (number, (path, change)) in self.changes.iter().enumerate() {
            if let Some(text) = &change.after {
                let draft = stage.path().join(number.to_string());
                write_text(&draft, text).map_err(|error| at(&folder.path(path), error))?;
                staged.push((path, draft));
            }
        }
        // The state last: until then the command can be given again.
        staged.sort_by_key(|(path, _)| *path == STATE);
        let (state, others): (Vec<_>, Vec<_>) = staged.into_iter().partition(|(path, _)| *path == STATE);
        let place = |(path, draft): &(&String, std::path::PathBuf)| {
            let target = folder.path(path);
            let parent = target.parent().unwrap_or(folder.root());
            fs::create_dir_all(parent)
                .and_then(|()| keep_mode(&target, draft))
                .and_then(|()| rename(draft, &target))
                .map_err(|error| at(&target, error))
        };
        others.iter().try_for_each(place)?;
        let removed = self.changes.iter().filter(|(_, change)| change.after.is_none());
        for (path, _) in removed {
            remove(folder, path).map_err(|error| at(&folder.path(path), error))?;
        }
        state.iter().try_for_each(place)
    }
    /// Fails if a file is neither as the plan has read the file nor as the plan writes the file.
    fn check_unchanged(&self, folder: &Folder) -> Result<()> {
        for (path, change) in &self.changes {
            let present = folder.read(path)?;
            if present != change.before && present != change.after {
                return Error::refused(format!(
                    "another command has changed {path} meanwhile: run this command again"
                ));
            }
        }
        Ok(())
    }
}

/// Renames a file. A copy replaces the target if the target is on another file system.
fn rename(draft: &Path, target: &Path) -> io::Result<()> {
    match fs::rename(draft, target) {
        Err(error) if error.kind() == io::ErrorKind::CrossesDevices => {
            let parent = target.parent().unwrap_or(Path::new("."));
            let mut copy = tempfile::Builder::new().prefix(NEAR).tempfile_in(parent)?;
            io::copy(&mut fs::File::open(draft)?, &mut copy)?;
            copy.as_file().set_permissions(fs::metadata(draft)?.permissions())?;
            copy.persist(target).map(drop).map_err(|error| error.error)
        }
        renamed => renamed,
    }
}

/// Locks the folder of the machinery, and removes the drafts that killed commands left there. Returns the lock.
///
/// Without a lock, because the file system has no locks, the drafts stay: the drafts may belong to a running
/// command.
fn clear_drafts(machinery: &Path) -> io::Result<Option<fs::File>> {
    let lock = fs::File::open(machinery)?;
    if lock.lock().is_err() {
        return Ok(None);
    }
    for entry in fs::read_dir(machinery)? {
        let entry = entry?;
        if entry.file_name().to_string_lossy().starts_with(STAGE) && entry.file_type()?.is_dir() {
            fs::remove_dir_all(entry.path())?;
        }
    }
    Ok(Some(lock))
}

/// Returns whether the first line says that the file is generated.
fn is_generated(text: &str) -> bool {
    text.lines().next().is_some_and(|line| line.contains(GENERATED))
}

fn write_text(path: &Path, text: &str) -> io::Result<()> {
    let mut file = fs::File::create(path)?;
    file.write_all(text.as_bytes())
}

/// Gives the new file the permissions of the old file.
fn keep_mode(target: &Path, draft: &Path) -> io::Result<()> {
    match fs::metadata(target) {
        Ok(old) => fs::set_permissions(draft, old.permissions()),
        Err(_) => Ok(()),
    }
}

/// Removes a file, and the folders that are empty then.
fn remove(folder: &Folder, path: &str) -> io::Result<()> {
    let full = folder.path(path);
    match fs::remove_file(&full) {
        Err(error) if error.kind() != io::ErrorKind::NotFound => return Err(error),
        _ => {}
    }
    let parents = full.ancestors().skip(1).take_while(|parent| *parent != folder.root());
    for parent in parents {
        if fs::remove_dir(parent).is_err() {
            break;
        }
    }
    Ok(())
}
