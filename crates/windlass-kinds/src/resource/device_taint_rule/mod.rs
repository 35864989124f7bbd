//! Rules that taint devices, as a driver can taint its own devices.

mod table;
mod validate;

use serde_json::{Value, json};
use windlass_wire::ApiError;

use super::CLASSES;
use crate::json::text_at;
use crate::kind::{Kind, KindConfig, Prepare, WriteContext, Writes};

pub(crate) static KIND: Kind =
    Kind { prepare: &TaintRules, validate: &TaintRules, table: &table::TABLE, ..Kind::new(CONFIG) };

const CONFIG: KindConfig = KindConfig {
    returns_deleted_object: false,
    unconditional_update: false,
    writes: Writes::STATUS_ONLY,
    ..CLASSES
};

const EFFECT: &str = "/spec/taint/effect";
const TIME: &str = "/spec/taint/timeAdded";

struct TaintRules;

impl Prepare for TaintRules {
    fn prepare_create(&self, cx: &WriteContext<'_>, object: &mut Value) -> Result<(), ApiError> {
        object["status"] = json!({});
        set_time(cx, object, false);
        Ok(())
    }

    /// The time of the taint is the time of the effect: a new effect has a new time.
    fn prepare_update(&self, cx: &WriteContext<'_>, object: &mut Value, old: &Value) -> Result<(), ApiError> {
        let is_new = text_at(object, EFFECT) != text_at(old, EFFECT);
        set_time(cx, object, is_new && text_at(object, TIME) == text_at(old, TIME));
        Ok(())
    }
}

/// Sets the time of a taint without a time, or of each taint if `again`.
fn set_time(cx: &WriteContext<'_>, object: &mut Value, again: bool) {
    if (again || text_at(object, TIME).is_empty())
        && let Some(taint) = object.pointer_mut("/spec/taint").and_then(Value::as_object_mut)
    {
        taint.insert("timeAdded".to_owned(), windlass_store::rfc3339(cx.env.now()).into());
    }
}
