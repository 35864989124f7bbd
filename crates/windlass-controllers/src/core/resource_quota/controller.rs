//! Writes the status of quotas.

use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use jiff::{SignedDuration, Timestamp};
use k8s_openapi::api::core::v1::ResourceQuota;
use kube_client::api::Api;
use serde_json::{Map, Value, json};
use windlass_kinds::quota::{Evaluator, Quota, ResourceList, amounts};
use windlass_runtime::{
    Action, Context, Controller, Delta, Error, ObjectKey, Predicate, RawObject, Reconciler, Result,
};

use super::count;
use super::replenish::Monitors;
use crate::component::{self, KUBE_CONTROLLER_MANAGER};
use crate::resources::{self, Resource};

/// The interval at which each quota is counted even without a change, as in kube-controller-manager.
const RESYNC_INTERVAL: Duration = Duration::from_mins(5);
/// How long the resources that discovery lists are used.
const DISCOVERY_INTERVAL: SignedDuration = SignedDuration::from_secs(30);

#[derive(Default)]
struct Quotas {
    monitors: Arc<Monitors>,
    discovered: Mutex<Option<(Timestamp, Arc<Vec<Resource>>)>>,
}

/// Returns the controller.
pub(crate) fn controller() -> Controller {
    let quotas = Quotas::default();
    let monitors = Arc::clone(&quotas.monitors);
    let controller = Controller::of::<ResourceQuota>(quotas)
        .named("resourcequota-controller")
        .predicate(Predicate::new(may_change_limits))
        .max_concurrent_reconciles(2);
    monitors.connect(controller.handle());
    controller
}

impl Reconciler<ResourceQuota> for Quotas {
    type Error = Error;

    async fn reconcile(&self, key: ObjectKey, cx: Context<ResourceQuota>) -> Result<Action> {
        let Some(namespace) = key.namespace().filter(|_| cx.get(&key).is_ok_and(|quota| quota.is_some()))
        else {
            return Ok(Action::done());
        };
        let api: Api<ResourceQuota> = Api::namespaced(cx.client().clone(), namespace);
        // A live read: the count below must not be older than the written quota.
        let Some(quota) = api.get_opt(key.name()).await.map_err(Error::from)? else {
            return Ok(Action::done());
        };
        let object = serde_json::to_value(&quota).map_err(malformed)?;
        let (used, is_complete) = self.count(&object, namespace, &cx).await?;
        let status = json!({"hard": shown(&amounts(&object["spec"]["hard"])), "used": shown(&used)});
        if is_stale(&object["status"], &status) {
            let mut object = object;
            object["status"] = status;
            let object: ResourceQuota = serde_json::from_value(object).map_err(malformed)?;
            match api
                .replace_status(key.name(), &component::post(KUBE_CONTROLLER_MANAGER), &object)
                .await
                .map_err(Error::from)
            {
                // A write was admitted meanwhile, and has changed the quota.
                Err(error) if error.is_conflict() => return Ok(Action::requeue_after(Duration::ZERO)),
                Err(error) if !error.is_not_found() => return Err(error),
                _ => {}
            }
        }
        Ok(Action::requeue_after(if is_complete {
            RESYNC_INTERVAL
        } else {
            DISCOVERY_INTERVAL.unsigned_abs()
        }))
    }
}

impl Quotas {
    /// Returns the usage of a quota's resources, and true if all resources are served. A resource that cannot
    /// be counted keeps the earlier amount.
    async fn count(
        &self,
        object: &Value,
        namespace: &str,
        cx: &Context<ResourceQuota>,
    ) -> Result<(ResourceList, bool)> {
        let quota = Quota::of_spec(object);
        let mut counted = ResourceList::new();
        for resource in self.resources(cx).await?.iter() {
            let Some(evaluator) = Evaluator::of(&resource.api.group, &resource.api.plural) else { continue };
            let is_countable = resource.namespaced && resource.watchable && resource.deletable;
            if !is_countable || !quota.hard.keys().any(|name| evaluator.uses(name)) {
                continue;
            }
            self.monitors.open(resource, &evaluator).await?;
            match count::used(cx.client(), namespace, resource, &evaluator, &quota, cx.now()).await {
                Ok(used) => add(&mut counted, used),
                // The CRD was deleted meanwhile.
                Err(error) if error.is_not_found() => {}
                Err(error) => return Err(error),
            }
        }
        let is_complete = quota.hard.keys().all(|name| counted.contains_key(name));
        let mut used = Quota::of(object).used;
        used.extend(counted);
        used.retain(|name, _| quota.hard.contains_key(name));
        Ok((used, is_complete))
    }

    async fn resources(&self, cx: &Context<ResourceQuota>) -> Result<Arc<Vec<Resource>>> {
        let now = cx.now();
        let known = self.discovered.lock().unwrap_or_else(PoisonError::into_inner).clone();
        if let Some((at, resources)) = known
            && now.duration_since(at) < DISCOVERY_INTERVAL
        {
            return Ok(resources);
        }
        let found = Arc::new(resources::discover(cx.client()).await?);
        *self.discovered.lock().unwrap_or_else(PoisonError::into_inner) = Some((now, Arc::clone(&found)));
        Ok(found)
    }
}

/// Drops updates that change no limit: each admitted write changes the usage.
fn may_change_limits(delta: &Delta) -> bool {
    let Delta::Updated { old, new } = delta else { return true };
    let limits = |quota: &RawObject| {
        quota.decode::<ResourceQuota>().ok().and_then(|quota| quota.spec.as_ref()?.hard.clone())
    };
    limits(old) != limits(new)
}

fn malformed(error: serde_json::Error) -> Error {
    kube_client::Error::SerdeError(error).into()
}

fn add(total: &mut ResourceList, more: ResourceList) {
    for (name, amount) in more {
        let sum = total.get(&name).map_or(amount, |present| *present + amount);
        total.insert(name, sum);
    }
}

fn shown(amounts: &ResourceList) -> Map<String, Value> {
    amounts.iter().map(|(name, amount)| (name.clone(), amount.to_string().into())).collect()
}

/// Returns whether a status is to be written.
fn is_stale(present: &Value, wanted: &Value) -> bool {
    ["hard", "used"]
        .into_iter()
        .any(|field| present.get(field).is_none() || amounts(&present[field]) != amounts(&wanted[field]))
}
