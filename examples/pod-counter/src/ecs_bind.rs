//! Binds instances to pods.

use std::sync::Arc;

use k8s_openapi::api::core::v1::Pod;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use windlass::{
    HandlerContext,
    conditions::{self, Condition},
    informer::{CacheOptions, IndexFn},
    prelude::*,
    schema,
};

/// The index of `EcsBind`s by the name of the pod.
const BY_POD: &str = "pod";

/// The index of `EcsBind`s by the instance.
const BY_INSTANCE: &str = "instance";

/// Asks for an instance to be bound to a pod while the pod runs.
#[schema]
#[derive(CustomResource, Serialize, Deserialize, JsonSchema, Clone, Debug)]
#[kube(group = "ecs.hopegi.com", version = "v1", kind = "EcsBind", namespaced, status = "EcsBindStatus")]
#[kube(printcolumn = r#"{"name": "Pod", "type": "string", "jsonPath": ".spec.podName"}"#)]
#[kube(printcolumn = r#"{"name": "Instance", "type": "string", "jsonPath": ".spec.instanceID"}"#)]
#[kube(printcolumn = r#"{"name": "Bound", "type": "boolean", "jsonPath": ".status.bound"}"#)]
#[serde(rename_all = "camelCase")]
pub struct EcsBindSpec {
    /// The pod, in the namespace of this object.
    #[schema(min_length = 1)]
    pub pod_name: String,
    /// The instance to bind. A pod binds one instance, and an instance is bound to one pod of the cluster.
    #[serde(rename = "instanceID")]
    #[schema(min_length = 1)]
    pub instance_id: String,
}

/// The state of the binding.
#[derive(Serialize, Deserialize, JsonSchema, Clone, Debug, Default, PartialEq)]
pub struct EcsBindStatus {
    /// True while the pod runs and no older object has the pod or the instance.
    pub bound: bool,
    /// The condition `Bound`, with the reason.
    #[serde(default)]
    pub conditions: Vec<Condition>,
}

/// Returns the controller. A change of a pod or of an `EcsBind` concerns all `EcsBind`s of the same pod and
/// of the same instance.
pub fn controller() -> Controller {
    let by_pod = IndexFn::typed(|bind: &EcsBind| [bind.spec.pod_name.clone()]);
    let by_instance = IndexFn::typed(|bind: &EcsBind| [bind.spec.instance_id.clone()]);
    Controller::of::<EcsBind>(reconcile)
        .named("ecsbind-controller")
        .options(CacheOptions::new().index(BY_POD, by_pod).index(BY_INSTANCE, by_instance))
        .watches::<Pod>(|pod, cx| Ok(keys(&of_pod(&cx.lister()?, pod.namespace(), &pod.name_any())?)))
        .watch(Watch::mapped(kind::<EcsBind>(), rivals_of).without_reads())
        .needs(Permission::status_of::<EcsBind>())
}

/// Returns the keys of the `EcsBind`s that name the same pod or the same instance.
fn rivals_of(bind: &EcsBind, cx: &HandlerContext) -> Result<Vec<ObjectKey>> {
    let binds = cx.lister::<EcsBind>()?;
    let mut rivals = keys(&of_pod(&binds, bind.namespace(), &bind.spec.pod_name)?);
    rivals.extend(keys(&binds.by_index(BY_INSTANCE, &bind.spec.instance_id)?));
    Ok(rivals)
}

async fn reconcile(key: ObjectKey, cx: Context<EcsBind>) -> Result<Action> {
    let Some(bind) = cx.get(&key)? else { return Ok(Action::done()) };
    let (bound, reason, message) = judge(&bind, &cx)?;
    let mut status = bind.status.clone().unwrap_or_default();
    let changed = bind.status.is_none() || status.bound != bound;
    status.bound = bound;
    let condition =
        conditions::condition("Bound", bound, reason, &message).observed_generation(bind.metadata.generation);
    conditions::set(&mut status.conditions, condition, cx.now());
    cx.update_status(&bind, status).await?;
    if changed {
        if bound {
            cx.recorder().normal(&*bind, "Bound", message);
        } else {
            cx.recorder().warning(&*bind, "NotBound", message);
        }
    }
    Ok(Action::done())
}

/// Returns whether an instance is bound, with the reason and the message of the condition.
fn judge(bind: &EcsBind, cx: &Context<EcsBind>) -> Result<(bool, &'static str, String)> {
    let (pod_name, instance) = (&bind.spec.pod_name, &bind.spec.instance_id);
    if bind.metadata.deletion_timestamp.is_some() {
        return Ok((false, "Deleted", "it is deleted, and a finalizer holds it".to_owned()));
    }
    let binds = cx.lister::<EcsBind>()?;
    let is_other = |holder: &EcsBind| holder.metadata.uid != bind.metadata.uid;
    if let Some(holder) = holder_of_pod(&binds, bind)?.filter(|holder| is_other(holder)) {
        return Ok((false, "PodTaken", format!("ecsbind {} claims pod {pod_name}", holder.name_any())));
    }
    if let Some(holder) = holder_of_instance(&binds, instance)?.filter(|holder| is_other(holder)) {
        let holder = ObjectKey::of(&*holder);
        return Ok((false, "InstanceTaken", format!("ecsbind {holder} claims instance {instance}")));
    }
    Ok(match cx.lister::<Pod>()?.get(&ObjectKey::new(bind.namespace().as_deref(), pod_name))? {
        None => (false, "PodNotFound", format!("there is no pod {pod_name}")),
        Some(pod) if !runs(&pod) => (false, "PodNotRunning", format!("pod {pod_name} does not run")),
        Some(_) => (true, "PodRunning", format!("instance {instance} is bound to pod {pod_name}")),
    })
}

/// Returns the oldest `EcsBind` of the same pod.
fn holder_of_pod(binds: &Lister<EcsBind>, bind: &EcsBind) -> Result<Option<Arc<EcsBind>>> {
    Ok(oldest(of_pod(binds, bind.namespace(), &bind.spec.pod_name)?))
}

/// Returns the oldest `EcsBind` of an instance that holds the pod, too: an `EcsBind` without the pod does not
/// block the instance.
fn holder_of_instance(binds: &Lister<EcsBind>, instance: &str) -> Result<Option<Arc<EcsBind>>> {
    let mut holders = Vec::new();
    for bind in binds.by_index(BY_INSTANCE, instance)?.not_terminating() {
        let holder = holder_of_pod(binds, &bind)?;
        holders.extend(holder.filter(|holder| holder.metadata.uid == bind.metadata.uid));
    }
    Ok(oldest(holders))
}

/// Returns the oldest object that is not terminating; among objects of the same second, the first by
/// namespace and name.
fn oldest(binds: impl IntoIterator<Item = Arc<EcsBind>>) -> Option<Arc<EcsBind>> {
    let alive = binds.into_iter().filter(|bind| bind.metadata.deletion_timestamp.is_none());
    alive.min_by_key(|bind| (bind.creation_timestamp(), ObjectKey::of(&**bind).to_string()))
}

/// Returns the `EcsBind`s that name a pod.
fn of_pod(binds: &Lister<EcsBind>, namespace: Option<String>, pod: &str) -> Result<Objects<EcsBind>> {
    binds.namespace(&namespace.unwrap_or_default()).by_index(BY_POD, pod)
}

fn keys(binds: &Objects<EcsBind>) -> Vec<ObjectKey> {
    binds.iter().map(ObjectKey::of).collect()
}

fn runs(pod: &Pod) -> bool {
    let phase = pod.status.as_ref().and_then(|status| status.phase.as_deref());
    phase == Some("Running") && pod.metadata.deletion_timestamp.is_none()
}
