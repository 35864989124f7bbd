//! Rust types from the schemas of CRDs.
//!
//! Each version of a kind becomes the structs of the spec and the status, with kube's derive macro, and the
//! structs and enums inside. The content of objects survives a round trip through the types: fields that a
//! schema leaves open are kept as JSON. Equal schemas in several places of a group, such as the affinity of
//! pods, become a single type, because a compiler then needs a fraction of the time and memory. Types of
//! several versions are in the module `shared`; each version re-exports the types.

mod model;
mod occurrences;
mod rust;
mod shape;
mod shared;

#[cfg(test)]
mod tests;

use std::collections::BTreeMap;
use std::fmt::Write as _;

use self::model::Model;
use self::shared::Shared;
use crate::SourceFile;
use crate::definition::{Definition, Version};
use crate::groups::group_modules;

/// The place of the types, and the derive macros of the types.
#[derive(Clone, Debug, Default)]
pub struct Options {
    /// The folder of the files, with slashes. Empty: the types are at the root.
    pub folder: String,
    /// The path of the module `windlass_apply`, to derive `ApplyConfiguration` as well.
    pub apply: Option<String>,
}

/// The kinds of a group and version.
type Kinds<'d> = Vec<(&'d Definition, &'d Version)>;

/// Returns whether the options can ask for an apply configuration of a kind: the root has a spec, and no other
/// fields than spec and status.
pub fn has_apply_configuration(version: &Version) -> bool {
    model::has_usual_fields(version.open_api_schema())
}

/// Returns the modules of the types of served groups, by the names of the groups.
pub fn modules(definitions: &[Definition]) -> BTreeMap<String, String> {
    let is_served = |definition: &&Definition| definition.spec.versions.iter().any(|version| version.served);
    group_modules(definitions.iter().filter(is_served).map(|definition| definition.spec.group.as_str()))
}

/// Generates the types of all served versions: a file for each group and version, a file for the types that
/// the versions of a group share, and a file that declares the modules.
pub fn generate(definitions: &[Definition], options: &Options) -> Vec<SourceFile> {
    let group_modules = modules(definitions);
    let mut groups: BTreeMap<String, BTreeMap<String, Kinds<'_>>> = BTreeMap::new();
    for definition in definitions {
        for version in definition.spec.versions.iter().filter(|version| version.served) {
            let versions = groups.entry(group_modules[&definition.spec.group].clone()).or_default();
            versions.entry(version.name.clone()).or_default().push((definition, version));
        }
    }
    let prefix = if options.folder.is_empty() { String::new() } else { format!("{}/", options.folder) };
    let mut modules: BTreeMap<&str, Vec<&str>> = BTreeMap::new();
    let mut files = Vec::new();
    for (group, versions) in &mut groups {
        for kinds in versions.values_mut() {
            kinds.sort_by(|a, b| a.0.spec.names.kind.cmp(&b.0.spec.names.kind));
        }
        let mut shared = Shared::of(versions.values().map(Vec::as_slice));
        for (version, kinds) in versions.iter() {
            let text = rust::render_version(&Model::of(kinds, &mut shared), options);
            files.push(SourceFile::new(format!("{prefix}{group}/{version}.rs"), text));
        }
        let declared = modules.entry(group).or_default();
        if !shared.types.is_empty() {
            let text = rust::render_shared(&shared.types, options);
            files.push(SourceFile::new(format!("{prefix}{group}/{}.rs", shared::MODULE), text));
            declared.push(shared::MODULE);
        }
        declared.extend(versions.keys().map(String::as_str));
    }
    files.push(SourceFile::new(format!("{prefix}mod.rs"), root(&modules)));
    files.sort_by(|a, b| a.path.cmp(&b.path));
    files
}

fn root(groups: &BTreeMap<&str, Vec<&str>>) -> String {
    let mut text = "//! Types of custom resources, by group and version.\n".to_owned();
    for (group, versions) in groups {
        let _ = write!(text, "\n/// The group `{group}`.\npub mod {group} {{\n");
        for version in versions {
            let _ = writeln!(text, "    pub mod {version};");
        }
        text += "}\n";
    }
    text
}
