//! Priority classes.

mod table;
mod validate;

use serde_json::Value;
use windlass_store::object_meta as meta;
use windlass_wire::{ApiError, GroupResource};

use crate::admission_plugins::AdmissionPlugin;
use crate::json::text_at;
use crate::kind::{Admission, Generation, Kind, KindConfig, WriteContext};

pub(crate) static KIND: Kind = Kind {
    validate: &PriorityClasses,
    admission: &PriorityClasses,
    table: &table::TABLE,
    ..Kind::new(CLASSES)
};

const CLASSES: KindConfig = KindConfig { generation: Generation::Constant, ..KindConfig::SPEC };

struct PriorityClasses;

/// Returns whether pods without a class are of this one.
pub(crate) fn is_default(class: &Value) -> bool {
    class.get("globalDefault").and_then(Value::as_bool) == Some(true)
}

impl Admission for PriorityClasses {
    fn mutate(&self, cx: &WriteContext<'_>, object: &mut Value, old: Option<&Value>) -> Result<(), ApiError> {
        if !cx.plugins.has(AdmissionPlugin::Priority) || !is_default(object) {
            return Ok(());
        }
        let name = text_at(object, "/metadata/name");
        let classes = cx.lookups.priority_classes.get(cx.view);
        let mut defaults = classes.values().filter(|class| is_default(class)).map(meta::name);
        match defaults.next() {
            Some(default) if old.is_none() || default != name => {
                let why = format!(
                    "PriorityClass {default} is already marked as default. Only one default can exist"
                );
                Err(ApiError::forbidden(
                    &GroupResource::new("scheduling.k8s.io", "priorityclasses"),
                    name,
                    why,
                ))
            }
            _ => Ok(()),
        }
    }
}
