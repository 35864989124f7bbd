//! The kinds of the objects and of the parameters of a policy, with their types.

use std::collections::{BTreeMap, BTreeSet};

use http::Request;
use http::header::ACCEPT;
use k8s_openapi::api::admissionregistration::v1::{NamedRuleWithOperations, ValidatingAdmissionPolicySpec};
use kube_client::Client;
use serde_json::{Map, Value, json};
use windlass_cel::{Schema, Type};
use windlass_runtime::{Error, Result};

/// The number of kinds after which no more resources are looked up, for each rule.
const MAX_KINDS: usize = 10;
/// The media type of all resources in one document.
const DISCOVERY: &str = "application/json;g=apidiscovery.k8s.io;v=v2;as=APIGroupDiscoveryList";

/// The kinds of a policy.
pub(super) struct Kinds {
    /// The kinds of the objects, sorted by group, version and kind.
    pub(super) objects: Vec<Kind>,
    /// The type of the parameters, which may be unknown; `None` for a policy without parameters.
    pub(super) params: Option<Type>,
}

/// A kind of objects.
pub(super) struct Kind {
    pub(super) group: String,
    pub(super) version: String,
    pub(super) name: String,
    /// The type in expressions.
    pub(super) of: Type,
}

impl Kinds {
    /// Finds the kinds that a policy names. Rules with wildcards name no kind.
    pub(super) async fn of(spec: &ValidatingAdmissionPolicySpec, client: &Client) -> Result<Self> {
        let mut server = Server::discover(client).await?;
        let constraints = spec.match_constraints.as_ref();
        let rules = constraints.and_then(|constraints| constraints.resource_rules.as_deref());
        let mut names = BTreeSet::new();
        for rule in rules.unwrap_or_default() {
            let found = server.kinds_of(rule);
            let is_full = found.len() == MAX_KINDS;
            names.extend(found);
            if is_full {
                break;
            }
        }
        let mut objects = Vec::new();
        for (group, version, kind) in names {
            if let Some(of) = server.type_of(&group, &version, &kind).await? {
                objects.push(Kind { group, version, name: kind, of });
            }
        }
        let params = match &spec.param_kind {
            None => None,
            Some(param) => {
                let api_version = param.api_version.as_deref().unwrap_or_default();
                let (group, version) = api_version.split_once('/').unwrap_or(("", api_version));
                let kind = param.kind.as_deref().unwrap_or_default();
                Some(server.type_of(group, version, kind).await?.unwrap_or(Type::Dyn))
            }
        };
        Ok(Self { objects, params })
    }
}

/// The API server, asked for each document once.
struct Server<'a> {
    client: &'a Client,
    /// The versions of all groups, in the order of the server.
    versions: Vec<ServedVersion>,
    /// The OpenAPI documents of versions; null for a version that is not served.
    documents: BTreeMap<String, Value>,
}

/// A version of a group.
struct ServedVersion {
    group: String,
    name: String,
    resources: Vec<Names>,
}

/// The names of a resource.
struct Names {
    plural: String,
    singular: String,
    kind: String,
}

impl<'a> Server<'a> {
    /// Asks the server for its groups. Only these groups become parts of paths: the text of a policy can be anything.
    async fn discover(client: &'a Client) -> Result<Self> {
        let mut server = Self { client, versions: Vec::new(), documents: BTreeMap::new() };
        for path in ["/api", "/apis"] {
            let list = server.get(path, DISCOVERY).await?.unwrap_or_default();
            for group in list["items"].as_array().into_iter().flatten() {
                let name = text(&group["metadata"], "name");
                let versions = group["versions"].as_array().into_iter().flatten();
                server.versions.extend(versions.map(|version| ServedVersion::of(&name, version)));
            }
        }
        Ok(server)
    }

    fn serves(&self, group: &str, version: &str) -> bool {
        self.versions.iter().any(|served| served.group == group && served.name == version)
    }

    /// Returns the kinds of a rule, at most [`MAX_KINDS`]. As in kube-controller-manager, the core group stands for all groups.
    fn kinds_of(&self, rule: &NamedRuleWithOperations) -> Vec<(String, String, String)> {
        let sorted = |list: &Option<Vec<String>>| {
            let mut list = list.clone().unwrap_or_default();
            list.sort();
            list
        };
        let (groups, versions) = (sorted(&rule.api_groups), sorted(&rule.api_versions));
        if groups.iter().chain(&versions).any(|name| name.contains('*')) {
            return Vec::new();
        }
        let resources = sorted(&rule.resources);
        let resources = resources.iter().filter(|resource| !resource.contains(['*', '/']));
        let resources: Vec<String> = resources.map(|resource| resource.to_lowercase()).collect();
        let mut kinds = Vec::new();
        for group in &groups {
            for version in &versions {
                for resource in &resources {
                    kinds.extend(self.kinds_named(group, version, resource));
                }
            }
        }
        kinds.truncate(MAX_KINDS);
        kinds
    }

    /// Returns the kinds of the resource with a name.
    fn kinds_named(&self, group: &str, version: &str, resource: &str) -> Vec<(String, String, String)> {
        let served = self
            .versions
            .iter()
            .filter(|served| served.name == version && (group.is_empty() || served.group == group));
        let named = served.filter_map(|served| Some((served, served.kind_of(resource)?)));
        named.map(|(served, kind)| (served.group.clone(), served.name.clone(), kind.to_owned())).collect()
    }

    /// Returns the type of the objects of a kind; `None` for a kind that is not served.
    async fn type_of(&mut self, group: &str, version: &str, kind: &str) -> Result<Option<Type>> {
        if !self.serves(group, version) {
            return Ok(None);
        }
        let path = path_of(group, version);
        if !self.documents.contains_key(&path) {
            let document =
                self.get(&format!("/openapi/v3/{path}"), "application/json").await?.unwrap_or_default();
            self.documents.insert(path.clone(), document);
        }
        let Some(schemas) = self.documents[&path]["components"]["schemas"].as_object() else {
            return Ok(None);
        };
        let wanted = json!({"group": group, "version": version, "kind": kind});
        let is_wanted = |schema: &&Value| {
            let kinds = schema["x-kubernetes-group-version-kind"].as_array();
            kinds.is_some_and(|kinds| kinds.contains(&wanted))
        };
        let Some(schema) = schemas.values().find(is_wanted) else { return Ok(None) };
        let schema = resolved(schema, schemas, &mut Vec::new());
        Ok(Some(Type::of_schema(&Schema::compile(&schema, true), kind)))
    }

    /// Returns a document of the server; `None` if there is no such document.
    async fn get(&self, path: &str, media_type: &str) -> Result<Option<Value>> {
        let request = Request::get(path).header(ACCEPT, media_type);
        let request = request.body(Vec::new()).map_err(|error| Error::other(error.to_string()))?;
        match self.client.request::<Value>(request).await.map_err(Error::from) {
            Ok(document) => Ok(Some(document)),
            Err(error) if error.is_not_found() => Ok(None),
            Err(error) => Err(error),
        }
    }
}

impl ServedVersion {
    /// Reads a version in a discovery document.
    fn of(group: &str, version: &Value) -> Self {
        let resources = version["resources"].as_array().into_iter().flatten();
        let names = |resource: &Value| Names {
            plural: text(resource, "resource"),
            singular: text(resource, "singularResource"),
            kind: text(&resource["responseKind"], "kind"),
        };
        Self {
            group: group.to_owned(),
            name: text(version, "version"),
            resources: resources.map(names).collect(),
        }
    }

    /// Returns the kind of the resource with a plural or singular name.
    fn kind_of(&self, resource: &str) -> Option<&str> {
        let is_named = |names: &&Names| names.plural == resource || names.singular == resource;
        self.resources.iter().find(is_named).map(|names| names.kind.as_str())
    }
}

fn text(value: &Value, field: &str) -> String {
    value[field].as_str().unwrap_or_default().to_owned()
}

fn path_of(group: &str, version: &str) -> String {
    if group.is_empty() { format!("api/{version}") } else { format!("apis/{group}/{version}") }
}

/// Replaces the references in a schema by the schemas of `all`. A reference within itself becomes an object without fields.
fn resolved<'a>(schema: &'a Value, all: &'a Map<String, Value>, within: &mut Vec<&'a str>) -> Value {
    let reference = reference(schema);
    let schema = match reference {
        None => schema,
        Some(name) if within.contains(&name) => return json!({"type": "object"}),
        Some(name) => all.get(name).unwrap_or(&Value::Null),
    };
    within.extend(reference);
    let mut result = schema.clone();
    if let Some(properties) = schema["properties"].as_object() {
        let properties =
            properties.iter().map(|(name, property)| (name.clone(), resolved(property, all, within)));
        result["properties"] = Value::Object(properties.collect());
    }
    for part in ["additionalProperties", "items"] {
        if schema[part].is_object() {
            result[part] = resolved(&schema[part], all, within);
        }
    }
    if reference.is_some() {
        within.pop();
    }
    result
}

/// Returns the name of the schema that a schema refers to, directly or in `allOf`.
fn reference(schema: &Value) -> Option<&str> {
    let direct = schema["$ref"].as_str().and_then(|reference| reference.rsplit('/').next());
    direct.or_else(|| schema["allOf"].as_array()?.iter().find_map(reference))
}
