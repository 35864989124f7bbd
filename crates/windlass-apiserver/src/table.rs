//! Objects as the rows that a person sees.

use serde_json::{Map, Value, json};

use crate::env::Env;
use crate::resource::Resource;
use crate::wire::TableVersion;
use crate::wire::table::{IncludeObject, TableKind, TableOptions};

impl Resource {
    fn table_kind(&self) -> TableKind {
        match &self.custom {
            Some(custom) => TableKind::custom(&custom.columns),
            None => TableKind::built_in(&self.group, &self.plural),
        }
    }
}

/// Objects as a `Table`; its metadata is that of `list`, or the version of the one object that `list` then is.
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
