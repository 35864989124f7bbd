//! Controller revisions.

mod table;
mod validate;

use crate::kind::{Kind, KindConfig};

pub(crate) static KIND: Kind =
    Kind { validate: &ControllerRevisions, table: &table::TABLE, ..Kind::new(KindConfig::DATA) };

pub(super) struct ControllerRevisions;
