//! The producer of flow schemas and priority levels: restores the objects of a new cluster.

use serde_json::Value;

use super::ownership::FLOW_CONTROL;
use super::template::{self, Template};
use super::{RECORDED, TIME, UID, change_as, flow_control};
use crate::flow_control::Changes;
use crate::state::State;
use crate::store::{CommitError, ResourceId, Write};
use crate::{flow_schemas, meta};
use windlass_kinds::resources::{FLOW_SCHEMAS as SCHEMAS, PRIORITY_LEVELS as LEVELS};

/// The annotation of objects that follow the server's version.
const AUTO_UPDATE: &str = "apf.kubernetes.io/autoupdate-spec";
/// The objects whose spec a user cannot change.
const MANDATORY: [&str; 2] = ["exempt", "catch-all"];

/// Restores missing and changed flow schemas and priority levels of the server, at most once a minute.
///
/// As in kube-apiserver, a missing object is created again. The objects `exempt` and `catch-all` get their spec back; a user who changes another
/// object keeps the change.
pub(crate) async fn restore_flow_control(state: &State) {
    if state.flow_control.is_restoration_due(&state.store, state.env.now()) {
        // Boxed, because few requests restore objects.
        Box::pin(restore(state)).await;
    }
}

async fn restore(state: &State) {
    let seen = Changes::of(&state.store.view());
    for template in template::shared(state).iter().filter(|template| is_of_flow_control(&template.id)) {
        while let Err(CommitError::Conflict) = create_missing(state, template).await {}
    }
    for (plural, wanted) in flow_control::objects() {
        revise(state, plural, wanted).await;
    }
    remove_unwanted(state).await;
    flow_schemas::settle(state).await;
    state.flow_control.restored(seen);
}

fn is_of_flow_control(id: &ResourceId) -> bool {
    *id == *SCHEMAS || *id == *LEVELS
}

async fn create_missing(state: &State, template: &Template) -> Result<(), CommitError> {
    if state.store.view().get(&template.id, &template.key).is_some() {
        return Ok(());
    }
    let (now, time, uid) = (state.env.now(), state.env.now_rfc3339(), state.env.uid());
    let texts = [(TIME, &*time), (RECORDED, &*time), (UID, &*uid)];
    let draft = Some(template.draft.stamped(&uid, &texts));
    let write = Write { id: &template.id, key: &template.key, expected: None, draft, now };
    state.store.commit(write, |_| Ok(())).await.map(drop)
}

/// Gives an object the spec of the server, if the object follows the server.
async fn revise(state: &State, plural: &str, mut wanted: Value) {
    let group = &*SCHEMAS.group;
    let Some(resource) = state.builtin.resource(group, "v1", plural) else { return };
    resource.default_and_prune(&mut wanted);
    let name = meta::name(&wanted);
    change_as(FLOW_CONTROL.0, state, group, plural, name, |object| {
        let follows = MANDATORY.contains(&name) || follows_server(object);
        if follows && object["spec"] != wanted["spec"] {
            object["spec"] = wanted["spec"].clone();
        }
        if auto_update(object) != Some(follows) {
            object["metadata"]["annotations"][AUTO_UPDATE] = follows.to_string().into();
        }
    })
    .await;
}

/// Removes the objects that claim to be the server's objects, but are not.
async fn remove_unwanted(state: &State) {
    let known = flow_control::objects();
    let view = state.store.view();
    for id in [&*SCHEMAS, &*LEVELS] {
        for (name, stored) in view.range(id, None) {
            let is_known = known
                .iter()
                .any(|(plural, object)| **plural == *id.resource && meta::name(object) == &**name);
            if is_known || auto_update(&stored.value()) != Some(true) {
                continue;
            }
            let (now, expected) = (state.env.now(), Some(stored.rv));
            let write = Write { id, key: name, expected, draft: None, now };
            // An object that was written meanwhile is looked at again after the next change.
            let _ = state.store.commit(write, |_| Ok(())).await;
        }
    }
}

/// Returns whether an object follows the server's version: by the annotation, or because no user has changed the spec.
fn follows_server(object: &Value) -> bool {
    auto_update(object).unwrap_or_else(|| meta::integer(object, "generation") == Some(1))
}

/// Returns the value of the annotation; `None` without a boolean of Go.
fn auto_update(object: &Value) -> Option<bool> {
    match object.pointer("/metadata/annotations")?.get(AUTO_UPDATE)?.as_str()? {
        "1" | "t" | "T" | "true" | "TRUE" | "True" => Some(true),
        "0" | "f" | "F" | "false" | "FALSE" | "False" => Some(false),
        _ => None,
    }
}
