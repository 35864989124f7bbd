//! Pod disruption budgets.

mod table;
mod validate;

use serde_json::{Value, json};
use windlass_wire::ApiError;

use crate::kind::{Kind, KindConfig, Prepare, WriteContext};

pub(crate) static KIND: Kind = Kind {
    prepare: &DisruptionBudgets,
    validate: &DisruptionBudgets,
    table: &table::TABLE,
    ..Kind::new(CONFIG)
};

const CONFIG: KindConfig = KindConfig { unconditional_update: false, ..KindConfig::SPEC };

struct DisruptionBudgets;

impl Prepare for DisruptionBudgets {
    fn prepare_create(&self, _cx: &WriteContext<'_>, object: &mut Value) -> Result<(), ApiError> {
        object["status"] =
            json!({"currentHealthy": 0, "desiredHealthy": 0, "disruptionsAllowed": 0, "expectedPods": 0});
        Ok(())
    }
}
