//! The declarations of a project's operator, with the choices in the files below `config/`.

use std::collections::BTreeMap;

use serde_json::Value;
use windlass_codegen::Inventory;
use windlass_codegen::manifests::{GENERATED, Manifests, Options, documents, listed_components};
use windlass_scaffold::{Disk, Writes};

use super::{Part, Request, Target};
use crate::error::Result;
use crate::output::Output;
use crate::project::{Operator, Workspace};

/// The file in which the user chooses components.
const DEFAULT: &str = "config/default/kustomization.yaml";

/// The file with all objects.
const INSTALL: &str = "dist/install.yaml";

/// The options of a command line beside the parts.
#[derive(Clone, Debug, Default)]
pub(crate) struct Choices {
    /// The image of the operator. Default: `controller:latest`.
    pub(crate) image: Option<String>,
    /// The namespace of the operator. Default: `<project>-system`.
    pub(crate) namespace: Option<String>,
}

/// The manifests of a project.
pub(crate) struct ProjectManifests {
    pub(crate) inventory: Inventory,
    pub(crate) manifests: Manifests,
    /// The options of the manifests, with the files that the person keeps by hand.
    pub(crate) options: Options,
}

impl ProjectManifests {
    /// Builds the operator, reads the operator's declarations, and makes the manifests. `out` gets the
    /// progress.
    pub(crate) async fn load(
        workspace: &Workspace,
        request: &Request,
        choices: &Choices,
        out: &mut Output,
    ) -> Result<Self> {
        let options = options(workspace, request, choices)?;
        let operator = Operator::new(workspace.build(out).await?);
        let arguments = options.inventory_arguments();
        let words: Vec<&str> =
            ["manifests"].into_iter().chain(arguments.iter().map(String::as_str)).collect();
        let inventory = Inventory::parse(&operator.ask(&words).await?)?;
        Self::of(inventory, options, &workspace.folder)
    }

    /// Makes the manifests. Files that the user keeps by hand replace generated files.
    fn of(inventory: Inventory, mut options: Options, disk: &dyn Disk) -> Result<Self> {
        let generated = Manifests::new(&inventory, options.clone())?.files();
        options.own_files = own_files(disk, generated.keys())?;
        let usual = format!("{}-system", options.project);
        for object in options.own_files.values_mut().flatten() {
            move_to(&options.namespace, &usual, None, object);
        }
        let manifests = Manifests::new(&inventory, options.clone())?;
        Ok(Self { inventory, manifests, options })
    }

    /// Returns the changes of files that a request asks for.
    pub(crate) fn writes(&self, workspace: &Workspace, request: &Request) -> Result<Writes> {
        let mut writes = Writes::new();
        for (part, target) in &request.parts {
            match target {
                Target::Project => writes.extend(self.project_writes(*part, &workspace.folder)?),
                Target::Folder(folder) => {
                    let folder = folder.to_string_lossy();
                    let files = self.artifacts(*part);
                    // Other parts and other projects may write to the folder, so no file is removed.
                    for (name, text) in files {
                        writes.overwrite_generated(&workspace.folder, format!("{folder}/{name}"), text)?;
                    }
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
fn options(workspace: &Workspace, request: &Request, choices: &Choices) -> Result<Options> {
    let disk = &workspace.folder;
    let mut options = Options::new(&workspace.project.project_name);
    options.namespaced = workspace.project.namespaced;
    options.max_description = request.max_description;
    if let Some(name) = &request.role_name {
        options.role_name.clone_from(name);
    }
    if let Some(image) = &choices.image {
        options.image.clone_from(image);
    }
    if let Some(namespace) = &choices.namespace {
        options.namespace.clone_from(namespace);
    }
    if let Some(text) = disk.read(DEFAULT)? {
        let listed = listed_components(&text).map_err(|error| format!("{DEFAULT}: {error}"))?;
        options.components = listed.into_iter().collect();
        options.exactly_these_components = !is_generated(&text);
    }
    Ok(options)
}

/// Returns the objects of files that would be generated, but that the user keeps by hand.
fn own_files<'a>(
    disk: &dyn Disk,
    generated: impl Iterator<Item = &'a String>,
) -> Result<BTreeMap<String, Vec<Value>>> {
    let mut own = BTreeMap::new();
    for path in generated {
        if let Some(text) = disk.read(path)?.filter(|text| !is_generated(text)) {
            own.insert(path.clone(), documents(&text).map_err(|error| format!("{path}: {error}"))?);
        }
    }
    Ok(own)
}

/// Makes the generated files below a folder exactly these files. Files that the user keeps by hand stay.
pub(crate) fn generated_files(
    disk: &dyn Disk,
    folder: &str,
    mut files: BTreeMap<String, String>,
) -> Result<Writes> {
    for path in files.keys().cloned().collect::<Vec<_>>() {
        if disk.read(&path)?.is_some_and(|text| !is_generated(&text)) {
            files.remove(&path);
        }
    }
    let mut writes = Writes::new();
    writes.generated(disk, folder, files)?;
    Ok(writes)
}

/// Replaces the usual namespace of the project in an object that the person keeps by hand.
fn move_to(namespace: &str, usual: &str, key: Option<&str>, value: &mut Value) {
    if let Value::String(text) = value {
        if key == Some("namespace") && text == usual {
            namespace.clone_into(text);
        }
        return;
    }
    if value["kind"] == "Namespace" && value["metadata"]["name"] == usual {
        value["metadata"]["name"] = namespace.into();
    }
    match value {
        Value::Array(items) => items.iter_mut().for_each(|item| move_to(namespace, usual, None, item)),
        Value::Object(members) => {
            members.iter_mut().for_each(|(key, member)| move_to(namespace, usual, Some(key), member));
        }
        _ => {}
    }
}

fn is_generated(text: &str) -> bool {
    text.lines().next().is_some_and(|line| line.contains(GENERATED))
}

#[cfg(test)]
mod tests {
    use std::fs;

    use k8s_openapi::api::rbac::v1::PolicyRule;
    use windlass_codegen::{MetricsDeclaration, Rights};
    use windlass_scaffold::{Folder, Project};

    use super::super::parse;
    use super::*;

    /// A project on disk, and the declarations of an operator.
    struct Example {
        workspace: Workspace,
        inventory: Inventory,
        _folder: tempfile::TempDir,
    }

    impl Example {
        fn new() -> Self {
            let folder = tempfile::tempdir().expect("a folder");
            let project = Project::new("web", "example.com", "0.1.0");
            let root = folder.path().to_owned();
            let workspace = Workspace { folder: Folder::new(&root), root, project };
            let rule = PolicyRule {
                api_groups: Some(vec![String::new()]),
                resources: Some(vec!["pods".to_owned()]),
                verbs: vec!["list".to_owned()],
                ..PolicyRule::default()
            };
            let rights = Rights { cluster: vec![rule], ..Rights::default() };
            let metrics =
                Some(MetricsDeclaration { port: 8443, secure: true, ..MetricsDeclaration::default() });
            let inventory = Inventory { format: Inventory::FORMAT, rights, metrics, ..Inventory::default() };
            Self { workspace, inventory, _folder: folder }
        }

        fn load(&self, request: &Request) -> ProjectManifests {
            let options = options(&self.workspace, request, &Choices::default()).expect("options");
            let inventory = self.inventory.clone();
            ProjectManifests::of(inventory, options, &self.workspace.folder).expect("manifests")
        }

        /// Runs `windlass manifests` with these words, and returns the changes.
        fn write(&self, words: &[&str]) -> Vec<String> {
            let words: Vec<String> = words.iter().map(|word| (*word).to_owned()).collect();
            let request = parse(&words).expect("a request");
            let writes = self.load(&request).writes(&self.workspace, &request).expect("writes");
            writes.apply(&self.workspace.folder).expect("written");
            writes.actions().map(|(action, path)| format!("{} {path}", action.done())).collect()
        }

        fn edit(&self, path: &str, edit: impl FnOnce(String) -> String) {
            let path = self.workspace.root.join(path);
            let text = fs::read_to_string(&path).unwrap_or_default();
            fs::create_dir_all(path.parent().expect("a folder")).expect("made");
            fs::write(path, edit(text)).expect("written");
        }
    }

    #[test]
    fn generated_files_are_rewritten_and_those_that_nothing_needs_removed() {
        let example = Example::new();
        assert!(example.write(&[]).contains(&"created config/rbac/role.yaml".to_owned()));
        assert_eq!(example.write(&[]), Vec::<String>::new());
        example.edit("config/rbac/role.yaml", |text| text + "# a change\n");
        example.edit("config/rbac/old.yaml", |_| format!("# {GENERATED}\n"));
        example.edit("config/rbac/mine.yaml", |_| "kind: Role\n".to_owned());
        assert_eq!(example.write(&["crd"]), Vec::<String>::new(), "another part");
        assert_eq!(
            example.write(&["rbac"]),
            ["removed config/rbac/old.yaml", "changed config/rbac/role.yaml"]
        );
    }

    #[test]
    fn a_file_without_the_first_line_is_the_users() {
        let example = Example::new();
        example.write(&[]);
        example.edit("config/rbac/role.yaml", |text| {
            text.lines().skip(1).map(|line| line.replace("list", "get") + "\n").collect()
        });
        // A file outside of the manifests need not be YAML.
        example.edit("config/other/template.yaml", |_| "{{ .Values }}: {{".to_owned());
        assert_eq!(example.write(&["all"]), Vec::<String>::new());
        let found = example.load(&Request::default());
        let missing = found.manifests.missing_rights(&found.inventory);
        assert_eq!(missing.iter().map(ToString::to_string).collect::<Vec<_>>(), ["list pods"]);
        assert_eq!(example.write(&["install"]), ["created dist/install.yaml"]);
        let install = fs::read_to_string(example.workspace.root.join(INSTALL)).expect("a file");
        assert!(install.contains("- get\n") && !install.contains("- list\n"), "{install}");
    }

    #[test]
    fn the_list_of_components_is_the_users_choice() {
        let example = Example::new();
        example.write(&[]);
        example.edit(DEFAULT, |text| text.replace("- ../metrics", "- ../prometheus"));
        assert_eq!(example.write(&[]), Vec::<String>::new(), "as generated");
        example.write(&["install"]);
        let install = fs::read_to_string(example.workspace.root.join(INSTALL)).expect("a file");
        assert!(
            install.contains("kind: ServiceMonitor") && !install.contains("kind: Service\n"),
            "{install}"
        );
    }

    #[test]
    fn no_file_of_a_folder_that_the_user_names_is_removed() {
        let example = Example::new();
        example.edit("out/foreign.yaml", |_| format!("# {GENERATED}\n"));
        example.edit("config/crd/kustomization.yaml", |_| format!("# {GENERATED}\n"));
        let written = ["created out/role.yaml"];
        assert_eq!(example.write(&["crd", "rbac", "webhook", "output:dir=out"]), written);
        assert_eq!(example.write(&["crd", "rbac", "webhook", "output:dir=out"]), Vec::<String>::new());
        assert_eq!(example.write(&["crd", "output:crd:dir=config/crd"]), Vec::<String>::new());
    }

    #[test]
    fn parts_go_to_other_folders_and_to_stdout() {
        let example = Example::new();
        assert_eq!(example.write(&["rbac", "output:dir=out"]), ["created out/role.yaml"]);
        let words: Vec<String> = ["rbac:roleName=boss", "output:stdout"].map(ToOwned::to_owned).to_vec();
        let request = parse(&words).expect("a request");
        let printed = example.load(&request).printed(&request);
        assert!(printed.contains("name: web-boss"), "{printed}");
        example.edit("config/samples/a.yaml", |_| "kind: A\n".to_owned());
        let written = example.write(&[]);
        assert!(
            written.iter().all(|line| !line.contains("config/samples")),
            "a kustomization.yaml there would stop kubectl"
        );
    }
}
