//! Component statuses.

mod table;

use crate::kind::{Kind, KindConfig};

pub(crate) static KIND: Kind = Kind { table: &table::TABLE, ..Kind::new(CONFIG) };

const CONFIG: KindConfig =
    KindConfig { deprecation: Some("v1 ComponentStatus is deprecated in v1.19+"), ..KindConfig::SPEC };
