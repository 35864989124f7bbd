//! `POST …/binding`: assigns a pod to a node.

use http::{Response, StatusCode};
use serde_json::{Value, json};
use windlass_kinds::Subresource;

use super::options::WriteOptions;
use super::{Call, metadata, write};
use crate::body::Body;
use crate::meta;
use crate::store::rfc3339;
use crate::wire::{ApiError, GroupResource};
use windlass_kinds::kind_names::{BINDING, EVICTION};
use windlass_kinds::resources::PODS;

pub(super) async fn bind(call: &mut Call<'_>) -> Result<Response<Body>, ApiError> {
    let options = WriteOptions::parse(&call.query, "CreateOptions")?;
    let mut binding = body(call, BINDING, options)?;
    call.plugin_write().mutate_binding(&mut binding);
    call.admit_request(&mut binding).await?;
    if call.route.subresource.is_empty() {
        // The older form: a collection of bindings in the namespace. The name of a binding is the name of the
        // pod.
        call.route.name = meta::name(&binding).to_owned();
        let served = call.state.served.load();
        let pods = served.builtin(&PODS, "v1").ok_or_else(ApiError::no_such_resource)?;
        call.resource = std::sync::Arc::clone(pods);
    }
    call.route.subresource = Subresource::Binding;
    let target = binding.get("target").cloned().unwrap_or_default();
    let node = target.get("name").and_then(Value::as_str).unwrap_or_default().to_owned();
    if node.is_empty() {
        // The real server returns the error of the validation as it is, without a status.
        return Err(ApiError::unexplained("target.name: Required value"));
    }
    let uid = meta::uid(&binding).to_owned();
    let bind = write::server_write(|call, old| {
        let names = call.resource.group_resource();
        let bindings = GroupResource::new("", format!("{}/binding", PODS.resource));
        let name = &call.route.name;
        if !uid.is_empty() && uid != meta::uid(old) {
            return Err(ApiError::uid_precondition(&names, name, &uid, meta::uid(old)));
        }
        if meta::is_deleting(old) {
            return Err(ApiError::conflict(
                &bindings,
                name,
                format!("pod {name} is being deleted, cannot be assigned to a host"),
            ));
        }
        let present = old.pointer("/spec/nodeName").and_then(Value::as_str).unwrap_or_default();
        if !present.is_empty() {
            return Err(ApiError::conflict(
                &bindings,
                name,
                format!("pod {name} is already assigned to node {}", windlass_schema::go_quote(present)),
            ));
        }
        let gates = old.pointer("/spec/schedulingGates").and_then(Value::as_array);
        if gates.is_some_and(|gates| !gates.is_empty()) {
            let why = format!("pod {name} has non-empty .spec.schedulingGates");
            return Err(ApiError::conflict(&bindings, name, why));
        }
        let mut new = old.clone();
        meta::entry_object(&mut new, "spec").insert("nodeName".into(), node.clone().into());
        scheduled(&mut new, &rfc3339(call.state.env.now()));
        for field in ["annotations", "labels"] {
            let metadata = meta::fields_mut(&mut new).entry("metadata").or_insert_with(|| json!({}));
            for (key, value) in binding["metadata"][field].as_object().into_iter().flatten() {
                meta::entry_object(metadata, field).insert(key.clone(), value.clone());
            }
        }
        Ok(new)
    });
    write::update(call, options, bind).await?;
    success(call).await
}

/// Sets the condition that says the pod has a node, and ends the reservation of a node.
fn scheduled(pod: &mut Value, now: &str) {
    let condition = json!({
        "type": "PodScheduled",
        "status": "True",
        "lastProbeTime": null,
        "lastTransitionTime": now,
    });
    let status = meta::entry_object(pod, "status");
    status.remove("nominatedNodeName");
    let conditions = status.entry("conditions").or_insert_with(|| json!([]));
    if !conditions.is_array() {
        *conditions = json!([]);
    }
    if let Some(conditions) = conditions.as_array_mut() {
        match conditions.iter_mut().find(|known| known["type"] == "PodScheduled") {
            Some(known) => *known = condition,
            None => conditions.push(condition),
        }
    }
}

/// Decodes the body as an object of `kind`. The name of the object must be the name in the path.
pub(super) fn body(call: &mut Call<'_>, kind: &str, options: WriteOptions) -> Result<Value, ApiError> {
    let group = if kind == EVICTION { "policy" } else { "" };
    let mut object = call.decode_as(group, "v1", kind, options)?;
    metadata::settle_namespace(call, &mut object)?;
    let name = meta::name(&object);
    if !call.route.name.is_empty() && name != call.route.name {
        return Err(ApiError::bad_request(format!("name in URL does not match name in {kind} object")));
    }
    Ok(object)
}

/// Returns the `Status` that answers a write without a returned object.
pub(super) async fn success(call: &Call<'_>) -> Result<Response<Body>, ApiError> {
    let status = json!({
        "kind": "Status", "apiVersion": "v1", "metadata": {}, "status": "Success", "code": 201,
    });
    let negotiated = call.negotiate()?;
    call.json(StatusCode::CREATED, crate::respond::object_bytes(&status), negotiated).await
}
