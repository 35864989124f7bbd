//! Priority levels.

mod table;

use super::CONFIG;
use crate::kind::Kind;

pub(crate) static KIND: Kind = Kind { table: &table::TABLE, ..Kind::new(CONFIG) };
