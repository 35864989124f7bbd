//! The arguments of `windlass generate`, in Windlass's words or in code-generator's words.

use std::collections::{BTreeMap, BTreeSet};

use windlass_codegen::client::{Api, Generator};
use windlass_codegen::definition::Definition;

use crate::error::Result;

/// The pieces, groups and versions that are asked for.
#[derive(Debug, Default)]
pub(crate) struct Wanted {
    pub(crate) pieces: BTreeSet<Generator>,
    /// True to generate types; without a value, the place decides.
    pub(crate) types: Option<bool>,
    /// Arguments without an effect.
    pub(crate) remarks: Vec<String>,
    /// The versions of each group, by the first label of the group. Empty: all.
    groups: BTreeMap<String, Vec<String>>,
}

impl Wanted {
    /// Parses the arguments: pieces, and the further arguments of generate-groups.sh (an output package, a
    /// package with types, and groups with versions).
    pub(crate) fn parse(arguments: &[String]) -> Result<Self> {
        let mut wanted = Self::default();
        let (pieces, rest) = match arguments.split_first() {
            Some((pieces, rest)) => (pieces.as_str(), rest),
            None => ("all", arguments),
        };
        for piece in pieces.split([',', ' ']).filter(|piece| !piece.is_empty()) {
            wanted.add(piece)?;
        }
        if wanted.types.is_none() && pieces != "all" {
            wanted.types = Some(false);
        }
        for argument in rest {
            if !wanted.add_group(argument) {
                wanted.remarks.push(format!(
                    "the package {argument:?} has no meaning here: code goes to --output, and types are found by their crate"
                ));
            }
        }
        Ok(wanted)
    }

    /// Asks for pieces of the clients, for the groups and versions that `groups` names.
    pub(super) fn pieces(pieces: BTreeSet<Generator>, groups: &[String]) -> Self {
        let mut wanted = Self { pieces, types: Some(false), ..Self::default() };
        for group in groups {
            wanted.add_group(group);
        }
        wanted
    }

    /// Adds a group with versions, written as `foo:v1,v2`. Returns `false` for any other text.
    fn add_group(&mut self, text: &str) -> bool {
        let Some((group, versions)) = text.split_once(':') else { return false };
        let versions = versions.split(',').map(str::to_owned);
        self.groups.entry(group.to_owned()).or_default().extend(versions);
        true
    }

    /// Returns the groups and versions that were named, written as `foo:v1,v2`. Empty: all.
    pub(super) fn groups(&self) -> Vec<String> {
        self.groups.iter().map(|(group, versions)| format!("{group}:{}", versions.join(","))).collect()
    }

    fn add(&mut self, piece: &str) -> Result<()> {
        match piece {
            "all" => self.pieces.extend(Generator::ALL),
            "client" | "clientset" => self.pieces.extend([Generator::Clientset]),
            "informer" | "informers" => self.pieces.extend([Generator::Informers]),
            "lister" | "listers" => self.pieces.extend([Generator::Listers]),
            "applyconfiguration" | "applyconfigurations" => {
                self.pieces.extend([Generator::ApplyConfiguration]);
            }
            "register" => self.pieces.extend([Generator::Register]),
            "types" => self.types = Some(true),
            "deepcopy" => {
                self.remarks.push("deepcopy: nothing to generate, every type derives Clone".to_owned());
            }
            "defaulter" | "conversion" | "openapi" | "protobuf" => {
                self.remarks.push(format!(
                    "{piece}: nothing to generate: types derive the trait, or implement the trait by hand"
                ));
            }
            other => {
                return Err(format!(
                    "{other:?} is no piece; there are all, client, informers, listers, applyconfiguration, register and types"
                )
                .into());
            }
        }
        Ok(())
    }

    /// Keeps the definitions of the groups that were named.
    pub(crate) fn filter(&self, mut definitions: Vec<Definition>) -> Vec<Definition> {
        definitions.retain(|definition| {
            self.groups.is_empty() || self.versions_of(&definition.spec.group).is_some()
        });
        definitions
    }

    /// Keeps the versions that were named.
    pub(crate) fn limit(&self, api: &mut Api) {
        if !self.groups.is_empty() {
            api.versions.retain(|version| {
                self.versions_of(&version.group).is_some_and(|versions| versions.contains(&version.version))
            });
        }
    }

    /// Returns the versions of a group that was named in full or by the first label.
    fn versions_of(&self, group: &str) -> Option<&Vec<String>> {
        let label = group.split('.').next().unwrap_or_default();
        self.groups.get(group).or_else(|| self.groups.get(label))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn parse(line: &str) -> Wanted {
        let arguments: Vec<String> = line.split(' ').map(str::to_owned).collect();
        Wanted::parse(&arguments).expect("understood")
    }

    #[test]
    fn the_line_of_generate_groups_is_understood() {
        let wanted =
            parse("all github.com/resouer/demo/pkg/client github.com/resouer/demo/pkg/apis samplecrd:v1");
        assert_eq!(wanted.pieces.len(), Generator::ALL.len());
        assert_eq!(wanted.remarks.len(), 2);
        assert_eq!(wanted.versions_of("samplecrd.k8s.io"), Some(&vec!["v1".to_owned()]));
        assert_eq!(wanted.versions_of("other.k8s.io"), None);
    }

    #[test]
    fn pieces_have_the_names_of_code_generator_too() {
        let wanted = parse("deepcopy,client,informer,lister");
        assert_eq!(wanted.pieces, [Generator::Clientset, Generator::Informers, Generator::Listers].into());
        assert!(wanted.remarks[0].contains("Clone"));
        assert_eq!(wanted.types, Some(false));
        assert_eq!(Wanted::parse(&[]).expect("all").pieces.len(), Generator::ALL.len());
        let error = Wanted::parse(&["clients".to_owned()]).expect_err("no piece").to_string();
        assert!(error.contains("\"clients\"") && error.contains("informers"), "{error}");
    }
}
