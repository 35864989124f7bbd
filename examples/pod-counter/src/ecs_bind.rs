//! Binds instances to pods.

use k8s_openapi::api::core::v1::Pod;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use windlass::{
    MapContext,
    conditions::{self, Condition},
    informer::{IndexFn, WatchOptions},
    prelude::*,
};

/// The index of `EcsBind`s by the name of their pod.
const BY_POD: &str = "pod";

/// Asks for an instance to be bound to a pod while the pod runs.
#[derive(CustomResource, Serialize, Deserialize, JsonSchema, Clone, Debug)]
#[kube(group = "ecs.hopegi.com", version = "v1", kind = "EcsBind", namespaced, status = "EcsBindStatus")]
#[kube(printcolumn = r#"{"name": "Pod", "type": "string", "jsonPath": ".spec.podName"}"#)]
#[kube(printcolumn = r#"{"name": "Instance", "type": "string", "jsonPath": ".spec.instanceID"}"#)]
#[kube(printcolumn = r#"{"name": "Bound", "type": "boolean", "jsonPath": ".status.bound"}"#)]
#[serde(rename_all = "camelCase")]
pub struct EcsBindSpec {
    /// The pod, in the namespace of this object.
    pub pod_name: String,
    /// The instance to bind. A pod binds one.
    #[serde(rename = "instanceID")]
    pub instance_id: String,
}

/// Whether the instance is bound.
#[derive(Serialize, Deserialize, JsonSchema, Clone, Debug, Default, PartialEq)]
pub struct EcsBindStatus {
    /// True while the pod runs and no older object claims it.
    pub bound: bool,
    /// The condition `Bound`, which says why or why not.
    #[serde(default)]
    pub conditions: Vec<Condition>,
}

/// Returns the controller. What changes of a pod or of an `EcsBind` concerns all `EcsBind`s of the same pod.
pub fn controller() -> Controller {
    let by_pod = IndexFn::typed(|bind: &EcsBind| [bind.spec.pod_name.clone()]);
    Controller::of::<EcsBind>(reconcile)
        .named("ecsbind-controller")
        .options(WatchOptions::new().index(BY_POD, by_pod))
        .watches::<Pod>(|pod, cx| binds_of(cx, pod.namespace().as_deref(), &pod.name_any()))
        .watch(
            Watch::mapped::<EcsBind>(|bind, cx| {
                binds_of(cx, bind.namespace().as_deref(), &bind.spec.pod_name)
            })
            .events_only(),
        )
        .needs(Permission::status_of::<EcsBind>())
}

async fn reconcile(key: ObjectKey, cx: Context<EcsBind>) -> Result<Action> {
    let Some(bind) = cx.get_alive(&key)? else { return Ok(Action::done()) };
    let pod = cx.lister::<Pod>()?.get(&ObjectKey::new(key.namespace(), &bind.spec.pod_name))?;
    let claims = claims(&cx.lister::<EcsBind>()?, key.namespace(), &bind.spec.pod_name)?.alive();
    let first = claims.oldest_first().next();
    let instance = &bind.spec.instance_id;
    let (bound, reason, message) = match (&pod, first) {
        (_, Some(first)) if first.name_any() != bind.name_any() => {
            (false, "PodTaken", format!("ecsbind {} claims pod {}", first.name_any(), bind.spec.pod_name))
        }
        (None, _) => (false, "PodNotFound", format!("there is no pod {}", bind.spec.pod_name)),
        (Some(pod), _) if !runs(pod) => {
            (false, "PodNotRunning", format!("pod {} does not run", pod.name_any()))
        }
        (Some(pod), _) => {
            (true, "PodRunning", format!("instance {instance} is bound to pod {}", pod.name_any()))
        }
    };

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

/// The keys of the `EcsBind`s that name a pod.
fn binds_of(cx: &MapContext, namespace: Option<&str>, pod: &str) -> Result<Vec<ObjectKey>> {
    Ok(claims(&cx.lister()?, namespace, pod)?.iter().map(ObjectKey::of).collect())
}

/// The `EcsBind`s that name a pod.
fn claims(binds: &Lister<EcsBind>, namespace: Option<&str>, pod: &str) -> Result<Objects<EcsBind>> {
    binds.namespace(namespace.unwrap_or_default()).by_index(BY_POD, pod)
}

fn runs(pod: &Pod) -> bool {
    let phase = pod.status.as_ref().and_then(|status| status.phase.as_deref());
    phase == Some("Running") && pod.metadata.deletion_timestamp.is_none()
}
