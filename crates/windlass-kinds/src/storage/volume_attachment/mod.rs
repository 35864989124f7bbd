//! Volume attachments.

mod table;
mod validate;

use serde_json::{Value, json};
use windlass_wire::ApiError;

use super::DRIVERS;
use crate::kind::{Kind, KindConfig, Prepare, WriteContext, Writes};

pub(crate) static KIND: Kind =
    Kind { prepare: &Attachments, validate: &Attachments, table: &table::TABLE, ..Kind::new(CONFIG) };

const CONFIG: KindConfig = KindConfig { writes: Writes::STATUS_ONLY, ..DRIVERS };

struct Attachments;

impl Prepare for Attachments {
    fn prepare_create(&self, _: &WriteContext<'_>, object: &mut Value) -> Result<(), ApiError> {
        object["status"] = json!({"attached": false});
        Ok(())
    }
}
