//! Objects as the rows that a person sees.

use serde_json::{Map, Value, json};

use crate::api::Call;
use crate::env::Env;
use crate::resource::Resource;
use crate::wire::table::{IncludeObject, TableKind, TableOptions};
use crate::wire::{ApiError, TableVersion};

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

impl Call<'_> {
    /// What the rows of a table shall carry.
    pub(crate) fn include_object(&self) -> Result<IncludeObject, ApiError> {
        IncludeObject::parse(self.query.get("includeObject"))
    }

    pub(crate) fn table(
        &self,
        version: TableVersion,
        objects: &[&Value],
        list: &Value,
    ) -> Result<Value, ApiError> {
        let include = self.include_object()?;
        Ok(table(&self.resource, &self.api.env, version, include, objects, list, true))
    }
}
