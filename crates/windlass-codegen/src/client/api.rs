//! The kinds that clients are generated for.

use std::collections::BTreeSet;

use crate::definition::{Definition, Version};
use crate::groups::{group_module, group_modules};
use crate::names;

/// The annotation of a CRD with the verbs of the CRD's clients: Go's `+genclient:onlyVerbs`.
pub const ONLY_VERBS: &str = "codegen.windlass.dev/only-verbs";

/// The annotation of a CRD with the verbs that the CRD's clients lack: Go's `+genclient:skipVerbs`.
pub const SKIP_VERBS: &str = "codegen.windlass.dev/skip-verbs";

/// The kinds that clients are generated for, by group and version.
#[derive(Clone, Debug, Default)]
pub struct Api {
    /// Sorted by group and version.
    pub versions: Vec<GroupVersion>,
}

/// The kinds of a group and version.
#[derive(Clone, Debug)]
pub struct GroupVersion {
    /// The API group; empty for the core group.
    pub group: String,
    /// The version.
    pub version: String,
    /// The name of the group's module: `samplecrd` of `samplecrd.k8s.io`.
    pub module: String,
    /// The feature of the crate that enables the group and version.
    pub feature: Option<String>,
    /// Sorted by kind.
    pub kinds: Vec<Kind>,
}

/// A kind.
#[derive(Clone, Debug)]
pub struct Kind {
    /// The kind.
    pub name: String,
    /// The name of the resource.
    pub resource: String,
    /// The singular of the resource.
    pub singular: String,
    /// True if objects are in namespaces.
    pub namespaced: bool,
    /// The path of the Rust type, such as `crate::v1::Network`.
    pub path: String,
    /// The verbs of the kind's client.
    pub verbs: BTreeSet<Verb>,
    /// True if the type derives `ApplyConfiguration`.
    pub has_apply_configuration: bool,
}

/// A verb of a generated client. The order is that of Go's interfaces.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
#[expect(missing_docs, reason = "the verbs of Kubernetes")]
pub enum Verb {
    Create,
    Update,
    UpdateStatus,
    Delete,
    DeleteCollection,
    Get,
    List,
    Watch,
    Patch,
    Apply,
    ApplyStatus,
    GetScale,
    UpdateScale,
}

impl Verb {
    /// All verbs.
    pub const ALL: [Self; 13] = [
        Self::Create,
        Self::Update,
        Self::UpdateStatus,
        Self::Delete,
        Self::DeleteCollection,
        Self::Get,
        Self::List,
        Self::Watch,
        Self::Patch,
        Self::Apply,
        Self::ApplyStatus,
        Self::GetScale,
        Self::UpdateScale,
    ];

    /// Returns the name of the trait in `windlass_client::verb`.
    pub fn trait_name(self) -> String {
        format!("{self:?}")
    }

    /// Parses the name of a verb in any case: `updateStatus`, `deletecollection`.
    pub fn parse(name: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|verb| verb.trait_name().eq_ignore_ascii_case(name.trim()))
    }
}

impl Api {
    /// Adds the versions of a definition that a server serves. `path` returns the path of the Rust type of a
    /// version, and whether the type derives `ApplyConfiguration`.
    ///
    /// # Errors
    /// An annotation names a verb that does not exist.
    pub fn add(
        &mut self,
        definition: &Definition,
        path: impl Fn(&Version) -> (String, bool),
    ) -> Result<(), String> {
        for version in definition.spec.versions.iter().filter(|version| version.served) {
            let (path, has_apply_configuration) = path(version);
            let kind = Kind {
                name: definition.spec.names.kind.clone(),
                resource: definition.spec.names.plural.clone(),
                singular: definition.singular(),
                namespaced: definition.is_namespaced(),
                path,
                verbs: verbs(definition, version)?,
                has_apply_configuration,
            };
            self.group_version(&definition.spec.group, &version.name).kinds.push(kind);
        }
        self.sort();
        Ok(())
    }

    /// Returns the entry of a group and version. Adds a missing entry.
    pub fn group_version(&mut self, group: &str, version: &str) -> &mut GroupVersion {
        let found = self.versions.iter().position(|known| known.group == group && known.version == version);
        let place = found.unwrap_or_else(|| {
            self.versions.push(GroupVersion {
                group: group.to_owned(),
                version: version.to_owned(),
                module: group_module(group),
                feature: None,
                kinds: Vec::new(),
            });
            self.versions.len() - 1
        });
        &mut self.versions[place]
    }

    /// Sorts groups, versions and kinds. Groups whose first labels are equal have modules with the whole
    /// name.
    pub fn sort(&mut self) {
        self.versions.sort_by(|a, b| (&a.group, &a.version).cmp(&(&b.group, &b.version)));
        for version in &mut self.versions {
            version.kinds.sort_by(|a, b| a.name.cmp(&b.name));
            version.kinds.dedup_by(|a, b| a.name == b.name);
        }
        let modules = group_modules(self.versions.iter().map(|version| version.group.as_str()));
        for version in &mut self.versions {
            version.module.clone_from(&modules[&version.group]);
        }
    }

    /// Returns the kinds with the verbs list and watch. Only these kinds have listers and informers.
    pub(super) fn cached(&self) -> Self {
        let mut cached = self.clone();
        for version in &mut cached.versions {
            version.kinds.retain(Kind::is_listed);
        }
        cached.versions.retain(|version| !version.kinds.is_empty());
        cached
    }

    /// Returns the groups, with the versions of each group.
    pub(super) fn groups(&self) -> Vec<Vec<&GroupVersion>> {
        let mut groups: Vec<Vec<&GroupVersion>> = Vec::new();
        for version in &self.versions {
            match groups.last_mut() {
                Some(group) if group[0].group == version.group => group.push(version),
                _ => groups.push(vec![version]),
            }
        }
        groups
    }
}

impl GroupVersion {
    /// Returns the API version, such as `samplecrd.k8s.io/v1`.
    pub(super) fn api_version(&self) -> String {
        if self.group.is_empty() { self.version.clone() } else { format!("{}/{}", self.group, self.version) }
    }

    /// Returns the name of the group and version in types: `SamplecrdV1`.
    pub(super) fn type_name(&self) -> String {
        names::camel(&self.module.replace('_', "-")) + &names::camel(&self.version)
    }
}

impl Kind {
    /// Returns the plural in types and methods: `IPPools`.
    pub(super) fn plural(&self) -> String {
        names::plural(&self.name, &self.resource)
    }

    /// Returns the method for a kind: `ip_pools`.
    pub(super) fn method(&self) -> String {
        names::snake(&self.plural())
    }

    /// Returns whether objects can be cached.
    pub(super) fn is_listed(&self) -> bool {
        self.verbs.contains(&Verb::List) && self.verbs.contains(&Verb::Watch)
    }
}

/// Returns the verbs of a version of a custom resource.
fn verbs(definition: &Definition, version: &Version) -> Result<BTreeSet<Verb>, String> {
    let annotation = |name: &str| -> Result<Option<BTreeSet<Verb>>, String> {
        let Some(list) = definition.metadata.annotations.get(name) else { return Ok(None) };
        let parsed = list.split(',').map(|word| {
            let kind = &definition.spec.names.kind;
            Verb::parse(word).ok_or_else(|| format!("{kind}: the annotation {name} names no verb: {word:?}"))
        });
        parsed.collect::<Result<_, _>>().map(Some)
    };
    let (only, skipped) = (annotation(ONLY_VERBS)?, annotation(SKIP_VERBS)?.unwrap_or_default());
    let is_served = |verb: &Verb| match verb {
        Verb::UpdateStatus | Verb::ApplyStatus => version.has_subresource("status"),
        Verb::GetScale | Verb::UpdateScale => version.has_subresource("scale"),
        _ => true,
    };
    let is_wanted =
        |verb: &Verb| only.as_ref().is_none_or(|only| only.contains(verb)) && !skipped.contains(verb);
    Ok(Verb::ALL.into_iter().filter(|verb| is_served(verb) && is_wanted(verb)).collect())
}
