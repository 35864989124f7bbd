//! Migrations: every object of a resource is written again, in the version that the server stores now.

mod table;
mod validate;

use serde_json::{Value, json};
use windlass_wire::ApiError;

use crate::kind::{Kind, KindConfig, Prepare, WriteContext, Writes};

pub(crate) static KIND: Kind =
    Kind { prepare: &Migrations, validate: &Migrations, table: &table::TABLE, ..Kind::new(CONFIG) };

const CONFIG: KindConfig =
    KindConfig { unconditional_update: false, writes: Writes::STATUS_ONLY, ..KindConfig::DATA };

struct Migrations;

impl Prepare for Migrations {
    fn prepare_create(&self, _: &WriteContext<'_>, object: &mut Value) -> Result<(), ApiError> {
        object["status"] = json!({});
        Ok(())
    }
}
