//! Deployments.

mod defaults;
mod table;
mod validate;

use serde_json::{Value, json};
use windlass_wire::ApiError;

use crate::kind::{Generation, Kind, KindConfig, Prepare, WriteContext, Writes};
use crate::subresource::Subresource;

pub(crate) static KIND: Kind = Kind {
    defaults: &Deployments,
    prepare: &Deployments,
    validate: &validate::VALIDATION,
    table: &table::TABLE,
    ..Kind::new(CONFIG)
};

const CONFIG: KindConfig = KindConfig {
    pod_spec: Some("/spec/template/spec"),
    // The controller copies annotations to replica sets.
    generation: Generation::SpecAndAnnotations,
    encoding_annotations: &["deprecated.deployment.rollback.rollbackTo"],
    // The controller writes the number of the rollout, an annotation, with the status.
    writes: &[
        (Subresource::None, Writes::AllBut(&["status"])),
        (Subresource::Status, Writes::AllBut(&["spec", "metadata.labels"])),
    ],
    ..KindConfig::SPEC
};

pub(super) struct Deployments;

impl Prepare for Deployments {
    fn prepare_create(&self, _cx: &WriteContext<'_>, object: &mut Value) -> Result<(), ApiError> {
        object["status"] = json!({});
        Ok(())
    }
}
