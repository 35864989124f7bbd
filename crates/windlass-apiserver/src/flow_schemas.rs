//! The conditions of flow schemas: a schema is dangling if its priority level does not exist.

use serde_json::{Value, json};

use crate::managed_fields::FieldManager;
use crate::resource::Resource;
use crate::state::State;
use crate::store::{CommitError, ResourceId, View, Write};
use windlass_kinds::Subresource;
use windlass_kinds::kind_names::FLOW_SCHEMA;
use windlass_kinds::resources::{FLOW_SCHEMAS as SCHEMAS, PRIORITY_LEVELS as LEVELS};
use windlass_store::rfc3339;

/// The field manager of the conditions, as in kube-apiserver.
const MANAGER: &str = "api-priority-and-fairness-config-consumer-v1";
/// The type of the condition.
const DANGLING: &str = "Dangling";

/// Returns whether the conditions follow the objects of a resource.
pub(crate) fn follow(id: &ResourceId) -> bool {
    *id == *SCHEMAS || *id == *LEVELS
}

/// Writes the conditions of all flow schemas.
pub(crate) async fn settle(state: &State) {
    let Some(resource) = state.builtin.resource(&SCHEMAS.group, "v1", &SCHEMAS.resource) else { return };
    let view = state.store.view();
    let names: Vec<String> = view.range(&SCHEMAS, None).map(|(name, _)| name.to_string()).collect();
    for name in names {
        // A schema that was written meanwhile is read again.
        while let Err(CommitError::Conflict) = settle_one(state, resource, &name).await {}
    }
}

async fn settle_one(state: &State, resource: &Resource, name: &str) -> Result<(), CommitError> {
    let view = state.store.view();
    let Some(stored) = view.get(&SCHEMAS, name) else { return Ok(()) };
    let old = stored.value();
    let now = state.env.now();
    let Some(condition) = missing_condition(&view, &old, &rfc3339(now)) else { return Ok(()) };
    let config = json!({
        "kind": FLOW_SCHEMA,
        "apiVersion": old["apiVersion"],
        "metadata": {"name": name},
        "status": {"conditions": [condition]},
    });
    let served = state.served.load_full();
    let manager =
        FieldManager { resource, served: &served, subresource: &Subresource::Status, name: MANAGER, now };
    let new = match manager.apply(Some(&old), &config, true).await {
        Ok(new) => new,
        Err(error) => {
            tracing::warn!(name, %error, "the condition of a flow schema is not written");
            return Ok(());
        }
    };
    let draft = Some(resource.draft(&new, state.store.labels(), now));
    let write = Write { id: &SCHEMAS, key: name, expected: Some(stored.rv), draft, now };
    state.store.commit(write, |_| Ok(())).await.map(drop)
}

/// Returns the condition that a flow schema must have; `None` if the schema has the condition.
fn missing_condition(view: &View, schema: &Value, now: &str) -> Option<Value> {
    let level = schema["spec"]["priorityLevelConfiguration"]["name"].as_str().unwrap_or_default();
    let (status, reason, text) = if view.get(&LEVELS, level).is_some() {
        ("False", "Found", "and it exists")
    } else {
        ("True", "NotFound", "but there is no such object")
    };
    let quoted = windlass_schema::go_quote(level);
    let message =
        format!("This FlowSchema references the PriorityLevelConfiguration object named {quoted} {text}");
    let present = schema["status"]["conditions"].as_array().into_iter().flatten();
    let mut present = present.filter(|condition| condition["type"] == DANGLING);
    let is_set = present.any(|present| {
        present["status"] == status && present["reason"] == reason && present["message"] == message
    });
    (!is_set).then(|| {
        json!({
            "type": DANGLING, "status": status, "lastTransitionTime": now, "reason": reason, "message": message,
        })
    })
}
