//! CSI storage capacities.

mod validate;

use crate::kind::{Kind, KindConfig};

pub(crate) static KIND: Kind = Kind { validate: &Capacities, ..Kind::new(CONFIG) };

const CONFIG: KindConfig = KindConfig {
    unconditional_update: false,
    unsupported: Some("the scheduler does not look at the capacity of storage"),
    ..KindConfig::DATA
};

struct Capacities;
