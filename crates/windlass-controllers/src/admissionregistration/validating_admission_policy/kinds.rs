//! The kinds of the objects and of the parameters of a policy, with their types.

use std::collections::{BTreeMap, BTreeSet};

use http::Request;
use http::header::ACCEPT;
use k8s_openapi::api::admissionregistration::v1::ValidatingAdmissionPolicySpec;
use kube_client::Client;
use serde_json::{Map, Value, json};
use windlass_cel::{Schema, Type};
use windlass_runtime::{Error, Result};

use super::versions::{MAX_KINDS, ServedVersions};

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
            let found = server.versions.kinds_of(rule);
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
    versions: ServedVersions,
    /// The OpenAPI documents of versions; null for a version that is not served.
    documents: BTreeMap<String, Value>,
}

impl<'a> Server<'a> {
    /// Asks the server for its groups. Only these groups become parts of paths: the text of a policy can be anything.
    async fn discover(client: &'a Client) -> Result<Self> {
        let mut server = Self { client, versions: ServedVersions::default(), documents: BTreeMap::new() };
        for path in ["/api", "/apis"] {
            let list = server.get(path, DISCOVERY).await?.unwrap_or_default();
            for group in list["items"].as_array().into_iter().flatten() {
                server.versions.add(group);
            }
        }
        Ok(server)
    }

    /// Returns the type of the objects of a kind; `None` for a kind that is not served.
    async fn type_of(&mut self, group: &str, version: &str, kind: &str) -> Result<Option<Type>> {
        if !self.versions.has(group, version) {
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
