//! Volume attributes classes.

mod table;
mod validate;

use serde_json::Value;
use windlass_store::object_meta as meta;
use windlass_wire::ApiError;

use super::CLASSES;
use crate::admission_plugins::AdmissionPlugin;
use crate::kind::{Admission, Kind, KindConfig, WriteContext};

pub(crate) static KIND: Kind = Kind {
    validate: &AttributesClasses,
    admission: &AttributesClasses,
    table: &table::TABLE,
    ..Kind::new(CONFIG)
};

const CONFIG: KindConfig = KindConfig {
    unsupported: Some("the attributes of volumes are not changed, because no CSI driver is called"),
    ..CLASSES
};

struct AttributesClasses;

impl Admission for AttributesClasses {
    fn mutate(&self, cx: &WriteContext<'_>, object: &mut Value, old: Option<&Value>) -> Result<(), ApiError> {
        if old.is_none() && cx.plugins.has(AdmissionPlugin::StorageObjectInUseProtection) {
            meta::add_finalizer(object, "kubernetes.io/vac-protection");
        }
        Ok(())
    }
}
