//! Flow schemas.

mod table;
mod validate;

use serde_json::Value;

use super::{CONFIG, zero_is_absent};
use crate::kind::{Defaults, Kind};

pub(crate) static KIND: Kind =
    Kind { defaults: &FlowSchemas, validate: &FlowSchemas, table: &table::TABLE, ..Kind::new(CONFIG) };

struct FlowSchemas;

impl Defaults for FlowSchemas {
    fn default(&self, object: &mut Value) {
        zero_is_absent(object, "/spec", &[("matchingPrecedence", 1000)]);
    }
}
