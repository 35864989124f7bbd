//! Objects as the rows that a person sees.

use serde_json::{Value, json};

use crate::api::Call;
use crate::env::Env;
use crate::resource::Resource;
use crate::wire::TableVersion;

/// How much of an object goes along with its row.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Include {
    None,
    Metadata,
    Object,
}

/// Objects as a `Table`; its metadata is that of `list`.
pub(crate) fn table(
    _resource: &Resource,
    _env: &Env,
    version: TableVersion,
    include: Include,
    objects: &[&Value],
    list: &Value,
    columns: bool,
) -> Value {
    let rows: Vec<Value> = objects
        .iter()
        .map(|object| {
            let shown = match include {
                Include::None => Value::Null,
                Include::Metadata => crate::respond::partial_metadata(object, "meta.k8s.io/v1"),
                Include::Object => (*object).clone(),
            };
            let created = crate::meta::text(object, "creationTimestamp");
            json!({"cells": [crate::meta::name(object), created], "object": shown})
        })
        .collect();
    let definitions = if columns {
        json!([
            {"name": "Name", "type": "string", "format": "name", "description": "", "priority": 0},
            {"name": "Created At", "type": "date", "format": "", "description": "", "priority": 0},
        ])
    } else {
        json!([])
    };
    let metadata = list.get("metadata").cloned().unwrap_or_else(|| json!({}));
    json!({
        "kind": "Table",
        "apiVersion": version.api_version(),
        "metadata": {"resourceVersion": metadata.get("resourceVersion").cloned().unwrap_or_default()},
        "columnDefinitions": definitions,
        "rows": rows,
    })
}

impl Call<'_> {
    pub(crate) fn table(&self, version: TableVersion, objects: &[&Value], list: &Value) -> Value {
        let include = match self.query.text("includeObject") {
            "None" => Include::None,
            "Object" => Include::Object,
            _ => Include::Metadata,
        };
        table(&self.resource, &self.api.env, version, include, objects, list, true)
    }
}
