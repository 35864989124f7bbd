//! Service cidrs.

mod table;

use crate::kind::{Kind, KindConfig, Writes};

pub(crate) static KIND: Kind = Kind { table: &table::TABLE, ..Kind::new(CONFIG) };

const CONFIG: KindConfig = KindConfig {
    writes: Writes::STATUS_ONLY,
    unsupported: Some("services get no addresses from the range"),
    ..KindConfig::DATA
};
