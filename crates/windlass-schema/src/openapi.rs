//! OpenAPI documents, with the parts that clients read: `kubectl` needs the parameters of `PATCH`, the
//! components of kinds (`explain`), and patch strategies. There is a v3 document for each group-version, and
//! a v2 document of all group-versions.

mod components;
mod custom;
mod discovery;
mod extension;
mod metadata;
mod paths;
mod pieces;
mod protobuf;
mod version_two;

use std::collections::BTreeSet;

use serde_json::{Map, Value, json};

pub use self::discovery::{discovery_names, openapi_v3_discovery};
pub use self::extension::ExtensionDocument;
pub use self::protobuf::openapi_v2_protobuf;
pub use self::version_two::openapi_v2;
use crate::catalog::{Catalog, GroupVersion};

const META: &str = "io.k8s.apimachinery.pkg.apis.meta.v1";

/// A custom kind for a document.
#[derive(Clone, Copy, Debug)]
pub struct CustomKind<'s> {
    /// The kind, in CamelCase.
    pub kind: &'s str,
    /// The list kind.
    pub list_kind: &'s str,
    /// The plural, in lower case.
    pub plural: &'s str,
    /// The `openAPIV3Schema` of the kind. `None` allows any object.
    pub schema: Option<&'s Value>,
    /// The fields that field selectors may use, such as `spec.mode`.
    pub selectable_fields: &'s [String],
}

/// Returns the document of a group-version. `custom` describes the custom kinds of the group-version.
///
/// ```
/// use windlass_schema::{Catalog, openapi_v3};
///
/// let catalog = Catalog::builtin();
/// let document = openapi_v3(&catalog, catalog.group_version("apps", "v1").unwrap(), &[]);
/// let patch = &document["paths"]["/apis/apps/v1/namespaces/{namespace}/deployments/{name}"]["patch"];
/// assert_eq!(patch["x-kubernetes-group-version-kind"]["kind"], "Deployment");
/// assert!(document["components"]["schemas"]["io.k8s.api.apps.v1.Deployment"].is_object());
/// ```
pub fn openapi_v3(catalog: &Catalog, group_version: &GroupVersion, custom: &[CustomKind<'_>]) -> Value {
    let mut document = Document { catalog, group_version, custom, wanted: BTreeSet::new() };
    let paths = paths::write(&mut document);
    let schemas = components::write(&mut document);
    assemble(catalog, !custom.is_empty(), paths, schemas)
}

/// Puts the parts of a document together.
fn assemble(
    catalog: &Catalog,
    is_custom: bool,
    paths: Map<String, Value>,
    schemas: Map<String, Value>,
) -> Value {
    let (title, version) = if is_custom {
        ("Kubernetes CRD Swagger", "v0.1.0")
    } else {
        ("Kubernetes", catalog.minor_version())
    };
    let token = json!({
        "type": "apiKey",
        "description": "Bearer Token authentication",
        "name": "authorization",
        "in": "header",
    });
    json!({
        "openapi": "3.0.0",
        "info": {"title": title, "version": version},
        "paths": paths,
        "components": {"schemas": schemas, "securitySchemes": {"BearerToken": token}},
    })
}

/// A document that is being built.
struct Document<'d> {
    catalog: &'d Catalog,
    group_version: &'d GroupVersion,
    custom: &'d [CustomKind<'d>],
    /// The definitions that the document refers to and does not contain yet.
    wanted: BTreeSet<String>,
}

impl Document<'_> {
    /// Returns a reference to a definition and adds the definition to the document.
    fn reference(&mut self, definition: &str) -> Value {
        self.wanted.insert(definition.to_owned());
        json!({"$ref": format!("#/components/schemas/{definition}")})
    }

    /// Returns the name of the definition of a kind.
    fn definition(&self, group: &str, version: &str, kind: &str) -> Option<String> {
        let gv = self.group_version;
        let custom = |custom: &&CustomKind<'_>| custom.kind == kind || custom.list_kind == kind;
        if (&*gv.group, &*gv.version) == (group, version) && self.custom.iter().any(|row| custom(&row)) {
            return Some(custom_definition(group, version, kind));
        }
        self.catalog.schema(group, version, kind)?.root().definition().map(str::to_owned)
    }
}

/// Returns the name of the definition of a custom kind: reversed group, version, kind.
fn custom_definition(group: &str, version: &str, kind: &str) -> String {
    let group: Vec<&str> = group.rsplit('.').collect();
    format!("{}.{version}.{kind}", group.join("."))
}

/// Builds an object from pairs.
fn object<const N: usize>(members: [(&str, Value); N]) -> Map<String, Value> {
    members.into_iter().map(|(name, value)| (name.to_owned(), value)).collect()
}

#[cfg(test)]
mod tests;
