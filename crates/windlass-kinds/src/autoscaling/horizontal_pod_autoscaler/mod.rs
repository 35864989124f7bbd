//! Horizontal pod autoscalers.

mod defaults;
mod table;
mod validate;
mod version1;

use serde_json::{Value, json};
use windlass_wire::ApiError;

use crate::kind::{Kind, KindConfig, Prepare, WriteContext};

pub(crate) static KIND: Kind = Kind {
    defaults: &Autoscalers,
    prepare: &Autoscalers,
    validate: &Autoscalers,
    table: &table::TABLE,
    convert: version1::convert,
    ..Kind::new(CONFIG)
};

const CONFIG: KindConfig = KindConfig { encoding_annotations: &version1::ANNOTATIONS, ..KindConfig::SPEC };

struct Autoscalers;

impl Prepare for Autoscalers {
    fn prepare_create(&self, cx: &WriteContext<'_>, object: &mut Value) -> Result<(), ApiError> {
        object["status"] = match cx.version {
            "v1" => json!({"desiredReplicas": 0, "currentReplicas": 0}),
            _ => json!({"desiredReplicas": 0, "currentMetrics": null}),
        };
        Ok(())
    }
}
