//! Storage classes.

mod table;
mod validate;

pub(super) use validate::{validate_parameters, validate_provisioner};

use super::CLASSES;
use crate::kind::Kind;

pub(crate) static KIND: Kind = Kind { validate: &StorageClasses, table: &table::TABLE, ..Kind::new(CLASSES) };

struct StorageClasses;
