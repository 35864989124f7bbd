//! CSI nodes.

mod table;
mod validate;

use super::DRIVERS;
use crate::kind::Kind;

pub(crate) static KIND: Kind = Kind { validate: &Nodes, table: &table::TABLE, ..Kind::new(DRIVERS) };

struct Nodes;
