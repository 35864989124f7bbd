//! Nodes.

mod defaults;
mod table;
mod validate;

use serde_json::{Value, json};
use windlass_wire::ApiError;

use crate::admission_plugins::AdmissionPlugin;
use crate::json::{spec_mut, text};
use crate::kind::{Admission, IfEmpty, Kind, KindConfig, Prepare, WriteContext};

pub(crate) static KIND: Kind = Kind {
    defaults: &Nodes,
    prepare: &Nodes,
    validate: &Nodes,
    admission: &Nodes,
    table: &table::TABLE,
    ..Kind::new(CONFIG)
};

const CONFIG: KindConfig = KindConfig {
    registry_path: Some("minions"),
    selectable: &[("spec.unschedulable", "/spec/unschedulable")],
    selectable_if_empty: &[("spec.unschedulable", IfEmpty::Text("false"))],
    ..KindConfig::DATA
};

pub(super) struct Nodes;

const NOT_READY: &str = "node.kubernetes.io/not-ready";

impl Admission for Nodes {
    fn mutate(&self, cx: &WriteContext<'_>, object: &mut Value, old: Option<&Value>) -> Result<(), ApiError> {
        if old.is_some() || !cx.plugins.has(AdmissionPlugin::TaintNodesByCondition) {
            return Ok(());
        }
        let taints = spec_mut(object).entry("taints").or_insert_with(|| json!([]));
        if let Some(taints) = taints.as_array_mut()
            && !taints.iter().any(|taint| text(taint, "key") == NOT_READY)
        {
            // No pod is scheduled to a node before the node is ready.
            taints.push(json!({"key": NOT_READY, "effect": "NoSchedule"}));
        }
        Ok(())
    }
}

impl Prepare for Nodes {
    fn prepare_create(&self, _cx: &WriteContext<'_>, object: &mut Value) -> Result<(), ApiError> {
        drop_dynamic_configuration(object);
        Ok(())
    }

    fn prepare_update(
        &self,
        _cx: &WriteContext<'_>,
        object: &mut Value,
        _old: &Value,
    ) -> Result<(), ApiError> {
        drop_dynamic_configuration(object);
        Ok(())
    }
}

/// Removes the fields of the kubelet's dynamic configuration, which no kubelet supports.
fn drop_dynamic_configuration(object: &mut Value) {
    spec_mut(object).remove("configSource");
    if let Some(status) = object.get_mut("status").and_then(Value::as_object_mut) {
        status.remove("config");
    }
}
