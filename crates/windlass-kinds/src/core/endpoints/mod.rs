//! Endpoints.

mod table;
mod validate;

use crate::kind::{Kind, KindConfig};

pub(crate) static KIND: Kind = Kind { validate: &Endpoints, table: &table::TABLE, ..Kind::new(CONFIG) };

const CONFIG: KindConfig = KindConfig {
    registry_path: Some("services/endpoints"),
    deprecation: Some("v1 Endpoints is deprecated in v1.33+; use discovery.k8s.io/v1 EndpointSlice"),
    create_on_update: true,
    ..KindConfig::DATA
};

pub(super) struct Endpoints;
