//! CSI drivers.

mod table;
mod validate;

use serde_json::Value;
use windlass_store::object_meta as meta;
use windlass_wire::ApiError;

use super::DRIVERS;
use crate::kind::{Kind, Prepare, WriteContext};

pub(crate) static KIND: Kind =
    Kind { prepare: &Drivers, validate: &Drivers, table: &table::TABLE, ..Kind::new(DRIVERS) };

struct Drivers;

impl Prepare for Drivers {
    fn prepare_update(
        &self,
        _cx: &WriteContext<'_>,
        object: &mut Value,
        old: &Value,
    ) -> Result<(), ApiError> {
        if object.get("spec") != old.get("spec") {
            let generation = meta::integer(old, "generation").unwrap_or_default() + 1;
            meta::set(object, "generation", Some(generation.into()));
        }
        Ok(())
    }
}
