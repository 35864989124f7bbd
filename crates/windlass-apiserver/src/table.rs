//! Objects as a `Table`, which `kubectl get` prints.

use serde_json::{Map, Value, json};

use crate::env::Env;
use crate::resource::Resource;
use crate::wire::TableVersion;
use crate::wire::table::{IncludeObject, TableKind, TableOptions};

impl Resource {
    /// The columns of the resource in a `Table`.
    pub(crate) fn table_kind(&self) -> TableKind {
        match &self.custom {
            Some(custom) => TableKind::custom(&custom.columns),
            None => TableKind::built_in(&self.group, &self.plural),
        }
    }
}

/// Makes a `Table` of objects. Its metadata is that of `list`; for a single object, `list` is that object.
pub(crate) fn table(
    resource: &Resource,
    env: &Env,
    version: TableVersion,
    include: IncludeObject,
    objects: &[&Value],
    list: &Value,
    columns: bool,
) -> Value {
    let mut metadata = Map::new();
    for field in ["resourceVersion", "continue", "remainingItemCount"] {
        if let Some(value) = list.get("metadata").and_then(|metadata| metadata.get(field)) {
            metadata.insert(field.to_owned(), value.clone());
        }
    }
    let options = TableOptions { include, version, headers: columns, now: env.now() };
    resource.table_kind().table(json!(metadata), objects.iter().copied(), options)
}
