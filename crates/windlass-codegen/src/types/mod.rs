//! Rust types from the schemas of CRDs.
//!
//! Each version of a kind becomes the structs of its spec and status, with kube's derive macro, and the structs and enums in them. What objects hold
//! survives a round trip through the types: fields that a schema leaves open are kept as JSON. What has the same schema in several places of a group,
//! such as the affinity of pods, is one type: a compiler that sees it once needs a fraction of the time and memory. Those of several versions are in
//! the module `shared`, from which each version re-exports them.

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
use crate::client::group_module;
use crate::definition::{Definition, Version};

/// Where the types go, and what they derive.
#[derive(Clone, Debug, Default)]
pub struct Options {
    /// The folder of the files, with slashes. Empty: the types are at the root.
    pub folder: String,
    /// The path of the module `windlass_apply`, to derive `ApplyConfiguration` as well.
    pub apply: Option<String>,
}

/// The kinds of a group and version.
type Kinds<'d> = Vec<(&'d Definition, &'d Version)>;

/// Generates the types of all served versions: a file for each group and version, one for what the versions of a group share, and one that declares
/// them.
pub fn generate(definitions: &[Definition], options: &Options) -> Vec<SourceFile> {
    let mut groups: BTreeMap<String, BTreeMap<String, Kinds<'_>>> = BTreeMap::new();
    for definition in definitions {
        for version in definition.spec.versions.iter().filter(|version| version.served) {
            let versions = groups.entry(group_module(&definition.spec.group)).or_default();
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
