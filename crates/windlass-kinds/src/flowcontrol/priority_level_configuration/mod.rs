//! Priority levels.

mod table;
mod validate;

use serde_json::Value;

use super::{CONFIG, zero_is_absent};
use crate::kind::{Defaults, Kind};

pub(crate) static KIND: Kind =
    Kind { defaults: &PriorityLevels, validate: &PriorityLevels, table: &table::TABLE, ..Kind::new(CONFIG) };

struct PriorityLevels;

impl Defaults for PriorityLevels {
    fn default(&self, object: &mut Value) {
        let queuing = [("handSize", 8), ("queues", 64), ("queueLengthLimit", 50)];
        zero_is_absent(object, "/spec/limited/limitResponse/queuing", &queuing);
    }
}
