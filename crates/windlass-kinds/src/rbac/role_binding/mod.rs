//! Role bindings.

mod defaults;
mod table;
mod validate;

use serde_json::Value;
use windlass_wire::ApiError;

use super::{CONFIG, escalation};
use crate::kind::{Admission, Kind, WriteContext};

pub(crate) static KIND: Kind = Kind {
    defaults: &Bindings,
    validate: &Bindings,
    admission: &Bindings,
    table: &table::TABLE,
    ..Kind::new(CONFIG)
};

struct Bindings;

impl Admission for Bindings {
    fn authorize(&self, cx: &WriteContext<'_>, object: &Value, old: Option<&Value>) -> Result<(), ApiError> {
        escalation::of_binding(cx, object, old)
    }
}
