//! The schemas of an OpenAPI document.

use std::collections::BTreeMap;
use std::sync::Arc;

use serde_json::{Map, Value};

use crate::compile::{self, Names};
use crate::graph::{NamedNodes, Node, Schema};

/// The named schemas of an OpenAPI document. The schemas refer to each other by `$ref`.
///
/// ```
/// use serde_json::json;
///
/// let document = json!({
///     "Tree": {"type": "object", "properties": {"left": {"$ref": "#/components/schemas/Tree"}}},
/// });
/// let definitions = windlass_schema::Definitions::compile(document.as_object().unwrap());
/// let tree = definitions.schema("Tree").unwrap();
/// assert!(tree.root().property("left").unwrap().property("left").is_some());
/// ```
#[derive(Clone)]
pub struct Definitions {
    table: Arc<Table>,
    indexes: BTreeMap<Box<str>, u32>,
}

struct Table(Vec<(Box<str>, Node)>);

impl NamedNodes for Table {
    fn node(&self, id: u32) -> &Node {
        &self.0[id as usize].1
    }

    fn name(&self, id: u32) -> &str {
        self.0.get(id as usize).map_or("", |(name, _)| name)
    }
}

impl Definitions {
    /// Compiles the schemas of a document (`components.schemas`). A `$ref` to a schema that is not in the document
    /// allows anything. Like [`Schema::compile`], this never fails.
    pub fn compile(schemas: &Map<String, Value>) -> Self {
        let names: Names<'_> =
            schemas.keys().enumerate().map(|(index, name)| (name.as_str(), index as u32)).collect();
        let rows = schemas.iter().map(|(name, schema)| {
            let mut node = compile::node(schema, 0, &names);
            if let Some(special) = special(name) {
                node.rules.format = Some(special.into());
            }
            (name.as_str().into(), node)
        });
        let table = Arc::new(Table(rows.collect()));
        let indexes = names.iter().map(|(name, index)| ((*name).into(), *index)).collect();
        Self { table, indexes }
    }

    /// Returns a schema by its name.
    pub fn schema(&self, name: &str) -> Option<Schema> {
        let index = *self.indexes.get(name)?;
        Some(Schema::named(Arc::clone(&self.table) as Arc<dyn NamedNodes>, index))
    }
}

/// Returns this crate's format for a type with rules that are not in the schema.
fn special(name: &str) -> Option<&'static str> {
    match name {
        "io.k8s.apimachinery.pkg.api.resource.Quantity" => Some("quantity"),
        "io.k8s.apimachinery.pkg.runtime.RawExtension" => Some("raw"),
        _ => None,
    }
}
