//! The parts of a CustomResourceDefinition that the generators read.

use std::collections::BTreeMap;

use serde::Deserialize;
use serde_json::Value;

/// The parts of a CustomResourceDefinition (`apiextensions.k8s.io/v1`) for which code is generated.
#[derive(Clone, Debug, Deserialize)]
#[non_exhaustive]
pub struct Definition {
    /// Name and annotations.
    #[serde(default)]
    pub metadata: Metadata,
    /// Names, scope and versions.
    pub spec: Spec,
}

/// Metadata of a definition.
#[derive(Clone, Debug, Default, Deserialize)]
#[non_exhaustive]
pub struct Metadata {
    /// The name, `<plural>.<group>`.
    #[serde(default)]
    pub name: String,
    /// The annotations; some are options of the generators.
    #[serde(default)]
    pub annotations: BTreeMap<String, String>,
}

/// The spec of a definition.
#[derive(Clone, Debug, Deserialize)]
#[non_exhaustive]
pub struct Spec {
    /// The API group.
    pub group: String,
    /// The names of the kind and the resource.
    pub names: Names,
    /// `Namespaced` or `Cluster`.
    pub scope: String,
    /// The versions.
    pub versions: Vec<Version>,
}

/// The names of a kind and the resource.
#[derive(Clone, Debug, Deserialize)]
#[serde(rename_all = "camelCase")]
#[non_exhaustive]
pub struct Names {
    /// The kind.
    pub kind: String,
    /// The name of the resource.
    pub plural: String,
    /// The singular of the resource.
    #[serde(default)]
    pub singular: String,
    /// Short names.
    #[serde(default)]
    pub short_names: Vec<String>,
    /// Categories, such as `all`.
    #[serde(default)]
    pub categories: Vec<String>,
}

/// A version of a definition.
#[derive(Clone, Debug, Deserialize)]
#[serde(rename_all = "camelCase")]
#[non_exhaustive]
pub struct Version {
    /// The name, such as `v1alpha1`.
    pub name: String,
    /// True if the API server serves the version.
    #[serde(default)]
    pub served: bool,
    /// True if objects are stored in the version.
    #[serde(default)]
    pub storage: bool,
    /// True if the API server warns about uses of the version.
    #[serde(default)]
    pub deprecated: bool,
    /// The schema, under `openAPIV3Schema`.
    #[serde(default)]
    pub schema: Value,
    /// The subresources `status` and `scale`.
    #[serde(default)]
    pub subresources: Value,
    /// The columns of `kubectl get`.
    #[serde(default)]
    pub additional_printer_columns: Vec<Value>,
}

impl Definition {
    /// Reads a definition from JSON; a YAML document has the same fields. Returns `None` for another kind of object.
    ///
    /// # Errors
    /// The definition lacks a required field, or has the removed version `v1beta1`.
    pub fn parse(document: &Value) -> Result<Option<Self>, String> {
        if document["kind"] != "CustomResourceDefinition" {
            return Ok(None);
        }
        let name = document["metadata"]["name"].as_str().unwrap_or_default();
        if document["apiVersion"] != "apiextensions.k8s.io/v1" {
            let version = document["apiVersion"].as_str().unwrap_or_default();
            return Err(format!(
                "CRD {name}: apiVersion is {version:?}, but Kubernetes serves only apiextensions.k8s.io/v1"
            ));
        }
        Definition::deserialize(document).map(Some).map_err(|error| format!("CRD {name}: {error}"))
    }

    /// Returns whether objects are in namespaces.
    pub fn is_namespaced(&self) -> bool {
        self.spec.scope == "Namespaced"
    }

    /// Returns the singular of the resource. Default: the kind in lower case.
    pub fn singular(&self) -> String {
        let names = &self.spec.names;
        if names.singular.is_empty() { names.kind.to_lowercase() } else { names.singular.clone() }
    }
}

impl Version {
    /// Returns whether the version has the subresource `name`.
    pub fn has_subresource(&self, name: &str) -> bool {
        !self.subresources[name].is_null()
    }

    /// Returns the structural schema.
    pub fn open_api_schema(&self) -> &Value {
        &self.schema["openAPIV3Schema"]
    }
}
