//! Service accounts.

mod table;

use serde_json::{Value, json};
use windlass_wire::ApiError;

use crate::kind::{Kind, KindConfig, Prepare, WriteContext};

pub(crate) static KIND: Kind = Kind { prepare: &ServiceAccounts, table: &table::TABLE, ..Kind::new(CONFIG) };

const CONFIG: KindConfig = KindConfig { returns_deleted_object: true, ..KindConfig::DATA };

pub(super) struct ServiceAccounts;

/// Keeps only the names of the secrets.
fn keep_names(object: &mut Value) {
    let secrets = object.get_mut("secrets").and_then(Value::as_array_mut);
    for secret in secrets.into_iter().flatten() {
        let name = secret.get("name").filter(|name| !name.is_null()).cloned();
        *secret = name.map_or_else(|| json!({}), |name| json!({"name": name}));
    }
}

impl Prepare for ServiceAccounts {
    fn prepare_create(&self, _cx: &WriteContext<'_>, object: &mut Value) -> Result<(), ApiError> {
        keep_names(object);
        Ok(())
    }

    fn prepare_update(
        &self,
        _cx: &WriteContext<'_>,
        object: &mut Value,
        _old: &Value,
    ) -> Result<(), ApiError> {
        keep_names(object);
        Ok(())
    }
}
