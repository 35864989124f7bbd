//! Ends pods on behalf of the cluster: with the condition `DisruptionTarget`, and with the pod's grace period.

use k8s_openapi::api::core::v1::Pod;
use k8s_openapi::apimachinery::pkg::apis::meta::v1::Time;
use kube_client::api::{Api, DeleteParams, Patch, Preconditions};
use kube_core::ResourceExt;
use serde_json::json;
use windlass_runtime::{Context, Error, Result};

use crate::component;

const TYPE: &str = "DisruptionTarget";

/// Why a pod ends, in the condition `DisruptionTarget`.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Disruption<'a> {
    pub reason: &'a str,
    pub message: &'a str,
    /// The component that ends the pod.
    pub component: &'a str,
}

/// Marks and deletes a pod. Returns false if the pod is gone.
pub(crate) async fn disrupt(cx: &Context<Pod>, pod: &Pod, disruption: Disruption<'_>) -> Result<bool> {
    let pods: Api<Pod> = Api::namespaced(cx.client().clone(), &pod.namespace().unwrap_or_default());
    let condition = json!({
        "type": TYPE, "status": "True", "reason": disruption.reason,
        "message": disruption.message, "lastTransitionTime": Time(cx.now()),
        "observedGeneration": pod.metadata.generation,
    });
    let known = pod.status.iter().flat_map(|status| status.conditions.iter().flatten());
    let others = known.map(|condition| condition.type_.as_str()).filter(|type_| *type_ != TYPE);
    let order: Vec<_> = others.chain([TYPE]).map(|type_| json!({ "type": type_ })).collect();
    let patch = Patch::Strategic(json!({
        "metadata": {"uid": pod.metadata.uid},
        "status": {"$setElementOrder/conditions": order, "conditions": [condition]},
    }));
    let name = pod.name_any();
    let marked = pods.patch_status(&name, &component::patch(disruption.component), &patch).await;
    let delete = DeleteParams {
        preconditions: Some(Preconditions { uid: pod.metadata.uid.clone(), resource_version: None }),
        ..DeleteParams::default()
    };
    let ended = match marked.map_err(Error::from) {
        Ok(_) => pods.delete(&name, &delete).await.map(drop).map_err(Error::from),
        Err(error) => Err(error),
    };
    match ended {
        // Another pod with the name has another uid: a conflict.
        Err(error) if error.is_not_found() || error.is_conflict() => Ok(false),
        other => other.map(|()| true),
    }
}
