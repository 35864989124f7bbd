//! Network policys.

mod defaults;
mod table;
mod validate;

use crate::kind::{Kind, KindConfig};

pub(crate) static KIND: Kind = Kind {
    defaults: &NetworkPolicies,
    validate: &NetworkPolicies,
    table: &table::TABLE,
    ..Kind::new(CONFIG)
};

const CONFIG: KindConfig = KindConfig {
    unsupported: Some("no traffic is restricted, because pods have no network"),
    ..KindConfig::SPEC
};

struct NetworkPolicies;
