//! What a project's operator declares, with what the files below `config/` choose.

use std::collections::BTreeMap;
use std::path::Path;

use windlass_codegen::Inventory;
use windlass_codegen::manifests::{GENERATED, Manifests, Options, documents, listed_components};
use windlass_scaffold::{Disk, Writes};

use super::{Part, Request, Target};
use crate::error::Result;
use crate::output::Output;
use crate::project::{Operator, Workspace};

/// The file in which a person chooses components.
const DEFAULT: &str = "config/default/kustomization.yaml";

/// The file with all objects.
const INSTALL: &str = "dist/install.yaml";

/// The manifests of a project.
pub(crate) struct ProjectManifests {
    pub(crate) inventory: Inventory,
    pub(crate) manifests: Manifests,
}

impl ProjectManifests {
    /// Builds the operator, asks it what it declares, and makes the manifests. `out` gets the progress.
    pub(crate) async fn load(
        workspace: &Workspace,
        request: &Request,
        image: Option<&str>,
        out: &mut Output,
    ) -> Result<Self> {
        let options = options(workspace, request, image)?;
        let operator = Operator::new(workspace.build(out).await?);
        let arguments = options.inventory_arguments();
        let words: Vec<&str> =
            ["manifests"].into_iter().chain(arguments.iter().map(String::as_str)).collect();
        let inventory = Inventory::parse(&operator.ask(&words).await?)?;
        let manifests = Manifests::new(&inventory, options)?;
        Ok(Self { inventory, manifests })
    }

    /// Returns the changes of files that a request asks for.
    pub(crate) fn writes(&self, workspace: &Workspace, request: &Request) -> Result<Writes> {
        let mut writes = Writes::new();
        for (part, target) in &request.parts {
            match target {
                Target::Project => writes.extend(self.project_writes(*part, &workspace.folder)?),
                Target::Folder(folder) => {
                    let folder = folder.to_string_lossy();
                    let files = self.artifacts(*part).into_iter();
                    let files = files.map(|(name, text)| (format!("{folder}/{name}"), text)).collect();
                    writes.generated(&workspace.folder, &folder, files)?;
                }
                Target::Stdout | Target::Nowhere => {}
            }
        }
        Ok(writes)
    }

    fn project_writes(&self, part: Part, disk: &dyn Disk) -> Result<Writes> {
        let mut writes = Writes::new();
        if part == Part::Install {
            let files = BTreeMap::from([(INSTALL.to_owned(), self.manifests.install())]);
            writes.generated(disk, part.folder(), files)?;
            return Ok(writes);
        }
        let folder = format!("{}/", part.folder());
        let mut files = self.manifests.files();
        files.retain(|path, _| path.starts_with(&folder));
        writes.generated(disk, part.folder(), files)?;
        Ok(writes)
    }

    /// Returns the texts that a request prints.
    pub(crate) fn printed(&self, request: &Request) -> String {
        let parts = request.parts.iter().filter(|(_, target)| **target == Target::Stdout);
        let texts: Vec<String> = parts.flat_map(|(part, _)| self.artifacts(*part).into_values()).collect();
        texts.join("---\n")
    }

    /// Returns the files of a part that controller-gen would write, by name.
    fn artifacts(&self, part: Part) -> BTreeMap<String, String> {
        if part == Part::Install {
            return BTreeMap::from([("install.yaml".to_owned(), self.manifests.install())]);
        }
        let wanted = |path: &str| match part {
            Part::Crd => path.strip_prefix("config/crd/bases/").map(ToOwned::to_owned),
            Part::Rbac => (path == "config/rbac/role.yaml").then(|| "role.yaml".to_owned()),
            Part::Webhook => (path == "config/webhook/manifests.yaml").then(|| "manifests.yaml".to_owned()),
            Part::All | Part::Install => None,
        };
        if part == Part::All {
            let parts = [Part::Crd, Part::Rbac, Part::Webhook];
            return parts.into_iter().flat_map(|part| self.artifacts(part)).collect();
        }
        self.manifests.files().into_iter().filter_map(|(path, text)| Some((wanted(&path)?, text))).collect()
    }
}

/// Returns the options that the project and the files below `config/` choose.
fn options(workspace: &Workspace, request: &Request, image: Option<&str>) -> Result<Options> {
    let disk = &workspace.folder;
    let mut options = Options::new(&workspace.project.project_name);
    options.namespaced = workspace.project.namespaced;
    options.max_description = request.max_description;
    if let Some(name) = &request.role_name {
        options.role_name.clone_from(name);
    }
    if let Some(image) = image {
        image.clone_into(&mut options.image);
    }
    if let Some(text) = disk.read(DEFAULT)? {
        let listed = listed_components(&text).map_err(|error| format!("{DEFAULT}: {error}"))?;
        options.components = listed.into_iter().collect();
        options.exactly_these_components = !is_generated(&text);
    }
    for path in disk.list("config")?.into_iter().filter(|path| is_yaml(path)) {
        let name = path.strip_prefix("config/samples/").filter(|name| *name != "kustomization.yaml");
        if let Some(name) = name {
            options.samples.push(name.to_owned());
            continue;
        }
        let text = disk.read(&path)?.unwrap_or_default();
        if !is_generated(&text) {
            let objects = documents(&text).map_err(|error| format!("{path}: {error}"))?;
            options.own_files.insert(path, objects);
        }
    }
    Ok(options)
}

fn is_yaml(path: &str) -> bool {
    Path::new(path).extension().is_some_and(|extension| extension == "yaml" || extension == "yml")
}

fn is_generated(text: &str) -> bool {
    text.lines().next().is_some_and(|line| line.contains(GENERATED))
}
