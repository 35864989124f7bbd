//! What is done to pods besides reading and writing them: binding to a node, eviction.

use http::{Response, StatusCode, header};
use serde_json::{Value, json};

use super::delete;
use super::delete_options::DeleteOptions;
use super::options::WriteOptions;
use super::update::replace;
use crate::api::Call;
use crate::env::rfc3339;
use crate::meta;
use crate::serve::Body;
use crate::store::ResourceId;
use crate::wire::{self, ApiError, LabelSelector, Target};

/// POST of a Binding: the pod gets its node.
pub(super) fn bind(call: &mut Call<'_>) -> Result<Response<Body>, ApiError> {
    let options = WriteOptions::parse(&call.query, "CreateOptions")?;
    let binding = body(call, "Binding")?;
    if call.route.subresource.is_empty() {
        // The older way: a collection of bindings in the namespace, each for the pod of its name.
        call.route.name = meta::name(&binding).to_owned();
        let table = call.api.table.load();
        let pods = table.resource("", "v1", "pods").ok_or_else(ApiError::no_such_resource)?;
        call.resource = std::sync::Arc::clone(pods);
    }
    call.route.subresource = "binding".to_owned();
    let target = binding.get("target").cloned().unwrap_or_default();
    let node = target.get("name").and_then(Value::as_str).unwrap_or_default().to_owned();
    if node.is_empty() {
        let error = windlass_schema::FieldError::required("target.name", "");
        return Err(ApiError::invalid("", "Binding", &call.route.name, std::slice::from_ref(&error)));
    }
    let uid = meta::uid(&binding).to_owned();
    replace(call, options, |call, old| {
        let names = call.resource.group_resource();
        let name = &call.route.name;
        if !uid.is_empty() && uid != meta::uid(old) {
            return Err(ApiError::uid_precondition(&names, name, &uid, meta::uid(old)));
        }
        if meta::is_deleting(old) {
            return Err(ApiError::conflict(
                &names,
                name,
                format!("pod {name} is being deleted, cannot be assigned to a host"),
            ));
        }
        let present = old.pointer("/spec/nodeName").and_then(Value::as_str).unwrap_or_default();
        if !present.is_empty() {
            return Err(ApiError::conflict(
                &names,
                name,
                format!("pod {name} is already assigned to node {}", windlass_schema::go_quote(present)),
            ));
        }
        let mut new = old.clone();
        meta::entry_object(&mut new, "spec").insert("nodeName".into(), node.clone().into());
        scheduled(&mut new, &rfc3339(call.api.env.now()));
        for (key, value) in
            binding.pointer("/metadata/annotations").and_then(Value::as_object).into_iter().flatten()
        {
            meta::entry_object(
                meta::fields_mut(&mut new).entry("metadata").or_insert_with(|| json!({})),
                "annotations",
            )
            .insert(key.clone(), value.clone());
        }
        Ok(new)
    })?;
    success(call)
}

/// Sets the condition that says the pod has a node.
fn scheduled(pod: &mut Value, now: &str) {
    let condition = json!({
        "type": "PodScheduled",
        "status": "True",
        "lastProbeTime": null,
        "lastTransitionTime": now,
    });
    let status = meta::entry_object(pod, "status");
    let conditions = status.entry("conditions").or_insert_with(|| json!([]));
    if !conditions.is_array() {
        *conditions = json!([]);
    }
    if let Some(conditions) = conditions.as_array_mut() {
        conditions.retain(|condition| condition["type"] != "PodScheduled");
        conditions.push(condition);
    }
}

/// POST of an Eviction: a deletion that disruption budgets have a say in.
pub(super) fn evict(call: &mut Call<'_>) -> Result<Response<Body>, ApiError> {
    let eviction = body(call, "Eviction")?;
    let options =
        DeleteOptions::of(call, eviction.get("deleteOptions").cloned().unwrap_or_else(|| json!({})))?;
    let view = call.api.store.view();
    let pod = view.get(&call.resource.storage, &call.key()).ok_or_else(|| call.not_found())?;
    let phase = pod.value.pointer("/status/phase").and_then(Value::as_str).unwrap_or_default();
    let exempt = matches!(phase, "Pending" | "Succeeded" | "Failed") || meta::is_deleting(&pod.value);
    if !exempt {
        spend_budget(call, &pod.value)?;
    }
    let (namespace, name) = (call.route.namespace.clone(), call.route.name.clone());
    delete::remove(call, &namespace, &name, &options)?;
    success(call)
}

/// Takes one disruption from the budget that covers the pod, or refuses.
fn spend_budget(call: &Call<'_>, pod: &Value) -> Result<(), ApiError> {
    let id = ResourceId::new("policy", "poddisruptionbudgets");
    let view = call.api.store.view();
    let covering: Vec<_> = view
        .range(&id, Some(&call.route.namespace))
        .filter(|(_, budget)| {
            let selector = budget.value.pointer("/spec/selector");
            selector.is_some_and(|selector| LabelSelector::from_object(selector).matches(meta::labels(pod)))
        })
        .map(|(key, budget)| (key.to_string(), std::sync::Arc::clone(budget)))
        .collect();
    let (key, budget) = match covering.as_slice() {
        [] => return Ok(()),
        [one] => one,
        _ => {
            return Err(ApiError::internal(
                "This pod has more than one PodDisruptionBudget, which the eviction subresource does not support.",
            ));
        }
    };
    let number =
        |field: &str| budget.value.pointer(&format!("/status/{field}")).and_then(Value::as_i64).unwrap_or(0);
    let allowed = number("disruptionsAllowed");
    if allowed <= 0 {
        return Err(ApiError::disruption_budget(
            meta::name(&budget.value),
            format!(
                "needs {} healthy pods and has {} currently",
                number("desiredHealthy"),
                number("currentHealthy")
            ),
        ));
    }
    let mut value = budget.value.clone();
    meta::entry_object(&mut value, "status").insert("disruptionsAllowed".into(), (allowed - 1).into());
    let committed = call.api.store.commit(&id, key, Some(budget.rv), Some(value));
    committed.map(|_| ()).map_err(|_| {
        ApiError::too_many_requests("Too many concurrent changes to the disruption budget, try again.", 1)
    })
}

fn body(call: &Call<'_>, kind: &str) -> Result<Value, ApiError> {
    let content_type = call.header(header::CONTENT_TYPE);
    let decoded = wire::decode_body(content_type, call.body, kind, |bytes| call.api.decode_protobuf(bytes))?;
    let name = meta::name(&decoded.value);
    if !call.route.name.is_empty() && !name.is_empty() && name != call.route.name {
        return Err(ApiError::bad_request(format!("name in URL does not match name in {kind} object")));
    }
    Ok(decoded.value)
}

fn success(call: &Call<'_>) -> Result<Response<Body>, ApiError> {
    let status = json!({
        "kind": "Status", "apiVersion": "v1", "metadata": {}, "status": "Success", "code": 201,
    });
    let negotiated = call.negotiate(Target::Object)?;
    call.json(StatusCode::CREATED, crate::respond::object_bytes(&status), negotiated)
}
