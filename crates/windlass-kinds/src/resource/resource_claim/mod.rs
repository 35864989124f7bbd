//! Resource claims.

mod defaults;
mod table;

use super::CLASSES;
use crate::kind::{Generation, Kind, KindConfig, Writes};

pub(crate) static CLAIMS: Kind =
    Kind { defaults: &Claims { template: false }, table: &table::RESOURCECLAIMS, ..Kind::new(CONFIG) };

pub(crate) static TEMPLATES: Kind =
    Kind { defaults: &Claims { template: true }, table: &table::RESOURCECLAIMTEMPLATES, ..Kind::new(CONFIG) };

const CONFIG: KindConfig = KindConfig {
    has_status_table: false,
    generation: Generation::None,
    writes: Writes::STATUS_ONLY,
    ..CLASSES
};

struct Claims {
    template: bool,
}
