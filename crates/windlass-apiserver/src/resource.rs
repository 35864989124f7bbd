//! What the server serves: groups, versions, resources, and all that the registry must know about each.

use std::collections::BTreeMap;
use std::sync::Arc;

use serde_json::Value;
use windlass_schema::Schema;

use crate::store::{ResourceId, View};
use crate::strategy::Strategy;
use crate::wire::GroupResource;

/// A subresource and what may be done with it.
#[derive(Clone, Debug)]
pub(crate) struct Subresource {
    /// `status`, `scale`, …
    pub(crate) name: String,
    /// Group of the kind it shows, where that differs from the resource's.
    pub(crate) group: String,
    /// Version of that kind.
    pub(crate) version: String,
    /// The kind it shows.
    pub(crate) kind: String,
    pub(crate) verbs: Vec<String>,
}

/// One resource in one version.
pub(crate) struct Resource {
    pub(crate) group: String,
    pub(crate) version: String,
    pub(crate) kind: String,
    pub(crate) list_kind: String,
    pub(crate) plural: String,
    pub(crate) singular: String,
    pub(crate) short_names: Vec<String>,
    pub(crate) categories: Vec<String>,
    pub(crate) namespaced: bool,
    pub(crate) verbs: Vec<String>,
    pub(crate) subresources: Vec<Subresource>,
    /// Where its objects lie; shared by all versions.
    pub(crate) storage: ResourceId,
    /// The `apiVersion` that stored objects carry.
    pub(crate) storage_version: String,
    pub(crate) strategy: &'static dyn Strategy,
    pub(crate) schema: SchemaSource,
    /// What a CustomResourceDefinition says beyond that; none for built-in kinds.
    pub(crate) custom: Option<CustomResource>,
}

/// What only custom resources have.
#[derive(Debug, Default)]
pub(crate) struct CustomResource {
    /// `additionalPrinterColumns` of the version, as they stand in the definition.
    pub(crate) columns: Vec<Value>,
    /// JSON paths of `selectableFields`, without the leading dot.
    pub(crate) selectable: Vec<String>,
    /// The scale subresource, if there is one.
    pub(crate) scale: Option<ScalePaths>,
    /// Whether stored objects may be older than the schema, or of another version, so that they must be defaulted
    /// and pruned whenever they are read.
    pub(crate) reread: bool,
    /// The warning that goes along with every reply, where the version is deprecated.
    pub(crate) deprecation: Option<String>,
    /// Whether other versions than the stored one come from a webhook.
    pub(crate) converted_by_webhook: bool,
    /// Whether the definition is on its way out, so that nothing new may be made.
    pub(crate) terminating: bool,
}

/// Where the scale subresource of a custom resource reads and writes.
#[derive(Clone, Debug)]
pub(crate) struct ScalePaths {
    pub(crate) spec_replicas: String,
    pub(crate) status_replicas: String,
    pub(crate) label_selector: Option<String>,
}

/// Where a resource's schema comes from: compiled when first needed.
pub(crate) struct SchemaSource {
    compiled: std::sync::OnceLock<Schema>,
    compile: Box<dyn Fn() -> Schema + Send + Sync>,
}

impl SchemaSource {
    pub(crate) fn lazy(compile: impl Fn() -> Schema + Send + Sync + 'static) -> Self {
        Self { compiled: std::sync::OnceLock::new(), compile: Box::new(compile) }
    }

    pub(crate) fn get(&self) -> &Schema {
        self.compiled.get_or_init(|| (self.compile)())
    }
}

impl Resource {
    /// `v1` or `apps/v1`.
    pub(crate) fn api_version(&self) -> String {
        api_version(&self.group, &self.version)
    }

    /// Group and plural, as errors name them.
    pub(crate) fn group_resource(&self) -> GroupResource {
        GroupResource::new(&*self.group, &*self.plural)
    }

    pub(crate) fn reread(&self) -> bool {
        self.custom.as_ref().is_some_and(|custom| custom.reread)
    }

    pub(crate) fn is_custom(&self) -> bool {
        self.custom.is_some()
    }

    pub(crate) fn subresource(&self, name: &str) -> Option<&Subresource> {
        self.subresources.iter().find(|subresource| subresource.name == name)
    }

    pub(crate) fn has_status(&self) -> bool {
        self.subresource("status").is_some()
    }

    pub(crate) fn allows(&self, verb: &str) -> bool {
        self.verbs.iter().any(|allowed| allowed == verb)
    }

    /// The key an object is stored under.
    pub(crate) fn key(&self, namespace: &str, name: &str) -> String {
        if self.namespaced { format!("{namespace}/{name}") } else { name.to_owned() }
    }

    /// The key that the real server would store an object under; some errors name it.
    pub(crate) fn registry_key(&self, key: &str) -> String {
        if self.is_custom() {
            format!("/registry/{}/{}/{key}", self.group, self.plural)
        } else {
            format!("/registry/{}/{key}", self.plural)
        }
    }

    /// Fills in the schema's defaults and drops what it does not know, whose paths are returned.
    pub(crate) fn default_and_prune(&self, object: &mut Value) -> Vec<String> {
        let schema = self.schema.get();
        windlass_schema::default(schema, object);
        self.strategy.default(object);
        windlass_schema::prune(schema, object)
    }

    /// Names of fields that selectors may use besides name and namespace.
    pub(crate) fn selectable_fields(&self) -> Vec<&str> {
        match &self.custom {
            Some(custom) => custom.selectable.iter().map(String::as_str).collect(),
            None => self.strategy.selectable_fields().clone(),
        }
    }

    /// The value of a selectable field; the empty string where it is absent.
    pub(crate) fn selectable_value(&self, object: &Value, field: &str) -> String {
        match field {
            "metadata.name" => crate::meta::name(object).to_owned(),
            "metadata.namespace" => crate::meta::namespace(object).to_owned(),
            _ if self.is_custom() => scalar_at(object, field),
            _ => self.strategy.selectable_value(object, field),
        }
    }
}

/// The text of the scalar at a dotted path, the empty string if there is none.
fn scalar_at(object: &Value, path: &str) -> String {
    let found = path.split('.').try_fold(object, |value, segment| value.get(segment));
    match found {
        Some(Value::String(text)) => text.clone(),
        Some(value @ (Value::Number(_) | Value::Bool(_))) => value.to_string(),
        _ => String::new(),
    }
}

/// `v1` or `apps/v1`.
pub(crate) fn api_version(group: &str, version: &str) -> String {
    if group.is_empty() { version.to_owned() } else { format!("{group}/{version}") }
}

/// One version of a group.
#[derive(Clone)]
pub(crate) struct Version {
    pub(crate) name: String,
    /// By plural name.
    pub(crate) resources: BTreeMap<String, Arc<Resource>>,
}

/// One API group, its versions in order of preference.
#[derive(Clone)]
pub(crate) struct Group {
    /// Empty for the core group.
    pub(crate) name: String,
    pub(crate) versions: Vec<Version>,
}

/// All that is served at one moment. Replaced as a whole when a definition comes, changes or goes.
#[derive(Clone, Default)]
pub(crate) struct ResourceTable {
    groups: Vec<Group>,
}

impl ResourceTable {
    /// The groups in the order that discovery shows them.
    pub(crate) fn groups(&self) -> &[Group] {
        &self.groups
    }

    pub(crate) fn group(&self, name: &str) -> Option<&Group> {
        self.groups.iter().find(|group| group.name == name)
    }

    pub(crate) fn version(&self, group: &str, version: &str) -> Option<&Version> {
        self.group(group)?.versions.iter().find(|candidate| candidate.name == version)
    }

    pub(crate) fn resource(&self, group: &str, version: &str, plural: &str) -> Option<&Arc<Resource>> {
        self.version(group, version)?.resources.get(plural)
    }

    /// The resource that serves a kind.
    pub(crate) fn kind(&self, group: &str, version: &str, kind: &str) -> Option<&Arc<Resource>> {
        self.version(group, version)?.resources.values().find(|resource| resource.kind == kind)
    }

    /// Adds a resource; groups and versions come into being in the order of their first resource.
    pub(crate) fn insert(&mut self, resource: Arc<Resource>) {
        let at = self.groups.iter().position(|group| group.name == resource.group).unwrap_or_else(|| {
            self.groups.push(Group { name: resource.group.clone(), versions: Vec::new() });
            self.groups.len() - 1
        });
        let versions = &mut self.groups[at].versions;
        let at = versions.iter().position(|version| version.name == resource.version).unwrap_or_else(|| {
            versions.push(Version { name: resource.version.clone(), resources: BTreeMap::new() });
            versions.len() - 1
        });
        versions[at].resources.insert(resource.plural.clone(), resource);
    }

    /// Puts the versions of a group in order of preference: `v2`, `v1`, `v1beta1`, and then by name.
    pub(crate) fn sort_versions(&mut self, group: &str) {
        if let Some(group) = self.groups.iter_mut().find(|candidate| candidate.name == group) {
            group.versions.sort_by_key(|a| version_rank(&a.name));
        }
    }

    /// Whether the namespace is there, in the newest view.
    pub(crate) fn namespace_id() -> ResourceId {
        ResourceId::new("", "namespaces")
    }
}

/// Orders versions as discovery does: general availability before beta before alpha, newer first, then other names.
pub(crate) fn version_rank(version: &str) -> (u8, std::cmp::Reverse<u64>, std::cmp::Reverse<u64>, String) {
    use std::cmp::Reverse;
    let other = || (3, Reverse(0), Reverse(0), version.to_owned());
    let Some(rest) = version.strip_prefix('v') else { return other() };
    let (stage, major, minor) = if let Some((major, minor)) = rest.split_once("beta") {
        (1, major, minor)
    } else if let Some((major, minor)) = rest.split_once("alpha") {
        (2, major, minor)
    } else {
        (0, rest, "0")
    };
    match (major.parse(), minor.parse()) {
        (Ok(major), Ok(minor)) => (stage, Reverse(major), Reverse(minor), String::new()),
        _ => other(),
    }
}

/// The state of a namespace in a view: `None` if it is absent, else whether it is on its way out.
pub(crate) fn namespace_terminating(view: &View, namespace: &str) -> Option<bool> {
    let stored = view.get(&ResourceTable::namespace_id(), namespace)?;
    Some(crate::meta::is_deleting(&stored.value))
}
