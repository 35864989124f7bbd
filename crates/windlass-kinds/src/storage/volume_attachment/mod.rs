//! Volume attachments.

mod table;

use super::DRIVERS;
use crate::kind::{Kind, KindConfig, Writes};

pub(crate) static KIND: Kind = Kind { table: &table::TABLE, ..Kind::new(CONFIG) };

const CONFIG: KindConfig = KindConfig { writes: Writes::STATUS_ONLY, ..DRIVERS };
