//! Service cidrs.

mod table;
mod validate;

use crate::kind::{Kind, KindConfig, Writes};

pub(crate) static KIND: Kind = Kind { validate: &Ranges, table: &table::TABLE, ..Kind::new(CONFIG) };

const CONFIG: KindConfig = KindConfig {
    writes: Writes::STATUS_ONLY,
    unsupported: Some("services get no addresses from the range"),
    ..KindConfig::DATA
};

struct Ranges;
