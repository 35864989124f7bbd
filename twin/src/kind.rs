//! The kinds that the generator uses.

use std::sync::Arc;

use serde::Deserialize;
use serde_json::{Value, json};
use windlass_schema::{Catalog, Schema};

/// A kind and examples of objects.
#[derive(Clone, Debug, Deserialize)]
pub(crate) struct Kind {
    /// The path of the group and version, without slashes at the ends.
    pub(crate) prefix: String,
    pub(crate) plural: String,
    #[serde(rename = "kind")]
    pub(crate) name: String,
    #[serde(default = "yes")]
    pub(crate) namespaced: bool,
    /// The probability of being chosen, relative to other kinds.
    pub(crate) weight: u32,
    /// True for a kind with the subresource `scale`.
    #[serde(default)]
    pub(crate) scale: bool,
    /// A small valid object, without `metadata`.
    pub(crate) object: Value,
    /// Merge patches for the object. Most patches give a valid object.
    pub(crate) knobs: Vec<Value>,
    /// Values of `status`. Empty if there is no such subresource.
    #[serde(default)]
    pub(crate) status: Vec<Value>,
    /// Strategic merge patches.
    #[serde(default)]
    pub(crate) strategic: Vec<Value>,
    #[serde(skip)]
    pub(crate) schema: Option<Schema>,
    /// The fields in field selectors, besides name and namespace.
    #[serde(default)]
    pub(crate) fields: Vec<String>,
    /// True for a kind of a CustomResourceDefinition.
    #[serde(default)]
    pub(crate) custom: bool,
}

fn yes() -> bool {
    true
}

impl Kind {
    pub(crate) fn api_version(&self) -> &str {
        self.prefix.split_once('/').map_or(&self.prefix, |(_, version)| version)
    }

    /// Returns an object with this metadata.
    pub(crate) fn example(&self, metadata: Value) -> Value {
        let mut object = json!({"apiVersion": self.api_version(), "kind": self.name, "metadata": metadata});
        crate::player::merge(&mut object, self.object.clone());
        object
    }

    /// Returns the path of the collection.
    pub(crate) fn collection(&self, namespace: &str) -> String {
        match (self.namespaced, namespace) {
            (true, namespace) if !namespace.is_empty() => {
                format!("/{}/namespaces/{namespace}/{}", self.prefix, self.plural)
            }
            _ => format!("/{}/{}", self.prefix, self.plural),
        }
    }
}

/// Returns the built-in kinds.
pub(crate) fn builtin() -> Vec<Arc<Kind>> {
    let kinds: Vec<Kind> = serde_json::from_str(include_str!("kinds.json"))
        .unwrap_or_else(|error| unreachable!("kinds.json: {error}"));
    let catalog = Catalog::builtin();
    let with_schema = |mut kind: Kind| {
        let version = kind.api_version().to_owned();
        let (group, version) = version.split_once('/').unwrap_or(("", &version));
        kind.schema = catalog.schema(group, version, &kind.name);
        Arc::new(kind)
    };
    kinds.into_iter().map(with_schema).collect()
}
