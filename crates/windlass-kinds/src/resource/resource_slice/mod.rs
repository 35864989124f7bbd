//! Resource slices.

mod table;

use super::CLASSES;
use crate::kind::{Kind, KindConfig};

pub(crate) static KIND: Kind = Kind { table: &table::TABLE, ..Kind::new(SLICES) };

const SLICES: KindConfig = KindConfig {
    selectable: &[("spec.nodeName", "/spec/nodeName"), ("spec.driver", "/spec/driver")],
    ..CLASSES
};
