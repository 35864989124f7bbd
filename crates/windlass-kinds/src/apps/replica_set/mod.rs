//! Replica sets.

mod defaults;
mod table;
mod validate;

use serde_json::{Value, json};
use windlass_wire::ApiError;

use crate::kind::{Kind, KindConfig, Prepare, WriteContext};

pub(crate) static KIND: Kind = Kind {
    defaults: &ReplicaSets,
    prepare: &ReplicaSets,
    validate: &validate::VALIDATION,
    table: &table::TABLE,
    ..Kind::new(CONFIG)
};

pub(super) struct ReplicaSets;

impl Prepare for ReplicaSets {
    fn prepare_create(&self, _cx: &WriteContext<'_>, object: &mut Value) -> Result<(), ApiError> {
        object["status"] = json!({"replicas": 0});
        Ok(())
    }
}

const CONFIG: KindConfig = KindConfig { pod_spec: Some("/spec/template/spec"), ..KindConfig::SPEC };
