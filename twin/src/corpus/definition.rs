//! A CRD of the corpus.

use serde_json::{Value, json};

use super::exchange::NAMESPACE;
use super::rule::{Rule, collect};

/// A CRD.
pub(super) struct Definition {
    pub(super) json: Value,
    pub(super) name: String,
    pub(super) kind: String,
    group: String,
    plural: String,
    is_namespaced: bool,
    pub(super) versions: Vec<Version>,
}

/// A served version of a CRD.
pub(super) struct Version {
    pub(super) name: String,
    pub(super) schema: Value,
    pub(super) has_status: bool,
    /// The rules at all levels of the schema.
    pub(super) rules: Vec<Rule>,
}

impl Definition {
    pub(super) fn new(mut json: Value) -> Self {
        json["metadata"]["annotations"][OWNER] = "true".into();
        let text = |value: &Value| value.as_str().unwrap_or_default().to_owned();
        let spec = &json["spec"];
        let served =
            spec["versions"].as_array().into_iter().flatten().filter(|version| version["served"] == true);
        Self {
            name: text(&json["metadata"]["name"]),
            kind: text(&spec["names"]["kind"]),
            group: text(&spec["group"]),
            plural: text(&spec["names"]["plural"]),
            is_namespaced: spec["scope"] == "Namespaced",
            versions: served.map(Version::new).collect(),
            json,
        }
    }

    /// Returns the path of the objects of a version.
    pub(super) fn path(&self, version: &Version) -> String {
        let (group, plural, version) = (&self.group, &self.plural, &version.name);
        if self.is_namespaced {
            format!("/apis/{group}/{version}/namespaces/{NAMESPACE}/{plural}")
        } else {
            format!("/apis/{group}/{version}/{plural}")
        }
    }

    /// Adds the type and the metadata to the fields of an object.
    pub(super) fn complete(&self, version: &Version, mut object: Value, name: &str) -> Value {
        if !object.is_object() {
            object = json!({});
        }
        object["apiVersion"] = format!("{}/{}", self.group, version.name).into();
        object["kind"] = self.kind.as_str().into();
        object["metadata"] = json!({"name": name});
        object
    }
}

/// The annotation of the CRDs that a run has created.
pub(super) const OWNER: &str = "windlass.dev/corpus";

impl Version {
    fn new(json: &Value) -> Self {
        let schema = json["schema"]["openAPIV3Schema"].clone();
        Self {
            name: json["name"].as_str().unwrap_or_default().to_owned(),
            has_status: json["subresources"]["status"].is_object(),
            rules: collect(&schema),
            schema,
        }
    }
}
