//! The scales of workloads.

mod table;

use crate::kind::{Kind, KindConfig};

pub(crate) static KIND: Kind = Kind { table: &table::TABLE, ..Kind::new(KindConfig::SPEC) };
