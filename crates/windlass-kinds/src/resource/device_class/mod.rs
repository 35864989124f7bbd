//! Device classes.

mod table;

use super::CLASSES;
use crate::kind::Kind;

pub(crate) static KIND: Kind = Kind { table: &table::TABLE, ..Kind::new(CLASSES) };
