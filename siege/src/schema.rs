//! The resources and schemas that a server describes.

use std::collections::HashMap;

use serde_json::Value;

use crate::Result;
use crate::client::{Call, Connection};

/// A resource, or a subresource, with the schema of the objects.
#[derive(Clone, Debug)]
pub(crate) struct Resource {
    /// `/api/v1` or `/apis/GROUP/VERSION`.
    pub(crate) root: String,
    pub(crate) plural: String,
    /// Empty for the resource itself.
    pub(crate) subresource: String,
    pub(crate) api_version: String,
    pub(crate) kind: String,
    pub(crate) is_namespaced: bool,
    pub(crate) verbs: Vec<String>,
    /// The name of the schema of the kind.
    pub(crate) schema: Option<String>,
}

impl Resource {
    /// Returns the path of the collection, or of the object `name`.
    pub(crate) fn path(&self, namespace: &str, name: &str) -> String {
        let Self { root, plural, subresource, .. } = self;
        let inside = if self.is_namespaced { format!("/namespaces/{namespace}") } else { String::new() };
        let mut path = format!("{root}{inside}/{plural}");
        for part in [name, subresource].into_iter().filter(|part| !part.is_empty()) {
            path.push('/');
            path.push_str(part);
        }
        path
    }
}

/// The resources of a server, and the schemas of the kinds.
#[derive(Debug, Default)]
pub(crate) struct Description {
    pub(crate) resources: Vec<Resource>,
    schemas: HashMap<String, Value>,
}

impl Description {
    /// Asks a server for the resources and the schemas.
    ///
    /// # Errors
    /// The server does not describe the resources.
    pub(crate) async fn of(server: &Connection) -> Result<Self> {
        let mut description = Self::default();
        for path in ["/api", "/apis"] {
            let mut call = Call::get(path);
            call.accept = "application/json;g=apidiscovery.k8s.io;v=v2;as=APIGroupDiscoveryList";
            let groups = server.send(call).await?.json();
            for group in array(&groups["items"]) {
                let name = text(&group["metadata"]["name"]);
                for version in array(&group["versions"]) {
                    description.add_version(server, name, version).await?;
                }
            }
        }
        if description.resources.is_empty() {
            return Err("the server describes no resources".into());
        }
        Ok(description)
    }

    async fn add_version(&mut self, server: &Connection, group: &str, version: &Value) -> Result {
        let version_name = text(&version["version"]);
        let (root, api_version) = if group.is_empty() {
            (format!("/api/{version_name}"), version_name.to_owned())
        } else {
            (format!("/apis/{group}/{version_name}"), format!("{group}/{version_name}"))
        };
        let document = server.send(Call::get(format!("/openapi/v3{root}"))).await?.json();
        let mut kinds = HashMap::new();
        for (name, schema) in document["components"]["schemas"].as_object().into_iter().flatten() {
            for kind in array(&schema["x-kubernetes-group-version-kind"]) {
                kinds.insert((kind["group"].to_string(), kind["kind"].to_string()), name.clone());
            }
            self.schemas.insert(name.clone(), schema.clone());
        }
        for resource in array(&version["resources"]) {
            let mut parts = vec![resource];
            parts.extend(array(&resource["subresources"]));
            for part in parts {
                let kind = &part["responseKind"];
                // The group of a kind may be missing: the group of the version.
                let of_kind =
                    if text(&kind["group"]).is_empty() { Value::from(group) } else { kind["group"].clone() };
                self.resources.push(Resource {
                    root: root.clone(),
                    plural: text(&resource["resource"]).to_owned(),
                    subresource: text(&part["subresource"]).to_owned(),
                    api_version: api_version.clone(),
                    kind: text(&kind["kind"]).to_owned(),
                    is_namespaced: resource["scope"] == "Namespaced",
                    verbs: array(&part["verbs"]).map(text).map(str::to_owned).collect(),
                    schema: kinds.get(&(of_kind.to_string(), kind["kind"].to_string())).cloned(),
                });
            }
        }
        Ok(())
    }

    /// Returns a schema by name, or by a reference.
    pub(crate) fn schema(&self, name: &str) -> Option<&Value> {
        self.schemas.get(name.rsplit('/').next().unwrap_or(name))
    }
}

pub(crate) fn array(value: &Value) -> impl Iterator<Item = &Value> {
    value.as_array().into_iter().flatten()
}

pub(crate) fn text(value: &Value) -> &str {
    value.as_str().unwrap_or_default()
}
