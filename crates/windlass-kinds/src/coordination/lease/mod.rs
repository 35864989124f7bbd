//! Leases.

mod table;
mod validate;

use serde_json::Value;
use windlass_wire::ApiError;

use crate::json::object_mut;
use crate::kind::{Kind, KindConfig, Prepare, WriteContext};

pub(crate) static KIND: Kind =
    Kind { prepare: &Leases, validate: &Leases, table: &table::TABLE, ..Kind::new(CONFIG) };

const CONFIG: KindConfig =
    KindConfig { create_on_update: true, unconditional_update: false, ..KindConfig::DATA };

struct Leases;

/// Drops the fields of coordinated leader election, which is off by default.
fn drop_disabled(object: &mut Value) {
    if let Some(spec) = object_mut(object, "spec") {
        spec.remove("strategy");
        spec.remove("preferredHolder");
    }
}

impl Prepare for Leases {
    fn prepare_create(&self, _cx: &WriteContext<'_>, object: &mut Value) -> Result<(), ApiError> {
        drop_disabled(object);
        Ok(())
    }

    fn prepare_update(
        &self,
        _cx: &WriteContext<'_>,
        object: &mut Value,
        _old: &Value,
    ) -> Result<(), ApiError> {
        drop_disabled(object);
        Ok(())
    }
}
