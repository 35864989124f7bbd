//! From the project that is there and the project that is wanted to the files to write.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt::Write;

use sha2::{Digest, Sha256};

use crate::api_name;
use crate::merge::{Merged, three_way};
use crate::render::{BOILERPLATE, Class, File, Files, files};
use crate::{Disk, Error, Project, Result, STATE, Writes};

/// The folder with the scaffolded texts, for the three-way merge.
const BASE: &str = ".windlass/base";

/// Files that a folder may have already, such as that of a new repository. They stay.
const KEPT: &[&str] = &["AGENTS.md", "README.md", ".gitignore"];

/// A plan: the present project and the wanted project.
#[derive(Clone, Debug)]
pub struct Plan<'a> {
    before: Option<&'a Project>,
    after: &'a Project,
    header: Header,
    force: bool,
    merge: bool,
}

/// The comment at the head of Rust files.
#[derive(Clone, Debug)]
enum Header {
    /// That of `hack/boilerplate.rs.txt`.
    OnDisk,
    Given(Option<String>),
}

/// The result of a plan.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct Outcome {
    /// The files to write and remove.
    pub writes: Writes,
    /// Files with conflict marks. The user has to resolve the conflicts.
    pub conflicts: Vec<String>,
    /// Files that stay unchanged although the template has changed, because the scaffolded text is not known
    /// any more.
    pub unmerged: Vec<String>,
    /// Files that the folder had before the project. The files stay unchanged.
    pub kept: Vec<String>,
    /// Uses of names that Windlass' API no longer has, which the user has to change: a line with the file, the old name and the new name.
    pub old_names: Vec<String>,
}

impl<'a> Plan<'a> {
    /// Returns a plan that adds and removes files. An existing file of the user changes only if the file's
    /// template depends on an addition or removal.
    pub fn create(before: Option<&'a Project>, after: &'a Project) -> Self {
        Self { before, after, header: Header::OnDisk, force: false, merge: false }
    }

    /// Returns a plan that also merges new templates into all existing files.
    pub fn update(before: &'a Project, after: &'a Project) -> Self {
        Self { before: Some(before), after, header: Header::OnDisk, force: false, merge: true }
    }

    /// Sets the comment at the head of Rust files. The default is the comment of `hack/boilerplate.rs.txt`.
    #[must_use]
    pub fn header(mut self, header: Option<String>) -> Self {
        self.header = Header::Given(header);
        self
    }

    /// Overwrites files of the user where a new file has the same path, and removes files that the user has changed.
    #[must_use]
    pub fn force(mut self, force: bool) -> Self {
        self.force = force;
        self
    }

    /// Compares with the disk.
    ///
    /// # Errors
    /// A file of the user would be overwritten or lost, a name is not valid, or a file cannot be read.
    pub fn run(&self, disk: &dyn Disk) -> Result<Outcome> {
        self.after.check()?;
        let present = disk.read(BOILERPLATE)?;
        let header = match &self.header {
            Header::OnDisk => present.clone(),
            Header::Given(header) => header.clone(),
        };
        let wanted = files(self.after, header.as_deref());
        let known = self.before.map(|before| files(before, present.as_deref())).unwrap_or_default();
        let mut work = Work {
            disk,
            plan: self,
            project: self.after.clone(),
            outcome: Outcome::default(),
            exist: Vec::new(),
            edited: Vec::new(),
        };
        Work::check_paths(&wanted)?;
        for (id, file) in &wanted {
            work.file(file, known.get(id))?;
        }
        let kept: BTreeSet<&str> = wanted.values().map(|file| file.path.as_str()).collect();
        for file in known.iter().filter(|(id, _)| !wanted.contains_key(*id)).map(|(_, file)| file) {
            if !kept.contains(file.path.as_str()) {
                work.drop(file)?;
            }
        }
        if self.merge {
            work.report_old_names()?;
        }
        work.finish()
    }
}

struct Work<'a> {
    disk: &'a dyn Disk,
    plan: &'a Plan<'a>,
    project: Project,
    outcome: Outcome,
    exist: Vec<String>,
    edited: Vec<String>,
}

impl Work<'_> {
    /// Refuses a project with two files at one path: different names can have equal file names.
    fn check_paths(wanted: &Files) -> Result<()> {
        let mut seen = BTreeMap::new();
        for file in wanted.values() {
            if let Some(path) = seen.insert(file.path.to_lowercase(), &file.path) {
                return Error::refused(format!(
                    "two kinds of the project would have the file {path}; rename one of them"
                ));
            }
        }
        Ok(())
    }

    fn file(&mut self, file: &File, known: Option<&File>) -> Result<()> {
        match (file.class, known) {
            (Class::Generated, _) => {
                self.outcome.writes.overwrite_generated(self.disk, file.path.clone(), file.text.clone())
            }
            (Class::User, None) => self.add(file),
            (Class::User, Some(known)) if self.is_new(known)? => self.add_to_old_project(file),
            (Class::User, Some(known)) if self.plan.merge || known != file => self.merge(file, known),
            (Class::User, Some(_)) => Ok(()),
        }
    }

    /// Returns whether a file was never scaffolded: an earlier version of Windlass wrote the project.
    fn is_new(&self, known: &File) -> Result<bool> {
        Ok(!self.project.files.contains_key(&known.path) && self.disk.read(&known.path)?.is_none())
    }

    fn add_to_old_project(&mut self, file: &File) -> Result<()> {
        if self.plan.merge {
            return self.add(file);
        }
        if KEPT.contains(&file.path.as_str()) {
            return Ok(());
        }
        Error::refused(format!(
            "an earlier version of windlass wrote this project, without {}; run `windlass update` first",
            file.path
        ))
    }

    /// Returns the first text of a file: the template, or a copy of the file of another version.
    fn first_text(&self, file: &File) -> Result<String> {
        let Some(copy) = &file.copy else { return Ok(file.text.clone()) };
        let original = self.disk.read(&copy.path)?.filter(|text| text.contains(&copy.from));
        Ok(original.map_or_else(|| file.text.clone(), |text| text.replace(&copy.from, &copy.to)))
    }

    /// Adds a file that the project did not have. A later update merges the changes of the template, also into a copy.
    fn add(&mut self, file: &File) -> Result<()> {
        let (present, text) = (self.disk.read(&file.path)?, self.first_text(file)?);
        if present.is_some_and(|present| present != text && present != file.text) && !self.plan.force {
            let is_kept = KEPT.contains(&file.path.as_str());
            let list = if is_kept { &mut self.outcome.kept } else { &mut self.exist };
            list.push(file.path.clone());
            return Ok(());
        }
        self.outcome.writes.write(self.disk, &file.path, text)?;
        self.record(file)
    }

    /// Brings a file of the user up to date.
    fn merge(&mut self, file: &File, known: &File) -> Result<()> {
        // A file that the user has deleted stays deleted.
        let Some(ours) = self.disk.read(&known.path)? else { return Ok(()) };
        let moved = file.path != known.path;
        if !self.project.files.contains_key(&known.path) && KEPT.contains(&known.path.as_str()) {
            return Ok(());
        }
        let Some(base) = self.base(known)? else {
            if ours != file.text {
                self.outcome.unmerged.push(known.path.clone());
            }
            if moved {
                self.outcome.writes.write(self.disk, &file.path, ours)?;
                self.outcome.writes.remove(self.disk, &known.path)?;
            }
            return Ok(());
        };
        let in_new_version = |text: &str| match (&known.types, &file.types) {
            (Some(from), Some(to)) => api_name::replace(text, from, to),
            _ => text.to_owned(),
        };
        let renames = self.plan.merge && is_rust(&file.path);
        let in_new_version = |text: &str| {
            let text = in_new_version(text);
            if renames { api_name::rename(&text) } else { text }
        };
        let text = match three_way(&in_new_version(&base), &in_new_version(&ours), &file.text) {
            Merged::Clean(text) => text,
            Merged::Conflict(text) => {
                self.outcome.conflicts.push(file.path.clone());
                text
            }
        };
        if moved {
            // An interrupted command may have moved the file already.
            if self.disk.read(&file.path)?.is_some_and(|there| there != text) && !self.plan.force {
                self.exist.push(file.path.clone());
                return Ok(());
            }
            self.forget(&known.path)?;
            self.outcome.writes.remove(self.disk, &known.path)?;
        }
        self.outcome.writes.write(self.disk, &file.path, text)?;
        self.record(file)
    }

    /// Returns the scaffolded text of a file, if the text is known.
    fn base(&self, known: &File) -> Result<Option<String>> {
        let Some(hash) = self.project.files.get(&known.path) else { return Ok(None) };
        let stored = self.disk.read(&format!("{BASE}/{}", known.path))?;
        let texts = stored.into_iter().chain([known.text.clone()]);
        Ok(texts.into_iter().find(|text| digest(text) == *hash))
    }

    /// Removes a file that the project no longer has.
    fn drop(&mut self, file: &File) -> Result<()> {
        let Some(present) = self.disk.read(&file.path)? else { return self.forget(&file.path) };
        let untouched = match file.class {
            Class::Generated => {
                present == file.text
                    || present.lines().next().is_some_and(|line| line.contains(crate::GENERATED))
            }
            Class::User => {
                self.project.files.get(&file.path) == Some(&digest(&present))
                    || file.copy.is_some() && self.first_text(file)? == present
            }
        };
        if untouched || self.plan.force || self.disk.is_committed(&file.path) {
            self.outcome.writes.remove(self.disk, &file.path)?;
            return self.forget(&file.path);
        }
        self.edited.push(file.path.clone());
        Ok(())
    }

    /// Records the scaffolded text of a file.
    fn record(&mut self, file: &File) -> Result<()> {
        self.project.files.insert(file.path.clone(), digest(&file.text));
        self.outcome.writes.write(self.disk, format!("{BASE}/{}", file.path), &file.text)
    }

    fn forget(&mut self, path: &str) -> Result<()> {
        self.project.files.remove(path);
        self.outcome.writes.remove(self.disk, format!("{BASE}/{path}"))
    }

    /// Reports the uses of old names that stay in the user's Rust files.
    fn report_old_names(&mut self) -> Result<()> {
        for folder in ["src", "api/src", "tests", "examples"] {
            for path in self.disk.list(folder)?.into_iter().filter(|path| is_rust(path)) {
                let text = match self.outcome.writes.text(&path) {
                    Some(text) => Some(text.to_owned()),
                    None => self.disk.read(&path)?,
                };
                let text = text
                    .filter(|text| !text.lines().next().is_some_and(|line| line.contains(crate::GENERATED)));
                self.outcome.old_names.extend(text.iter().flat_map(|text| api_name::old_names(&path, text)));
            }
        }
        Ok(())
    }

    fn finish(mut self) -> Result<Outcome> {
        if !self.exist.is_empty() {
            return Err(Error::Exists(self.exist));
        }
        if !self.edited.is_empty() {
            return Err(Error::Edited(self.edited));
        }
        self.outcome.writes.write(self.disk, STATE, self.project.to_text()?)?;
        Ok(self.outcome)
    }
}

/// Returns whether a file has Rust code.
fn is_rust(path: &str) -> bool {
    std::path::Path::new(path).extension().is_some_and(|extension| extension == "rs")
}

fn digest(text: &str) -> String {
    let mut digits = String::with_capacity(64);
    for byte in Sha256::digest(text.as_bytes()) {
        let _ = write!(digits, "{byte:02x}");
    }
    digits
}
