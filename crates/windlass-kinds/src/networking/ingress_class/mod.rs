//! Ingress classes.

mod defaults;
mod table;
mod validate;

use crate::kind::{Kind, KindConfig};

pub(crate) static KIND: Kind =
    Kind { defaults: &IngressClasses, validate: &IngressClasses, table: &table::TABLE, ..Kind::new(CONFIG) };

const CONFIG: KindConfig = KindConfig {
    unsupported: Some("no ingress uses the class, because there is no ingress controller"),
    ..KindConfig::SPEC
};

struct IngressClasses;
