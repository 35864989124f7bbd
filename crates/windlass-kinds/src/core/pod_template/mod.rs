//! Pod templates.

mod defaults;
mod table;
mod validate;

use crate::kind::{Kind, KindConfig};

pub(crate) static KIND: Kind =
    Kind { defaults: &PodTemplates, validate: &PodTemplates, table: &table::TABLE, ..Kind::new(CONFIG) };

const CONFIG: KindConfig = KindConfig {
    pod_spec: Some("/template/spec"),
    returns_deleted_object: true,
    generation: crate::kind::Generation::All,
    ..KindConfig::SPEC
};

struct PodTemplates;
