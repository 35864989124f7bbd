//! Where generated code goes, and which paths it names.

use std::fs;
use std::path::{Path, PathBuf};

use windlass_scaffold::{Folder, Plan, Project, Writes};

use crate::error::Result;
use crate::project::Workspace;

/// Where the CRDs of a project are.
const BASES: &str = "config/crd/bases";

/// Where the clients of a project go.
const CLIENT: &str = "api/src/client";

/// The feature of the api crate that has the clients.
const FEATURE: &str = "client";

/// Where generated code goes, and which paths it names.
pub(crate) struct Place {
    /// The folder that paths are relative to.
    pub(crate) folder: Folder,
    /// The folder of the generated code, relative to `folder`.
    pub(crate) output: String,
    /// The files with CRDs.
    pub(super) crds: Vec<PathBuf>,
    /// Whether the types are generated too.
    pub(super) makes_types: bool,
    /// The module of the generated code, as its crate names it.
    pub(super) module: String,
    /// The same, as other crates name it.
    pub(super) public: String,
    types: String,
    /// The project, if the code goes into its api crate.
    project: Option<Project>,
}

impl Place {
    /// Finds the place from the arguments, or from the project of the current folder.
    pub(crate) fn find(
        crds: &[PathBuf],
        output: Option<PathBuf>,
        types: Option<String>,
        module: Option<String>,
    ) -> Result<Self> {
        match output {
            None if crds.is_empty() => Self::of_project(types, module),
            None => Err("--crd needs --output: the folder that the code goes into".into()),
            Some(output) => Self::of_folder(crds, &output, types, module),
        }
    }

    fn of_project(types: Option<String>, module: Option<String>) -> Result<Self> {
        let Workspace { root, folder, project } = Workspace::current()?;
        let usual = if project.multigroup { "crate::{group}::{version}" } else { "crate::{version}" };
        let krate = project.project_name.replace('-', "_");
        Ok(Self {
            crds: yaml_files(&root.join(BASES)),
            folder,
            output: CLIENT.to_owned(),
            makes_types: false,
            module: module.unwrap_or_else(|| "crate::client".to_owned()),
            public: format!("{krate}_api::client"),
            types: types.unwrap_or_else(|| usual.to_owned()),
            project: Some(project),
        })
    }

    /// A folder in any crate. With CRDs and without a module for their types, the types are generated.
    fn of_folder(
        crds: &[PathBuf],
        output: &Path,
        types: Option<String>,
        module: Option<String>,
    ) -> Result<Self> {
        let output = std::path::absolute(output)?;
        let current = std::env::current_dir()?;
        let root = if output.starts_with(&current) { current } else { parent(&output) };
        let relative = output.strip_prefix(&root)?.to_string_lossy().replace('\\', "/");
        let crds = if crds.is_empty() { yaml_files(&root.join(BASES)) } else { crds.to_vec() };
        let module = match module {
            Some(module) => module,
            None => module_of(&output).ok_or_else(|| {
                format!(
                    "{} is not below a folder `src`: say with --module how its crate names it",
                    output.display()
                )
            })?,
        };
        let public = module.replacen("crate", &crate_of(&output).unwrap_or_else(|| "crate".to_owned()), 1);
        Ok(Self {
            folder: Folder::new(&root),
            output: relative,
            crds,
            makes_types: types.is_none(),
            types: types.unwrap_or_else(|| format!("{module}::types::{{group}}::{{version}}")),
            project: None,
            module,
            public,
        })
    }

    /// Declares the module in the project's api crate, behind its feature `client`, unless it is declared.
    pub(super) fn declare(&self, remarks: &mut Vec<String>) -> Result<Writes> {
        let Some(project) = self.project.as_ref().filter(|project| project.generate.is_empty()) else {
            return Ok(Writes::new());
        };
        let mut after = project.clone();
        after.generate.push(FEATURE.to_owned());
        let package = project.api_package();
        remarks.push(format!(
            "the code is behind the feature `{FEATURE}` of {package}: enable it where it is used"
        ));
        Ok(Plan::create(Some(project), &after).run(&self.folder)?.writes)
    }

    /// The path of a generated file below the folder.
    pub(super) fn path(&self, file: &str) -> String {
        format!("{}/{file}", self.output)
    }

    /// The module that has the types of a group and version.
    pub(super) fn types_module(&self, group: &str, version: &str) -> String {
        let label = windlass_codegen::client::group_module(group);
        self.types.replace("{group}", &label).replace("{version}", version)
    }

    /// The folder with the sources of the crate.
    pub(super) fn source_root(&self) -> PathBuf {
        let output = self.folder.path(&self.output);
        let is_source = |folder: &&Path| folder.file_name().is_some_and(|name| name == "src");
        output.ancestors().find(is_source).map_or(output.clone(), Path::to_owned)
    }

    /// Why there is nothing to generate.
    pub(super) fn no_kinds(&self) -> String {
        if self.crds.is_empty() {
            format!("there are no CRDs in {BASES}: run `windlass manifests` first, or name files with --crd")
        } else {
            "the files have no CRD of the wanted groups and versions".to_owned()
        }
    }
}

fn parent(path: &Path) -> PathBuf {
    path.parent().unwrap_or(path).to_owned()
}

/// The YAML files of a folder, sorted.
fn yaml_files(folder: &Path) -> Vec<PathBuf> {
    let entries = fs::read_dir(folder).into_iter().flatten().flatten();
    let is_yaml =
        |path: &PathBuf| path.extension().is_some_and(|extension| extension == "yaml" || extension == "yml");
    let mut found: Vec<PathBuf> = entries.map(|entry| entry.path()).filter(is_yaml).collect();
    found.sort();
    found
}

/// The module of a folder: `crate::client` of `src/client`.
fn module_of(folder: &Path) -> Option<String> {
    let parts: Vec<String> = folder.iter().map(|part| part.to_string_lossy().into_owned()).collect();
    let source = parts.iter().rposition(|part| part == "src")?;
    let below = parts[source + 1..].iter().map(|part| part.replace('-', "_"));
    Some(std::iter::once("crate".to_owned()).chain(below).collect::<Vec<_>>().join("::"))
}

/// The name of the crate that a folder belongs to.
fn crate_of(folder: &Path) -> Option<String> {
    let manifest = folder.ancestors().map(|folder| folder.join("Cargo.toml")).find(|path| path.is_file())?;
    let text = fs::read_to_string(manifest).ok()?;
    let name = text.lines().find_map(|line| line.strip_prefix("name = "))?;
    Some(name.trim().trim_matches('"').replace('-', "_"))
}
