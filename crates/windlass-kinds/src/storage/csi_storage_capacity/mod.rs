//! CSI storage capacities.

use crate::kind::{Kind, KindConfig};

pub(crate) static KIND: Kind = Kind::new(CONFIG);

const CONFIG: KindConfig = KindConfig {
    unconditional_update: false,
    unsupported: Some("the scheduler does not look at the capacity of storage"),
    ..KindConfig::DATA
};
