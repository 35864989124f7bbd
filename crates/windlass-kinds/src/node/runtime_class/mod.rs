//! Runtime classes.

mod table;
mod validate;

use crate::kind::{Kind, KindConfig};

pub(crate) static KIND: Kind = Kind { validate: &RuntimeClasses, table: &table::TABLE, ..Kind::new(CONFIG) };

const CONFIG: KindConfig =
    KindConfig { create_on_update: true, unconditional_update: false, ..KindConfig::DATA };

struct RuntimeClasses;
