//! Resource quotas.

mod table;
mod validate;

use serde_json::{Value, json};
use windlass_wire::ApiError;

use crate::kind::{Kind, KindConfig, Prepare, WriteContext};

pub(crate) static KIND: Kind =
    Kind { prepare: &ResourceQuotas, validate: &ResourceQuotas, table: &table::TABLE, ..Kind::new(CONFIG) };

const CONFIG: KindConfig = KindConfig { returns_deleted_object: true, ..KindConfig::DATA };

pub(super) struct ResourceQuotas;

impl Prepare for ResourceQuotas {
    fn prepare_create(&self, _cx: &WriteContext<'_>, object: &mut Value) -> Result<(), ApiError> {
        object["status"] = json!({});
        Ok(())
    }
}
