//! The place of generated code, and the paths in generated code.

use std::fs;
use std::path::{Path, PathBuf};

use windlass_codegen::definition::Definition;
use windlass_scaffold::{Disk, Folder, Plan, Writes};

use super::crds;
use crate::error::Result;
use crate::manifests::{Choices, ProjectManifests, Request};
use crate::output::Output;
use crate::project::Workspace;

/// Where the CRDs of a project are.
const BASES: &str = "config/crd/bases";

/// Where the clients of a project go.
const CLIENT: &str = "api/src/client";

/// The feature of the api crate that has the clients.
const FEATURE: &str = "client";

/// The place of generated code, and the paths in generated code.
pub(crate) struct Place {
    /// The folder that paths are relative to.
    pub(crate) folder: Folder,
    /// The folder of the generated code, relative to `folder`.
    pub(crate) output: String,
    /// The files and folders with CRDs. `None`: the project's operator declares the CRDs.
    crds: Option<Vec<PathBuf>>,
    /// True if the types are generated too.
    pub(super) makes_types: bool,
    /// The module of the generated code, for code in the same crate.
    pub(super) module: String,
    /// The module of the generated code, for code in other crates.
    pub(super) public: String,
    types: String,
    /// The project, for code in the project's api crate.
    workspace: Option<Workspace>,
}

impl Place {
    /// Finds the place from the arguments, or from the project of the current folder.
    pub(crate) fn find(
        crds: &[PathBuf],
        output: Option<PathBuf>,
        types: Option<String>,
        module: Option<String>,
    ) -> Result<Self> {
        if let Some(output) = output {
            return Self::of_folder(crds, &output, types, module);
        }
        let current = std::env::current_dir()?;
        let workspace = match Workspace::find(&current) {
            Err(_) if !crds.is_empty() => {
                return Err(
                    "outside of a project, --crd needs --output: the folder that the code goes into".into()
                );
            }
            found => found?,
        };
        let mut place = Self::of_project(workspace);
        if !crds.is_empty() {
            place.crds = Some(crds.iter().map(|path| current.join(path)).collect());
        }
        place.types = types.unwrap_or(place.types);
        place.module = module.unwrap_or(place.module);
        Ok(place)
    }

    /// Returns the module `client` of a project's api crate, for the kinds that the operator declares.
    pub(super) fn of_project(workspace: Workspace) -> Self {
        let project = &workspace.project;
        let types = if project.multigroup { "crate::{group}::{version}" } else { "crate::{version}" };
        let krate = project.crate_name();
        Self {
            crds: None,
            folder: Folder::new(&workspace.root),
            output: CLIENT.to_owned(),
            makes_types: false,
            module: "crate::client".to_owned(),
            public: format!("{krate}_api::client"),
            types: types.to_owned(),
            workspace: Some(workspace),
        }
    }

    /// Returns a place in a folder of any crate. With CRDs and without a module of types, the types are
    /// generated.
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
        let crds = if crds.is_empty() { vec![root.join(BASES)] } else { crds.to_vec() };
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
            crds: Some(crds),
            makes_types: types.is_none(),
            types: types.unwrap_or_else(|| format!("{module}::types::{{group}}::{{version}}")),
            workspace: None,
            module,
            public,
        })
    }

    /// Returns the CRDs of the kinds. Builds the operator of a project to get the declarations; `out` gets
    /// the progress.
    pub(crate) async fn definitions(&self, out: &mut Output) -> Result<Vec<Definition>> {
        let workspace = match (&self.crds, &self.workspace) {
            (Some(paths), _) => return crds::read(paths),
            (None, Some(workspace)) => workspace,
            (None, None) => return Ok(Vec::new()),
        };
        let found = ProjectManifests::load(workspace, &Request::default(), &Choices::default(), out).await;
        let found = found.map_err(|error| match self.folder.list(CLIENT) {
            Ok(files) if !files.is_empty() => format!(
                "{error}. If it is the generated code that does not compile, make it from the CRDs of before: \
                 windlass generate --crd {BASES}"
            )
            .into(),
            _ => error,
        })?;
        crds::declared(&found.manifests)
    }

    /// Returns the groups and versions that the project's clients were made for. `None` outside of a project.
    pub(super) fn made_for(&self) -> Option<&[String]> {
        self.workspace.as_ref().map(|workspace| workspace.project.generate_for.as_slice())
    }

    /// Declares a missing module in the project's api crate, behind the feature `client` of the crate, and
    /// remembers the groups.
    pub(super) fn declare(&self, groups: Vec<String>, remarks: &mut Vec<String>) -> Result<Writes> {
        let Some(workspace) = &self.workspace else { return Ok(Writes::new()) };
        let project = &workspace.project;
        if !project.generate.is_empty() && project.generate_for == groups {
            return Ok(Writes::new());
        }
        let mut after = project.clone();
        after.generate_for = groups;
        if project.generate.is_empty() {
            after.generate.push(FEATURE.to_owned());
            let package = project.api_package();
            remarks.push(format!(
                "the code is behind the feature `{FEATURE}` of {package}: enable it where it is used"
            ));
        }
        Ok(Plan::create(Some(project), &after).run(&self.folder)?.writes)
    }

    /// Returns the advice for a type without an apply configuration.
    pub(super) fn how_to_derive(&self) -> &'static str {
        if self.workspace.is_some() {
            "write `#[cfg_attr(feature = \"client\", derive(windlass_client::apply::ApplyConfiguration), apply(crate = \"windlass_client::apply\"))]` \
             above #[serde(..)] at its spec, at its status and at the structs in them"
        } else if self.makes_types {
            "the kind has other fields than spec and status; send a patch instead"
        } else {
            "derive ApplyConfiguration for its spec and for the structs in it"
        }
    }

    /// Returns the path of a generated file below the folder.
    pub(super) fn path(&self, file: &str) -> String {
        format!("{}/{file}", self.output)
    }

    /// Returns the module that has the types of a group and version, from the module of the group.
    pub(super) fn types_module(&self, group: &str, version: &str) -> String {
        self.types.replace("{group}", group).replace("{version}", version)
    }

    /// Returns the folder with the sources of the crate.
    pub(super) fn source_root(&self) -> PathBuf {
        let output = self.folder.path(&self.output);
        let is_source = |folder: &&Path| folder.file_name().is_some_and(|name| name == "src");
        output.ancestors().find(is_source).map_or(output.clone(), Path::to_owned)
    }

    /// Returns the reason for an empty set of kinds.
    pub(super) fn no_kinds(&self) -> String {
        match &self.crds {
            None => "the operator declares no CRD of the wanted groups and versions; create a kind with `windlass create api`".to_owned(),
            Some(paths) if paths.iter().all(|path| path.is_dir() && crds::yaml_files(path).is_empty()) => {
                format!("there are no CRDs in {BASES}: name files with --crd")
            }
            Some(_) => "the files have no CRD of the wanted groups and versions".to_owned(),
        }
    }
}

fn parent(path: &Path) -> PathBuf {
    path.parent().unwrap_or(path).to_owned()
}

/// Returns the module of a folder: `crate::client` of `src/client`.
fn module_of(folder: &Path) -> Option<String> {
    let parts: Vec<String> = folder.iter().map(|part| part.to_string_lossy().into_owned()).collect();
    let source = parts.iter().rposition(|part| part == "src")?;
    let below = parts[source + 1..].iter().map(|part| part.replace('-', "_"));
    Some(std::iter::once("crate".to_owned()).chain(below).collect::<Vec<_>>().join("::"))
}

/// Returns the name of the crate that a folder belongs to.
fn crate_of(folder: &Path) -> Option<String> {
    let manifest = folder.ancestors().map(|folder| folder.join("Cargo.toml")).find(|path| path.is_file())?;
    let text = fs::read_to_string(manifest).ok()?;
    let name = text.lines().find_map(|line| line.strip_prefix("name = "))?;
    Some(name.trim().trim_matches('"').replace('-', "_"))
}
