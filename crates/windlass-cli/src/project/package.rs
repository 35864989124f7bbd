//! The package of a project's operator.

use serde::Deserialize;
use windlass_scaffold::Disk;

use super::Workspace;
use crate::error::Result;

/// The version of a package that declares no version.
const UNVERSIONED: &str = "0.0.1";

/// The package of the operator, from `Cargo.toml`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Package {
    pub(crate) version: String,
    pub(crate) description: Option<String>,
}

/// The parts of `Cargo.toml` that are read.
#[derive(Deserialize, Default)]
#[serde(default)]
struct File {
    package: Table,
    workspace: Workspaces,
}

#[derive(Deserialize, Default)]
#[serde(default)]
struct Workspaces {
    package: Table,
}

#[derive(Deserialize, Default)]
#[serde(default)]
struct Table {
    version: Option<Field>,
    description: Option<Field>,
}

/// A field with a text, or with the text of the workspace.
#[derive(Deserialize)]
#[serde(untagged)]
enum Field {
    Text(String),
    Inherited {},
}

impl Field {
    fn text(field: Option<Self>, inherited: Option<Self>) -> Option<String> {
        match (field?, inherited) {
            (Self::Text(text), _) | (Self::Inherited {}, Some(Self::Text(text))) => Some(text),
            (Self::Inherited {}, _) => None,
        }
    }
}

impl Workspace {
    /// Returns the version and the description of the operator.
    pub(crate) fn package(&self) -> Result<Package> {
        let text = self.folder.read("Cargo.toml")?.unwrap_or_default();
        parse(&text).map_err(|error| format!("Cargo.toml: {error}").into())
    }
}

fn parse(text: &str) -> Result<Package, toml::de::Error> {
    let File { package, workspace } = toml::from_str(text)?;
    let version = Field::text(package.version, workspace.package.version);
    Ok(Package {
        version: version.unwrap_or_else(|| UNVERSIONED.to_owned()),
        description: Field::text(package.description, workspace.package.description),
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_package_has_its_own_version_or_that_of_its_workspace() {
        let package = |text: &str| parse(text).expect("a package");
        let own = package("[package]\nname = \"a\"\nversion = \"1.2.0\"\ndescription = \"Text\"\n");
        assert_eq!((own.version.as_str(), own.description.as_deref()), ("1.2.0", Some("Text")));
        let inherited =
            package("[package]\nversion = { workspace = true }\n[workspace.package]\nversion = \"2.0.0\"\n");
        assert_eq!((inherited.version.as_str(), inherited.description), ("2.0.0", None));
        assert_eq!(package("[package]\n").version, UNVERSIONED);
    }
}
