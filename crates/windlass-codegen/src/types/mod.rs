//! Rust types from the schemas of CRDs.
//!
//! Each version of a kind becomes the structs of its spec and status, with kube's derive macro, and the structs and enums in them. What objects hold
//! survives a round trip through the types: fields that a schema leaves open are kept as JSON. What has the same schema in several places of a group
//! and version, such as the affinity of pods, is one type: a compiler that sees it once needs a fraction of the time and memory.

mod model;
mod occurrences;
mod rust;
mod shape;

#[cfg(test)]
mod tests;

use std::collections::BTreeMap;
use std::fmt::Write as _;

use self::model::Model;
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

/// Generates the types of all served versions: a file for each group and version, and one that declares them.
pub fn generate(definitions: &[Definition], options: &Options) -> Vec<SourceFile> {
    let mut versions: BTreeMap<(String, String), Vec<(&Definition, &Version)>> = BTreeMap::new();
    for definition in definitions {
        for version in definition.spec.versions.iter().filter(|version| version.served) {
            let key = (group_module(&definition.spec.group), version.name.clone());
            versions.entry(key).or_default().push((definition, version));
        }
    }
    let prefix = if options.folder.is_empty() { String::new() } else { format!("{}/", options.folder) };
    let mut groups: BTreeMap<&str, Vec<&str>> = BTreeMap::new();
    let mut files = Vec::new();
    for ((group, version), mut kinds) in versions.iter().map(|(key, kinds)| (key, kinds.clone())) {
        kinds.sort_by(|a, b| a.0.spec.names.kind.cmp(&b.0.spec.names.kind));
        groups.entry(group).or_default().push(version);
        let model = Model::of(&kinds);
        files.push(SourceFile::new(format!("{prefix}{group}/{version}.rs"), rust::render(&model, options)));
    }
    files.push(SourceFile::new(format!("{prefix}mod.rs"), root(&groups)));
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
