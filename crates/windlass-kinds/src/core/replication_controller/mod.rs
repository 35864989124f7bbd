//! Replication controllers.

mod defaults;
mod table;
mod validate;

use serde_json::{Value, json};
use windlass_wire::ApiError;

use crate::kind::{Kind, KindConfig, Prepare, WriteContext};

pub(crate) static KIND: Kind = Kind {
    defaults: &ReplicationControllers,
    prepare: &ReplicationControllers,
    validate: &validate::VALIDATION,
    table: &table::TABLE,
    ..Kind::new(CONFIG)
};

const CONFIG: KindConfig = KindConfig {
    registry_path: Some("controllers"),
    pod_spec: Some("/spec/template/spec"),
    orphans_by_default: true,
    selectable: &[("status.replicas", "/status/replicas")],
    ..KindConfig::SPEC
};

pub(super) struct ReplicationControllers;

impl Prepare for ReplicationControllers {
    fn prepare_create(&self, _cx: &WriteContext<'_>, object: &mut Value) -> Result<(), ApiError> {
        object["status"] = json!({"replicas": 0});
        Ok(())
    }
}
