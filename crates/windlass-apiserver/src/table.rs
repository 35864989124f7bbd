//! Objects as a `Table` for `kubectl get`.

use serde_json::{Map, Value, json};

use crate::resource::{Resource, ScalePaths};
use crate::store::Env;
use crate::wire::TableVersion;
use windlass_kinds::table::{IncludeObject, TableKind, TableOptions};

impl Resource {
    /// Returns the columns of the resource in a `Table`.
    pub(crate) fn table_kind(&self) -> TableKind {
        match &self.custom {
            Some(custom) => custom.table.clone(),
            None => TableKind::built_in(self.strategy.table),
        }
    }

    /// Returns the columns of the `Scale` of the resource.
    pub(crate) fn scale_table_kind(&self) -> TableKind {
        match self.custom.as_ref().and_then(|custom| custom.scale.as_ref()) {
            Some(paths) => TableKind::custom(&scale_columns(paths)),
            None => TableKind::built_in(windlass_kinds::of("autoscaling", "scales").table),
        }
    }
}

fn scale_columns(paths: &ScalePaths) -> Vec<Value> {
    let counts = [
        (&paths.spec_replicas, "Desired", ".spec.replicas"),
        (&paths.status_replicas, "Available", ".status.replicas"),
    ];
    let counts = counts.into_iter().filter(|(path, ..)| !path.is_empty());
    let counts = counts.map(|(_, name, path)| json!({"name": name, "type": "integer", "jsonPath": path}));
    let age = json!({"name": "Age", "type": "date", "jsonPath": ".metadata.creationTimestamp"});
    counts.chain([age]).collect()
}

/// Makes a `Table` of objects. The metadata is the metadata of `list`; for a single object, `list` is that
/// object.
pub(crate) fn table(
    kind: &TableKind,
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
    kind.table(json!(metadata), objects.iter().copied(), options)
}
