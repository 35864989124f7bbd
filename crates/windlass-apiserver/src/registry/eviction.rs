//! POST of an Eviction: a deletion of a pod that PodDisruptionBudgets may refuse.

use std::sync::Arc;

use http::Response;
use serde_json::{Value, json};

use super::binding::{body, success};
use super::delete_options::DeleteOptions;
use super::options::WriteOptions;
use super::{Call, delete, write};
use crate::body::Body;
use crate::meta;
use crate::resource::Resource;
use crate::route::Query;
use crate::store::{CommitError, Stored};
use crate::wire::{ApiError, Cause, GroupResource, LabelSelector};
use windlass_kinds::kind_names::{EVICTION, POD};
use windlass_kinds::resources::POD_DISRUPTION_BUDGETS;

/// How often an eviction is tried when other writes come first.
const ATTEMPTS: usize = 20;
/// With more evicted pods than this, the controller of the budget does not keep up.
const MAX_DISRUPTED_PODS: usize = 2_000;
/// The time that a client must wait while the budget's controller has not seen the budget's last change.
const RETRY_SECONDS: u32 = 10;

pub(super) async fn evict(call: &mut Call<'_>) -> Result<Response<Body>, ApiError> {
    let write_options = WriteOptions::parse(&call.query, "CreateOptions")?;
    let mut eviction = body(call, EVICTION, write_options)?;
    call.admit_request(&mut eviction).await?;
    let mut options = DeleteOptions::of(&eviction["deleteOptions"], &Query::default())?;
    options.dry_run |= write_options.dry_run;
    let pod = pod(call)?;
    if ignores_budgets(&pod.value()) {
        evict_unguarded(call, &options).await?;
        return success(call).await;
    }
    let budget = spend_budget(call, &pod, &options).await?;
    let mut guarded = options.clone();
    if budget.as_ref().is_some_and(|budget| budget.pod_is_unhealthy) {
        // The pod must not become healthy, and count, before the deletion.
        guarded.resource_version.get_or_insert_with(|| pod.rv.to_string());
    }
    match mark_and_delete(call, &guarded).await {
        Err(error) if error.code() == 409 && options.resource_version.is_none() => match budget {
            Some(budget) if budget.pod_is_unhealthy => Err(still_processed(&budget.name)),
            _ => Err(error),
        },
        Err(error) => Err(error),
        Ok(()) => success(call).await,
    }
}

fn pod(call: &Call<'_>) -> Result<Arc<Stored>, ApiError> {
    let view = call.state.store.view();
    view.get(&call.resource.storage, &call.key()).cloned().ok_or_else(|| call.not_found())
}

/// Returns whether a pod does not count for any budget: the pod does not run, or is terminating.
fn ignores_budgets(pod: &Value) -> bool {
    let phase = pod.pointer("/status/phase").and_then(Value::as_str).unwrap_or_default();
    matches!(phase, "Pending" | "Succeeded" | "Failed") || meta::is_deleting(pod)
}

fn is_ready(pod: &Value) -> bool {
    let conditions = pod.pointer("/status/conditions").and_then(Value::as_array);
    conditions
        .into_iter()
        .flatten()
        .any(|condition| condition["type"] == "Ready" && condition["status"] == "True")
}

/// Deletes a pod that no budget counts, as long as that is true.
async fn evict_unguarded(call: &mut Call<'_>, options: &DeleteOptions) -> Result<(), ApiError> {
    let mut last = Ok(());
    for _ in 0..ATTEMPTS {
        let pod = pod(call)?;
        let value = pod.value();
        if !ignores_budgets(&value) {
            // The pod now runs: the client has to repeat the request, and the budget decides then.
            return Err(ApiError::modified(&call.resource.group_resource(), &call.route.name));
        }
        let mut guarded = options.clone();
        if value.pointer("/status/phase").is_some_and(|phase| phase == "Pending")
            && !meta::is_deleting(&value)
        {
            guarded.resource_version.get_or_insert_with(|| pod.rv.to_string());
        }
        last = mark_and_delete(call, &guarded).await;
        match &last {
            Err(error) if error.code() == 409 && options.resource_version.is_none() => {}
            _ => break,
        }
    }
    last
}

/// Adds the condition that tells of the eviction, and deletes the pod.
async fn mark_and_delete(call: &mut Call<'_>, options: &DeleteOptions) -> Result<(), ApiError> {
    let mut options = options.clone();
    if !options.dry_run {
        let write_options = WriteOptions::parse(&call.query, "CreateOptions")?;
        let wanted = options.clone();
        let mark = write::server_write(|call, old| {
            delete::check_preconditions(&GroupResource::new("", POD), &call.route.name, old, &wanted)?;
            let mut new = old.clone();
            set_disruption_target(&mut new, &call.state.env.now_rfc3339());
            Ok(new)
        });
        let marked = write::update(call, write_options, mark).await?;
        if options.resource_version.is_some() {
            options.resource_version = Some(marked.rv.to_string());
        }
    }
    let (namespace, name) = (call.route.namespace.clone(), call.route.name.clone());
    delete::remove(call, &namespace, &name, &options).await.map(|_| ())
}

fn set_disruption_target(pod: &mut Value, now: &str) {
    let status = meta::entry_object(pod, "status");
    let conditions = status.entry("conditions").or_insert_with(|| json!([]));
    if !conditions.is_array() {
        *conditions = json!([]);
    }
    let Some(conditions) = conditions.as_array_mut() else { return };
    let target = json!({
        "type": "DisruptionTarget",
        "status": "True",
        "reason": "EvictionByEvictionAPI",
        "message": "Eviction API: evicting",
        "lastProbeTime": null,
        "lastTransitionTime": now,
    });
    match conditions.iter_mut().find(|condition| condition["type"] == "DisruptionTarget") {
        Some(present) => {
            let since =
                if present["status"] == "True" { present["lastTransitionTime"].clone() } else { now.into() };
            *present = target;
            present["lastTransitionTime"] = since;
        }
        None => conditions.push(target),
    }
}

/// The budget that covers an evicted pod.
struct Budget {
    name: String,
    /// The pod is not ready and the budget does not count the pod: the budget is unchanged.
    pod_is_unhealthy: bool,
}

/// Takes a disruption from the budget that covers the pod, or refuses. Returns `None` if no budget covers the
/// pod.
async fn spend_budget(
    call: &Call<'_>,
    pod: &Stored,
    options: &DeleteOptions,
) -> Result<Option<Budget>, ApiError> {
    let served = call.state.served.load_full();
    let Some(budgets) = served.builtin(&POD_DISRUPTION_BUDGETS, "v1") else { return Ok(None) };
    let Some(key) = covering_budget(call, budgets, pod)? else { return Ok(None) };
    let pod_value = pod.value();
    for _ in 0..ATTEMPTS {
        let view = call.state.store.view();
        let Some(stored) = view.get(&budgets.storage, &key) else { return Ok(None) };
        let mut budget = stored.value();
        let name = meta::name(&budget).to_owned();
        if !is_ready(&pod_value) && lets_unhealthy_go(&budget) {
            return Ok(Some(Budget { name, pod_is_unhealthy: true }));
        }
        take_one(&mut budget, meta::name(&pod_value), &call.state.env.now_rfc3339())?;
        if options.dry_run {
            return Ok(Some(Budget { name, pod_is_unhealthy: false }));
        }
        match write::commit(call.state, budgets, &key, Some(stored.rv), Some(&budget), |_| Ok(())).await {
            Ok(_) => return Ok(Some(Budget { name, pod_is_unhealthy: false })),
            Err(CommitError::Refused(error)) => return Err(error),
            Err(CommitError::Conflict | CommitError::ClaimTaken | CommitError::QuotaConflict) => {}
        }
    }
    let name = key.rsplit('/').next().unwrap_or_default();
    let quoted = windlass_schema::go_quote(name);
    let why = format!("couldn't update PodDisruptionBudget {quoted} due to conflicts");
    Err(ApiError::timeout(why, RETRY_SECONDS))
}

/// Returns the key of the only budget with a selector that matches the pod.
fn covering_budget(call: &Call<'_>, budgets: &Resource, pod: &Stored) -> Result<Option<String>, ApiError> {
    let view = call.state.store.view();
    let covers = |budget: &Stored| {
        let budget = budget.value();
        let selector = budget.pointer("/spec/selector");
        selector.is_some_and(|selector| {
            LabelSelector::from_object(selector).matches_by(|label| pod.labels().get(label))
        })
    };
    let mut covering =
        view.range(&budgets.storage, Some(&call.route.namespace)).filter(|(_, budget)| covers(budget));
    let first = covering.next().map(|(key, _)| key.to_string());
    if covering.next().is_some() {
        return Err(ApiError::unexplained(
            "This pod has more than one PodDisruptionBudget, which the eviction subresource does not support.",
        ));
    }
    Ok(first)
}

fn number(budget: &Value, field: &str) -> i64 {
    budget.get("status").and_then(|status| status.get(field)).and_then(Value::as_i64).unwrap_or(0)
}

/// Returns whether a budget allows the eviction of pods that are not ready, without counting such pods.
fn lets_unhealthy_go(budget: &Value) -> bool {
    let policy = budget.pointer("/spec/unhealthyPodEvictionPolicy").and_then(Value::as_str);
    let (current, desired) = (number(budget, "currentHealthy"), number(budget, "desiredHealthy"));
    policy == Some("AlwaysAllow") || current >= desired && desired > 0
}

/// Takes a disruption from a budget.
fn take_one(budget: &mut Value, pod: &str, now: &str) -> Result<(), ApiError> {
    let name = meta::name(budget).to_owned();
    let refuse = |why: &str, cause: &str| {
        let resource = GroupResource::new("policy", "poddisruptionbudget");
        let message = format!("The disruption budget {name} does not allow evicting pods currently: {cause}");
        let reason = "DisruptionBudget".to_owned();
        Err(ApiError::forbidden(&resource, &name, why).caused_by(Cause {
            reason,
            message,
            ..Cause::default()
        }))
    };
    if number(budget, "observedGeneration") < meta::integer(budget, "generation").unwrap_or(0) {
        return Err(still_processed(&name));
    }
    let allowed = number(budget, "disruptionsAllowed");
    if allowed < 0 {
        let why = "pdb disruptions allowed is negative";
        return refuse(why, why);
    }
    let disrupted = budget.pointer("/status/disruptedPods").and_then(Value::as_object);
    if disrupted.is_some_and(|pods| pods.len() > MAX_DISRUPTED_PODS) {
        return refuse(
            "DisruptedPods map too big - too many evictions not confirmed by PDB controller",
            "too many pending evictions not confirmed by PDB controller",
        );
    }
    if allowed == 0 {
        return Err(ApiError::disruption_budget(&name, why_none_is_allowed(budget), 0));
    }
    let generation = meta::integer(budget, "generation").unwrap_or(0);
    let status = meta::entry_object(budget, "status");
    status.insert("disruptionsAllowed".into(), (allowed - 1).into());
    let disrupted = status.entry("disruptedPods").or_insert_with(|| json!({}));
    meta::fields_mut(disrupted).insert(pod.to_owned(), now.into());
    if allowed == 1 {
        let condition = json!({
            "type": "DisruptionAllowed",
            "status": "False",
            "reason": "InsufficientPods",
            "message": "",
            "observedGeneration": generation,
            "lastTransitionTime": now,
        });
        let conditions = status.entry("conditions").or_insert_with(|| json!([]));
        if let Some(conditions) = conditions.as_array_mut() {
            conditions.retain(|condition| condition["type"] != "DisruptionAllowed");
            conditions.push(condition);
        }
    }
    Ok(())
}

fn why_none_is_allowed(budget: &Value) -> String {
    let conditions = budget.pointer("/status/conditions").and_then(Value::as_array);
    let condition =
        conditions.into_iter().flatten().find(|condition| condition["type"] == "DisruptionAllowed");
    let text = |field: &str| {
        let found = condition.and_then(|condition| condition.get(field)).and_then(Value::as_str);
        found.unwrap_or_default()
    };
    let says_why = text("status") == "False" && !text("message").is_empty();
    let (current, desired) = (number(budget, "currentHealthy"), number(budget, "desiredHealthy"));
    if says_why && text("reason") == "SyncFailed" {
        format!("does not allow evicting pods currently because it failed sync: {}", text("message"))
    } else if current <= desired {
        format!("needs {desired} healthy pods and has {current} currently")
    } else if says_why {
        format!("does not allow evicting pods currently ({}): {}", text("reason"), text("message"))
    } else {
        "does not allow evicting pods currently".to_owned()
    }
}

/// Returns 429: the controller of the budget has not seen the budget's last change, or the pod changed.
fn still_processed(budget: &str) -> ApiError {
    ApiError::disruption_budget(budget, "is still being processed by the server.", RETRY_SECONDS)
}
