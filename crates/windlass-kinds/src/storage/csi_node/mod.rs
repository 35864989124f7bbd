//! CSI nodes.

mod table;

use super::DRIVERS;
use crate::kind::Kind;

pub(crate) static KIND: Kind = Kind { table: &table::TABLE, ..Kind::new(DRIVERS) };
