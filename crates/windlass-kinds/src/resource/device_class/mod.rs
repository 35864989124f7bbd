//! Device classes.

mod table;
mod validate;

use super::CLASSES;
use crate::kind::Kind;

pub(crate) static KIND: Kind = Kind { validate: &Classes, table: &table::TABLE, ..Kind::new(CLASSES) };

struct Classes;
