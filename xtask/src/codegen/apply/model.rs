//! The types that need a configuration: the kinds that can be patched, and all types that the kinds refer to.

use std::collections::{BTreeMap, BTreeSet};

use serde_json::{Map, Value};

use super::super::DataFiles;
use super::names;
use super::shape::{Shape, last};
use crate::Result;

/// A group and version, as a module.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct Module {
    pub(super) group: String,
    pub(super) version: String,
}

/// A type with a configuration.
pub(super) struct Type {
    pub(super) definition: String,
    pub(super) module: Module,
    pub(super) kind: Option<Kind>,
    pub(super) fields: Vec<Field>,
    /// The parameters of the constructor: the keys of the lists with items of this type.
    pub(super) keys: Vec<String>,
}

/// A type that is an object.
pub(super) struct Kind {
    pub(super) api_version: String,
    pub(super) namespaced: bool,
}

pub(super) struct Field {
    /// The name in JSON.
    pub(super) name: String,
    pub(super) rust_name: String,
    pub(super) shape: Shape,
    pub(super) doc: String,
}

pub(super) struct Model {
    pub(super) types: BTreeMap<String, Type>,
}

impl Module {
    fn of(definition: &str) -> Result<Self> {
        let mut parts = definition.rsplit('.').skip(1);
        let (Some(version), Some(group)) = (parts.next(), parts.next()) else {
            return Err(format!("{definition}: no group and version").into());
        };
        Ok(Self { group: group.to_owned(), version: version.to_owned() })
    }

    pub(super) fn feature(&self) -> String {
        format!("{}-{}", self.group, self.version)
    }

    /// Returns whether the module belongs to no feature.
    pub(super) fn is_always_there(&self) -> bool {
        self.group == "meta"
    }

    /// Returns the name of the configuration of a type, relative to this module.
    pub(super) fn configuration(&self, definition: &str) -> String {
        let name = format!("{}ApplyConfiguration", last(definition));
        match Self::of(definition) {
            Ok(module) if module != *self => format!("crate::{}::{}::{name}", module.group, module.version),
            _ => name,
        }
    }
}

impl Model {
    pub(super) fn of(data: &DataFiles) -> Result<Self> {
        let kinds = kinds(data);
        let mut names: BTreeSet<&str> = BTreeSet::new();
        let mut open: Vec<&str> = kinds.keys().copied().collect();
        while let Some(definition) = open.pop() {
            if names.insert(definition) {
                let schema =
                    data.types.get(definition).ok_or_else(|| format!("unknown type {definition}"))?;
                let properties = schema["properties"].as_object().into_iter().flatten();
                for (_, property) in properties {
                    let shape = Shape::of(property);
                    let used = shape.definition().and_then(|used| data.types.get_key_value(used));
                    open.extend(used.map(|(name, _)| name.as_str()));
                }
            }
        }
        let keys = keys(data);
        let mut types = BTreeMap::new();
        for definition in names {
            let schema = &data.types[definition];
            let kind = kinds.get(definition).map(|(api_version, namespaced)| Kind {
                api_version: api_version.clone(),
                namespaced: *namespaced,
            });
            let made = Type {
                definition: definition.to_owned(),
                module: Module::of(definition)?,
                fields: fields(schema, kind.is_some()),
                keys: if kind.is_some() { Vec::new() } else { required_keys(schema, keys.get(definition)) },
                kind,
            };
            types.insert(definition.to_owned(), made);
        }
        Ok(Self { types })
    }

    pub(super) fn modules(&self) -> BTreeSet<Module> {
        self.types.values().map(|made| made.module.clone()).collect()
    }

    /// Returns the other modules that a module refers to.
    pub(super) fn modules_used_by(&self, module: &Module) -> BTreeSet<Module> {
        let fields = self.types.values().filter(|made| made.module == *module).flat_map(|made| &made.fields);
        let used = fields.filter_map(|field| Some(self.types.get(field.shape.definition()?)?.module.clone()));
        used.filter(|used| used != module).collect()
    }
}

/// Returns the kinds that can be patched, by definition, with API version and scope. A `Scale` is patched as
/// a subresource.
fn kinds(data: &DataFiles) -> BTreeMap<&str, (String, bool)> {
    let mut kinds = BTreeMap::new();
    for (definition, schema) in &data.types {
        for kind in schema["x-kubernetes-group-version-kind"].as_array().into_iter().flatten() {
            let text = |name: &str| kind[name].as_str().unwrap_or_default();
            let api_version = match text("group") {
                "" => text("version").to_owned(),
                group => format!("{group}/{}", text("version")),
            };
            let resources = data.resources.get(&api_version).map(|value| &value["resources"]);
            let resources = resources.and_then(Value::as_array).into_iter().flatten();
            let patched = resources.filter(|resource| {
                let is_object = resource["name"].as_str().is_some_and(|name| !name.contains('/'));
                let verbs = resource["verbs"].as_array().into_iter().flatten();
                is_object && resource["kind"] == text("kind") && verbs.into_iter().any(|verb| verb == "patch")
            });
            if let Some(resource) = patched.into_iter().next() {
                kinds.insert(definition.as_str(), (api_version.clone(), resource["namespaced"] == true));
            } else if definition == "io.k8s.api.autoscaling.v1.Scale" {
                kinds.insert(definition.as_str(), (api_version.clone(), true));
            }
        }
    }
    kinds
}

fn fields(schema: &Value, is_kind: bool) -> Vec<Field> {
    let properties = schema["properties"].as_object().into_iter().flatten();
    let written = |name: &str| !is_kind || !matches!(name, "apiVersion" | "kind" | "metadata");
    let fields = properties.filter(|(name, _)| written(name)).map(|(name, property)| {
        let shape = Shape::of(property);
        let doc = shape.describe(property);
        Field { rust_name: names::field(name), name: name.clone(), shape, doc }
    });
    fields.collect()
}

/// Returns the keys of the lists that hold a type. Types in lists with different keys have none.
fn keys(data: &DataFiles) -> BTreeMap<String, Vec<String>> {
    let mut found: BTreeMap<String, Vec<String>> = BTreeMap::new();
    let mut ambiguous = BTreeSet::new();
    let properties = data.types.values().filter_map(|schema| schema["properties"].as_object());
    for property in properties.flat_map(Map::values) {
        let (Some(item), Some(keys)) =
            (property["items"]["$ref"].as_str(), property["x-kubernetes-list-map-keys"].as_array())
        else {
            continue;
        };
        let keys: Vec<String> = keys.iter().filter_map(Value::as_str).map(str::to_owned).collect();
        match found.get(item) {
            Some(known) if *known != keys => drop(ambiguous.insert(item.to_owned())),
            _ => drop(found.insert(item.to_owned(), keys)),
        }
    }
    found.retain(|definition, _| !ambiguous.contains(definition));
    found
}

/// Returns the keys that every item has. A key with a default is not a parameter.
fn required_keys(schema: &Value, keys: Option<&Vec<String>>) -> Vec<String> {
    let required = schema["required"].as_array();
    let is_required =
        |key: &&String| required.is_some_and(|required| required.iter().any(|name| name == key.as_str()));
    keys.into_iter().flatten().filter(is_required).cloned().collect()
}
