//! Api services.

mod table;
mod validate;

use windlass_wire::names;

use crate::kind::{Kind, KindConfig, Writes};

pub(crate) static KIND: Kind = Kind { validate: &ApiServices, table: &table::TABLE, ..Kind::new(CONFIG) };

const CONFIG: KindConfig = KindConfig {
    has_status_table: false,
    name: names::path_segment_name,
    unconditional_update: false,
    writes: Writes::STATUS_ONLY,
    ..KindConfig::DATA
};

struct ApiServices;
