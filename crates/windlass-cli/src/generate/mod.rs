//! The files that `windlass generate` writes.

mod arguments;
mod crds;
mod place;
mod sources;

use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;

use windlass_codegen::client::{Api, Generator, Target, generate, group_module};
use windlass_codegen::definition::Definition;
use windlass_codegen::manifests::Manifests;
use windlass_codegen::{SourceFile, types};
use windlass_scaffold::{Disk, Writes};

pub(crate) use self::arguments::Wanted;
pub(crate) use self::place::Place;
use crate::error::Result;
use crate::project::Workspace;

/// The files to write, and the remarks for the user.
pub(crate) struct Made {
    pub(crate) writes: Writes,
    pub(crate) remarks: Vec<String>,
}

/// Generates the wanted pieces and compares the pieces with the folder.
///
/// If the project's existing clients are for other groups or versions, generates all existing pieces again.
pub(crate) fn plan(wanted: &Wanted, place: &Place, definitions: Vec<Definition>) -> Result<Made> {
    let definitions = wanted.filter(definitions);
    if definitions.is_empty() {
        return Err(place.no_kinds().into());
    }
    let mut remarks = Vec::new();
    let with_types = wanted.types.unwrap_or(place.makes_types);
    if with_types && !place.makes_types {
        return Err(
            "types are generated from CRDs of others: give them with --crd, and a folder with --output"
                .into(),
        );
    }
    let mut files = if with_types { types(&definitions) } else { Vec::new() };
    let api = api(&definitions, place, wanted, &mut remarks)?;
    let present = present(place)?;
    let existing = pieces(&present);
    let has_types = with_types || has(&present, "types");
    let groups = wanted.groups();
    let mut now = wanted.pieces.clone();
    if place.made_for().is_some_and(|before| before != groups) {
        now.extend(&existing);
    }
    files.extend(clients(&api, &now, place, &existing, has_types));

    let mut texts: BTreeMap<String, String> = BTreeMap::new();
    // Pieces of an earlier run that this run does not generate stay.
    let made: BTreeSet<String> = files.iter().map(|file| top(&file.path)).collect();
    for path in &present {
        if !made.contains(&top(path)) {
            let full = place.path(path);
            if let Some(text) = place.folder.read(&full)? {
                texts.insert(full, text);
            }
        }
    }
    texts.extend(files.into_iter().map(|file| (place.path(&file.path), file.text)));
    let mut writes = place.declare(groups, &mut remarks)?;
    writes.generated(&place.folder, &place.output, texts)?;
    Ok(Made { writes, remarks })
}

/// Compares the clients of a project with the operator's declarations, and returns the writes that would
/// update the clients. Returns no writes if the project has no generated code.
pub(crate) fn drift(root: &Path, manifests: &Manifests) -> Result<Writes> {
    let place = Place::of_project(Workspace::find(root)?);
    let pieces = pieces(&present(&place)?);
    if pieces.is_empty() {
        return Ok(Writes::new());
    }
    let wanted = Wanted::pieces(pieces, place.made_for().unwrap_or_default());
    Ok(plan(&wanted, &place, crds::declared(manifests)?)?.writes)
}

/// Returns the kinds, with the paths of the Rust types.
fn api(definitions: &[Definition], place: &Place, wanted: &Wanted, remarks: &mut Vec<String>) -> Result<Api> {
    let sources = sources::Sources::read(&place.source_root());
    let (mut api, modules) = (Api::default(), types::modules(definitions));
    for definition in definitions {
        let kind = &definition.spec.names.kind;
        api.add(definition, |version| {
            let group = &definition.spec.group;
            let module = if place.makes_types { modules[group].clone() } else { group_module(group) };
            let module = place.types_module(&module, &version.name);
            let derives = if place.makes_types {
                types::has_apply_configuration(version)
            } else {
                sources.derives_apply_configuration(kind, &version.name)
            };
            (format!("{module}::{kind}"), derives)
        })?;
    }
    wanted.limit(&mut api);
    for version in &api.versions {
        let without = version.kinds.iter().filter(|kind| !kind.has_apply_configuration);
        for kind in without.filter(|_| wanted.pieces.contains(&Generator::ApplyConfiguration)) {
            remarks.push(format!(
                "{} {} has no apply configuration: {}",
                version.version,
                kind.name,
                place.how_to_derive()
            ));
        }
    }
    Ok(api)
}

fn clients(
    api: &Api,
    wanted: &BTreeSet<Generator>,
    place: &Place,
    existing: &BTreeSet<Generator>,
    has_types: bool,
) -> Vec<SourceFile> {
    let target = Target {
        module: place.module.clone(),
        support: "windlass_client".to_owned(),
        public: place.public.clone(),
        note: None,
    };
    let mut files = generate(api, &target, wanted, existing);
    if has_types {
        for root in files.iter_mut().filter(|file| file.path == "mod.rs") {
            root.text += "/// The types of the kinds.\n#[rustfmt::skip]\npub mod types;\n";
        }
    }
    files
}

/// Returns the types of CRDs, a file for each group and version.
fn types(definitions: &[Definition]) -> Vec<SourceFile> {
    let options =
        types::Options { folder: "types".to_owned(), apply: Some("windlass_client::apply".to_owned()) };
    types::generate(definitions, &options)
}

/// Returns the existing generated files of the output folder, relative to the folder.
fn present(place: &Place) -> Result<Vec<String>> {
    let prefix = format!("{}/", place.output);
    let files = place.folder.list(&place.output)?;
    Ok(files.iter().filter_map(|path| path.strip_prefix(&prefix)).map(str::to_owned).collect())
}

/// Returns the pieces that some files belong to.
fn pieces(files: &[String]) -> BTreeSet<Generator> {
    Generator::ALL.into_iter().filter(|piece| has(files, piece.module())).collect()
}

/// Returns whether some file is in a module.
fn has(files: &[String], module: &str) -> bool {
    files.iter().any(|path| top(path) == module)
}

/// Returns the module of a file: `informers` of `informers/mod.rs`, and `register` of `register.rs`.
fn top(path: &str) -> String {
    let first = path.split('/').next().unwrap_or_default();
    first.trim_end_matches(".rs").to_owned()
}

#[cfg(test)]
mod tests {
    use std::fs;

    use k8s_openapi::apiextensions_apiserver::pkg::apis::apiextensions::v1::CustomResourceDefinition;
    use serde_json::json;
    use windlass_codegen::Inventory;
    use windlass_codegen::manifests::Options;
    use windlass_scaffold::{Folder, Plan, Project};

    use super::*;

    /// Returns the manifests of an operator with a kind.
    fn declared(kind: &str) -> Manifests {
        manifests(vec![crd("foo", kind)])
    }

    fn manifests(crds: Vec<CustomResourceDefinition>) -> Manifests {
        let inventory = Inventory { format: Inventory::FORMAT, crds, ..Inventory::default() };
        Manifests::new(&inventory, Options::new("web")).expect("manifests")
    }

    fn crd(group: &str, kind: &str) -> CustomResourceDefinition {
        let schema = json!({ "type": "object", "properties": { "spec": { "type": "object" } } });
        let crd = json!({
            "apiVersion": "apiextensions.k8s.io/v1", "kind": "CustomResourceDefinition",
            "metadata": { "name": format!("{}s.{group}.abc.com", kind.to_lowercase()) },
            "spec": { "group": format!("{group}.abc.com"), "scope": "Namespaced",
                "names": { "kind": kind, "plural": format!("{}s", kind.to_lowercase()), "singular": kind.to_lowercase() },
                "versions": [{ "name": "v1", "served": true, "storage": true, "schema": { "openAPIV3Schema": schema } }] },
        });
        serde_json::from_value(crd).expect("a CRD")
    }

    fn actions(writes: &Writes) -> Vec<String> {
        writes.actions().map(|(action, path)| format!("{} {path}", action.done())).collect()
    }

    #[test]
    fn the_clients_of_a_project_are_stable_and_their_drift_is_seen() {
        let folder = tempfile::tempdir().expect("a folder");
        let (root, disk) = (folder.path(), Folder::new(folder.path()));
        let project = Project::new("web", "abc.com", "0.1.0");
        let made = Plan::create(None, &project).run(&disk).expect("a project");
        made.writes.apply(&disk).expect("written");
        let bar = declared("Bar");
        assert_eq!(
            actions(&drift(root, &bar).expect("checked")),
            Vec::<String>::new(),
            "nothing was generated"
        );

        let generate = |words: &[&str]| generate(root, words, &bar);
        let written = generate(&["client,listers"]);
        assert!(written.contains(&"created api/src/client/clientset/foo/v1.rs".to_owned()), "{written:?}");
        assert!(written.contains(&"changed api/src/lib.rs".to_owned()), "{written:?}");
        assert_eq!(generate(&["client,listers"]), Vec::<String>::new());
        assert_eq!(
            actions(&drift(root, &bar).expect("checked")),
            Vec::<String>::new(),
            "informers are not wanted"
        );
        assert!(generate(&[]).contains(&"created api/src/client/informers/foo/v1.rs".to_owned()));

        let listers = root.join("api/src/client/listers/foo/v1.rs");
        let text = fs::read_to_string(&listers).expect("a file");
        fs::write(&listers, text.replace("Bar", "Baz")).expect("written");
        let found = drift(root, &bar).expect("checked");
        assert_eq!(actions(&found), ["changed api/src/client/listers/foo/v1.rs"]);
        let renamed = actions(&drift(root, &declared("Zoo")).expect("checked"));
        assert!(renamed.contains(&"changed api/src/client/clientset/foo/v1.rs".to_owned()), "{renamed:?}");
    }

    /// Runs `windlass generate` with these words in a project, and returns the changes.
    fn generate(root: &Path, words: &[&str], declared: &Manifests) -> Vec<String> {
        let words: Vec<String> = words.iter().map(|word| (*word).to_owned()).collect();
        let place = Place::of_project(Workspace::find(root).expect("a project"));
        let definitions = crds::declared(declared).expect("definitions");
        let wanted = Wanted::parse(&words).expect("understood");
        let writes = plan(&wanted, &place, definitions).expect("generated").writes;
        writes.apply(&Folder::new(root)).expect("written");
        actions(&writes)
    }

    #[test]
    fn clients_of_some_groups_have_no_drift_because_of_the_others() {
        let folder = tempfile::tempdir().expect("a folder");
        let (root, disk) = (folder.path(), Folder::new(folder.path()));
        let project = Project::new("web", "abc.com", "0.1.0");
        Plan::create(None, &project).run(&disk).expect("a project").writes.apply(&disk).expect("written");
        let both = manifests(vec![crd("foo", "Bar"), crd("web", "Site")]);
        let none: [&str; 0] = [];

        generate(root, &["client,listers", "foo:v1"], &both);
        assert_eq!(actions(&drift(root, &both).expect("checked")), none, "clients of web are not wanted");

        // Other groups are for all pieces that there are.
        let written = generate(root, &["listers"], &both);
        assert!(written.contains(&"created api/src/client/clientset/web/v1.rs".to_owned()), "{written:?}");
        assert_eq!(actions(&drift(root, &both).expect("checked")), none);
        let written = generate(root, &["listers", "web:v1"], &both);
        assert!(written.contains(&"removed api/src/client/clientset/foo/v1.rs".to_owned()), "{written:?}");
        assert_eq!(actions(&drift(root, &both).expect("checked")), none);
    }
}
