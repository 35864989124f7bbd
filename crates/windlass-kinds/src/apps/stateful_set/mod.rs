//! Stateful sets.

mod defaults;
mod table;
mod validate;

use serde_json::{Value, json};
use windlass_wire::{ApiError, names};

use crate::kind::{Kind, KindConfig, Prepare, WriteContext};

pub(crate) static KIND: Kind = Kind {
    defaults: &StatefulSets,
    prepare: &StatefulSets,
    validate: &StatefulSets,
    table: &table::TABLE,
    ..Kind::new(CONFIG)
};

const CONFIG: KindConfig =
    KindConfig { pod_spec: Some("/spec/template/spec"), name: names::label_name, ..KindConfig::SPEC };

pub(super) struct StatefulSets;

impl Prepare for StatefulSets {
    fn prepare_create(&self, _cx: &WriteContext<'_>, object: &mut Value) -> Result<(), ApiError> {
        object["status"] = json!({"replicas": 0, "availableReplicas": 0});
        Ok(())
    }
}
