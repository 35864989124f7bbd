//! Resource slices.

mod attributes;
mod capacity;
mod device;
mod nodes;
mod prepare;
mod table;
mod validate;

use super::CLASSES;
use crate::kind::{Kind, KindConfig};

pub(crate) static KIND: Kind =
    Kind { prepare: &Slices, validate: &Slices, table: &table::TABLE, ..Kind::new(SLICES) };

const SLICES: KindConfig = KindConfig {
    selectable: &[
        ("spec.nodeName", "/spec/nodeName"),
        ("spec.driver", "/spec/driver"),
        ("spec.pool.name", "/spec/pool/name"),
    ],
    unsupported_field: Some(|field| {
        format!("field label not supported for resource.k8s.io/v1, Kind=ResourceSlice: {field}")
    }),
    ..CLASSES
};

struct Slices;
