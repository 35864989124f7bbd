//! The state of a project: the content of `windlass.toml`.

use std::collections::BTreeMap;
use std::path::PathBuf;

use serde::{Deserialize, Serialize};

use crate::{Error, License, Result, name};

/// The file with the state of a project.
pub const STATE: &str = "windlass.toml";

/// The version of the format of [`STATE`].
const FORMAT: u32 = 1;

const HEAD: &str = "# The state of this project, written by windlass. Change it with `windlass create`, `delete` and `edit`.\n";

/// A project: the content of `windlass.toml`.
#[derive(Serialize, Deserialize, Clone, Debug, PartialEq, Eq)]
#[serde(rename_all = "kebab-case", deny_unknown_fields)]
#[non_exhaustive]
pub struct Project {
    /// The version of the format.
    pub(crate) version: u32,
    /// The version of Windlass that wrote the files last, and that the project depends on.
    pub windlass: String,
    /// The domain: the end of the API group of each kind.
    pub domain: String,
    /// The name of the project and of the operator's package.
    pub project_name: String,
    /// The address of the repository.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub repo: Option<String>,
    /// The owner of the copyright.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub owner: Option<String>,
    /// The license.
    pub license: License,
    /// True if files are in a folder for each group.
    pub multigroup: bool,
    /// True if the operator watches a single namespace, with a Role instead of a ClusterRole.
    pub namespaced: bool,
    /// A checkout of Windlass to depend on, instead of the released crates.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub path: Option<PathBuf>,
    /// The modules of `api/src` that `windlass generate` has made.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub generate: Vec<String>,
    /// The groups and versions of the generated modules, such as `foo:v1,v2`. Empty: all.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub generate_for: Vec<String>,
    /// The image of the operator.
    #[serde(default, skip_serializing_if = "ImageSettings::is_empty")]
    pub image: ImageSettings,
    /// The kinds.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub resources: Vec<Resource>,
    /// The SHA-256 of the scaffolded text of each file of the user.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub files: BTreeMap<String, String>,
}

/// Settings for the image of the operator, written by the user: the table `[image]`.
#[derive(Serialize, Deserialize, Clone, Debug, Default, PartialEq, Eq)]
#[serde(rename_all = "kebab-case", deny_unknown_fields, default)]
#[non_exhaustive]
pub struct ImageSettings {
    /// Registries, as `mock.com:5000`, that may be reached by plain HTTP. Loopback addresses always may.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub insecure_registries: Vec<String>,
}

impl ImageSettings {
    /// Returns whether no setting is set.
    pub fn is_empty(&self) -> bool {
        *self == Self::default()
    }
}

/// A version of a kind.
#[derive(Serialize, Deserialize, Clone, Debug, PartialEq, Eq)]
#[serde(rename_all = "kebab-case", deny_unknown_fields)]
pub struct Resource {
    /// The group, without the domain of the project.
    pub group: String,
    /// The version, such as `v1`.
    pub version: String,
    /// The kind, in PascalCase.
    pub kind: String,
    /// The plural in lower case.
    pub plural: String,
    /// True if objects are in namespaces.
    pub namespaced: bool,
    /// True if the type is in the api crate of the project.
    pub api: bool,
    /// True if the project has a controller for the kind.
    pub controller: bool,
    /// The names of further controllers for the kind.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub named_controllers: Vec<String>,
    /// True if this version of several is the storage version.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub storage: bool,
    /// Its webhooks.
    #[serde(default, skip_serializing_if = "Webhooks::is_empty")]
    pub webhooks: Webhooks,
    /// The place of a type from another crate.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub external: Option<External>,
}

/// The webhooks of a version of a kind.
#[derive(Serialize, Deserialize, Clone, Debug, Default, PartialEq, Eq)]
#[serde(rename_all = "kebab-case", deny_unknown_fields, default)]
pub struct Webhooks {
    /// A mutating webhook that sets defaults.
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    pub defaulting: bool,
    /// The path of the defaulting webhook, if the path is not the default.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub defaulting_path: Option<String>,
    /// A validating webhook.
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    pub validation: bool,
    /// The path of the validating webhook, if the path is not the default.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub validation_path: Option<String>,
    /// The versions that are converted to and from this version, the hub.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub spokes: Vec<String>,
}

impl Webhooks {
    /// Returns whether there are none.
    pub fn is_empty(&self) -> bool {
        !self.defaulting && !self.validation && !self.converts()
    }

    /// Returns whether objects are converted between versions.
    pub fn converts(&self) -> bool {
        !self.spokes.is_empty()
    }
}

/// A type of another crate.
#[derive(Serialize, Deserialize, Clone, Debug, Default, PartialEq, Eq)]
#[serde(rename_all = "kebab-case", deny_unknown_fields, default)]
pub struct External {
    /// The Rust module of the type, such as `cert_manager::v1`.
    pub path: String,
    /// The domain of the API group.
    #[serde(skip_serializing_if = "String::is_empty")]
    pub domain: String,
    /// The crate, for `cargo add`: `cert-manager@1.2`.
    #[serde(skip_serializing_if = "String::is_empty")]
    pub module: String,
}

impl Project {
    /// Returns a project without kinds. `windlass` is the version of the crates to depend on.
    pub fn new(name: impl Into<String>, domain: impl Into<String>, windlass: impl Into<String>) -> Self {
        Self {
            version: FORMAT,
            windlass: windlass.into(),
            domain: domain.into(),
            project_name: name.into(),
            repo: None,
            owner: None,
            license: License::Apache2,
            multigroup: false,
            namespaced: false,
            path: None,
            generate: Vec::new(),
            generate_for: Vec::new(),
            image: ImageSettings::default(),
            resources: Vec::new(),
            files: BTreeMap::new(),
        }
    }

    /// Reads the text of `windlass.toml`.
    ///
    /// # Errors
    /// The text is not TOML, a field is missing or unknown, a name is not valid, or the text is from a newer
    /// version of Windlass.
    pub fn parse(text: &str) -> Result<Self> {
        let project: Self = toml::from_str(text).map_err(|error| Error::State(error.to_string()))?;
        if project.version != FORMAT {
            let found = project.version;
            let text =
                format!("the format is version {found}, and this windlass reads {FORMAT}; update windlass");
            return Err(Error::State(text));
        }
        project.check()?;
        Ok(project)
    }

    /// Returns the text of `windlass.toml`.
    ///
    /// # Errors
    /// A path is not UTF-8.
    pub fn to_text(&self) -> Result<String> {
        let text = toml::to_string(self).map_err(|error| Error::State(error.to_string()))?;
        Ok(format!("{HEAD}{text}"))
    }

    /// Checks all names, because names become paths and code.
    pub(crate) fn check(&self) -> Result<()> {
        name::check_project(&self.project_name)?;
        name::check_domain(&self.domain)?;
        for resource in &self.resources {
            name::check_group(&resource.group)?;
            name::check_version(&resource.version)?;
            name::check_kind(&resource.kind)?;
            name::check_plural(&resource.plural)?;
            resource.webhooks.spokes.iter().try_for_each(|spoke| name::check_version(spoke))?;
            resource.named_controllers.iter().try_for_each(|name| name::check_controller(name))?;
            let webhooks = &resource.webhooks;
            let paths = webhooks.defaulting_path.iter().chain(&webhooks.validation_path);
            paths.into_iter().try_for_each(|path| name::check_path(path))?;
        }
        Ok(())
    }

    /// Returns whether `windlass generate` has added a module `client` to the api crate.
    pub(crate) fn has_client(&self) -> bool {
        self.generate.iter().any(|made| made == "client")
    }

    /// Returns the name of the operator's crate in Rust: `operator_demo`.
    pub fn crate_name(&self) -> String {
        self.project_name.replace('-', "_")
    }

    /// Returns the package of the types: `operator-demo-api`.
    pub fn api_package(&self) -> String {
        format!("{}-api", self.project_name)
    }

    /// Returns the API group of a kind: that of the project's own kinds ends with the domain.
    pub fn api_group(&self, resource: &Resource) -> String {
        match &resource.external {
            Some(external) if external.domain.is_empty() => resource.group.clone(),
            Some(external) => format!("{}.{}", resource.group, external.domain),
            None if resource.api => format!("{}.{}", resource.group, self.domain),
            None => crate::builtin::group(&resource.group).to_owned(),
        }
    }

    /// Returns a version of a kind.
    pub fn resource(&self, group: &str, version: &str, kind: &str) -> Option<&Resource> {
        self.resources.iter().find(|resource| resource.is(group, version, kind))
    }

    /// Returns the versions of a kind, in order of creation.
    pub fn versions<'a>(&'a self, group: &'a str, kind: &'a str) -> impl Iterator<Item = &'a Resource> {
        self.resources.iter().filter(move |resource| resource.group == group && resource.kind == kind)
    }

    /// Returns the kinds with a type in the api crate: the first version of each.
    pub(crate) fn own_kinds(&self) -> impl Iterator<Item = &Resource> {
        let own = || self.resources.iter().filter(|resource| resource.api);
        own()
            .enumerate()
            .filter_map(move |(at, kind)| own().take(at).all(|other| !other.is_kind(kind)).then_some(kind))
    }

    /// Returns the storage version of a kind: the version with `storage`, or else the first version.
    pub(crate) fn storage_version(&self, kind: &Resource) -> String {
        let mut versions = self.versions(&kind.group, &kind.kind).filter(|resource| resource.api);
        let first = versions.next().unwrap_or(kind);
        let marked = std::iter::once(first).chain(versions).find(|resource| resource.storage);
        marked.unwrap_or(first).version.clone()
    }
}

impl Resource {
    /// Returns whether this is the version of the kind.
    pub fn is(&self, group: &str, version: &str, kind: &str) -> bool {
        self.group == group && self.version == version && self.kind == kind
    }

    pub(crate) fn is_kind(&self, other: &Self) -> bool {
        self.group == other.group && self.kind == other.kind
    }

    /// Returns the name of the module of the kind: `custom_pod`.
    pub fn module(&self) -> String {
        name::module(&self.kind)
    }

    /// Returns whether the project has code for the kind.
    pub(crate) fn is_used(&self) -> bool {
        self.api || self.controller || !self.named_controllers.is_empty() || !self.webhooks.is_empty()
    }

    /// Returns the module and, for a named controller, the name of each controller.
    pub(crate) fn controllers(&self) -> impl Iterator<Item = (String, Option<&str>)> {
        let usual = self.controller.then(|| (self.module(), None));
        let named = self.named_controllers.iter().map(|name| (name::module(name), Some(name.as_str())));
        usual.into_iter().chain(named)
    }

    /// Returns the path of the sample: `config/samples/foo_v1_bar.yaml`.
    pub fn sample_path(&self) -> String {
        format!("config/samples/{}_{}_{}.yaml", self.group, self.version, self.kind.to_ascii_lowercase())
    }
}
