//! Limit ranges.

mod defaults;
mod validate;

use serde_json::Value;
use windlass_store::object_meta as meta;
use windlass_wire::ApiError;

use crate::kind::{Kind, KindConfig, Prepare, WriteContext};

pub(crate) static KIND: Kind =
    Kind { defaults: &LimitRanges, prepare: &LimitRanges, validate: &LimitRanges, ..Kind::new(CONFIG) };

const CONFIG: KindConfig = KindConfig { create_on_update: true, ..KindConfig::DATA };

pub(super) struct LimitRanges;

impl Prepare for LimitRanges {
    fn prepare_create(&self, cx: &WriteContext<'_>, object: &mut Value) -> Result<(), ApiError> {
        if meta::name(object).is_empty() {
            meta::set(object, "name", Some(cx.env.uid().into()));
        }
        Ok(())
    }
}
