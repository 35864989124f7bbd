//! Api services.

mod table;
mod validate;

use serde_json::{Value, json};
use windlass_wire::{ApiError, names};

use crate::kind::{Kind, KindConfig, Prepare, WriteContext, Writes};

pub(crate) static KIND: Kind =
    Kind { prepare: &ApiServices, validate: &ApiServices, table: &table::TABLE, ..Kind::new(CONFIG) };

const CONFIG: KindConfig = KindConfig {
    has_status_table: false,
    name: names::path_segment_name,
    unconditional_update: false,
    writes: Writes::STATUS_ONLY,
    ..KindConfig::DATA
};

struct ApiServices;

impl Prepare for ApiServices {
    fn prepare_create(&self, cx: &WriteContext<'_>, object: &mut Value) -> Result<(), ApiError> {
        object["status"] = json!({});
        set_local(object, &cx.env.now_rfc3339());
        Ok(())
    }

    // In kube-apiserver, a controller sets the condition a moment after the update.
    fn prepare_update(
        &self,
        cx: &WriteContext<'_>,
        object: &mut Value,
        _old: &Value,
    ) -> Result<(), ApiError> {
        set_local(object, &cx.env.now_rfc3339());
        Ok(())
    }
}

/// Sets the condition `Available` of an APIService without a service: this server is always there.
fn set_local(object: &mut Value, now: &str) {
    if object["spec"]["service"].is_object() {
        return;
    }
    let condition = json!({
        "type": "Available",
        "status": "True",
        "reason": "Local",
        "message": "Local APIServices are always available",
    });
    set_available(object, condition, now);
}

/// Replaces the condition `Available` of an APIService. The time of the last transition changes with the status only.
pub fn set_available(object: &mut Value, mut condition: Value, now: &str) {
    if !object["status"]["conditions"].is_array() {
        object["status"]["conditions"] = json!([]);
    }
    let Some(conditions) = object["status"]["conditions"].as_array_mut() else { return };
    let at = conditions.iter().position(|known| known["type"] == condition["type"]);
    let known = at.map(|at| conditions.remove(at)).filter(|known| known["status"] == condition["status"]);
    let since = known.and_then(|known| known["lastTransitionTime"].as_str().map(str::to_owned));
    condition["lastTransitionTime"] = since.unwrap_or_else(|| now.to_owned()).into();
    conditions.insert(at.unwrap_or(conditions.len()), condition);
}
