//! Ingresses.

mod defaults;
pub(crate) mod table;
pub(crate) mod validate;

use serde_json::{Value, json};
use windlass_store::object_meta as meta;
use windlass_wire::ApiError;

use crate::admission_plugins::AdmissionPlugin;
use crate::json::spec_mut;
use crate::kind::{Admission, Kind, KindConfig, Prepare, WriteContext};

pub(crate) static KIND: Kind = Kind {
    defaults: &Ingresses,
    prepare: &Ingresses,
    validate: &Ingresses,
    admission: &Ingresses,
    table: &table::TABLE,
    ..Kind::new(CONFIG)
};

/// The annotation that named the class of an ingress before there was a field.
const CLASS: &str = "kubernetes.io/ingress.class";

const CONFIG: KindConfig = KindConfig {
    registry_path: Some("ingress"),
    unsupported: Some("no traffic is routed, because there is no ingress controller"),
    ..KindConfig::SPEC
};

struct Ingresses;

impl Admission for Ingresses {
    fn mutate(&self, cx: &WriteContext<'_>, object: &mut Value, old: Option<&Value>) -> Result<(), ApiError> {
        if old.is_none()
            && cx.plugins.has(AdmissionPlugin::DefaultIngressClass)
            && !meta::has_annotation(object, CLASS)
            && object["spec"].get("ingressClassName").is_none_or(Value::is_null)
            && let Some(class) = &*cx.lookups.default_ingress_class.get(cx.view)
        {
            spec_mut(object).insert("ingressClassName".to_owned(), class.as_str().into());
        }
        Ok(())
    }
}

impl Prepare for Ingresses {
    fn prepare_create(&self, _cx: &WriteContext<'_>, object: &mut Value) -> Result<(), ApiError> {
        object["status"] = json!({"loadBalancer": {}});
        Ok(())
    }
}
