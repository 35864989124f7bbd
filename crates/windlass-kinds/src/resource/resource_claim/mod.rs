//! Resource claims.

mod admin;
mod defaults;
mod prepare;
mod request_names;
mod rights;
mod spec;
mod status;
mod table;
mod validate;

use super::CLASSES;
use crate::kind::{Generation, Kind, KindConfig, Writes};

pub(crate) static CLAIMS: Kind = Kind {
    defaults: &Claims { template: false },
    prepare: &Claims { template: false },
    validate: &Claims { template: false },
    table: &table::RESOURCECLAIMS,
    ..Kind::new(CONFIG)
};

pub(crate) static TEMPLATES: Kind = Kind {
    defaults: &Claims { template: true },
    prepare: &Claims { template: true },
    validate: &Claims { template: true },
    table: &table::RESOURCECLAIMTEMPLATES,
    ..Kind::new(CONFIG)
};

const CONFIG: KindConfig = KindConfig {
    has_status_table: false,
    generation: Generation::None,
    writes: Writes::STATUS_ONLY,
    ..CLASSES
};

struct Claims {
    template: bool,
}

impl Claims {
    /// Returns the JSON pointer to the spec of the claim.
    fn spec(&self) -> &'static str {
        if self.template { "/spec/spec" } else { "/spec" }
    }
}
