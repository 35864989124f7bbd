//! The custom resource `OrderedSet`.

use k8s_openapi::{api::core::v1::PodTemplateSpec, apimachinery::pkg::apis::meta::v1::Time};
use schemars::{
    JsonSchema, Schema, SchemaGenerator,
    transform::{RecursiveTransform, Transform},
};
use serde::{Deserialize, Serialize};
use windlass::{conditions::Condition, prelude::*};

/// Pods with an order.
#[derive(CustomResource, Serialize, Deserialize, JsonSchema, Clone, Debug, Default, PartialEq)]
#[kube(group = "apps.abc.com", version = "v1", kind = "OrderedSet", namespaced, status = "OrderedSetStatus")]
#[kube(scale(
    spec_replicas_path = ".spec.replicas",
    status_replicas_path = ".status.replicas",
    label_selector_path = ".status.selector"
))]
#[kube(printcolumn = r#"{"name": "Ready", "type": "integer", "jsonPath": ".status.readyReplicas"}"#)]
#[kube(printcolumn = r#"{"name": "Desired", "type": "integer", "jsonPath": ".spec.replicas"}"#)]
#[kube(printcolumn = r#"{"name": "Updated", "type": "integer", "jsonPath": ".status.updatedReplicas"}"#)]
#[kube(
    printcolumn = r#"{"name": "Blocked", "type": "string", "jsonPath": ".status.conditions[?(@.type=='Blocked')].reason"}"#
)]
#[serde(rename_all = "camelCase")]
pub struct OrderedSetSpec {
    /// The number of pods. The indexes begin with 0.
    pub replicas: u32,
    /// The pods. The labels that tell the pods of a set apart are added.
    #[schemars(schema_with = "pod_template")]
    pub template: PodTemplateSpec,
    /// The time that a pod may keep other pods waiting before the set reports the pod, in seconds. Default:
    /// 60.
    #[serde(default = "default_patience")]
    pub patience_seconds: u32,
}

fn default_patience() -> u32 {
    60
}

/// Returns the schema of a pod template with typed fields, so that the server refuses a template that does
/// not decode. Descriptions are left out: four fifths of the CRD would be descriptions.
fn pod_template(generator: &mut SchemaGenerator) -> Schema {
    let mut template = PodTemplateSpec::json_schema(generator);
    RecursiveTransform(|schema: &mut Schema| drop(schema.remove("description"))).transform(&mut template);
    template
}

/// The observed state of a set.
#[derive(Serialize, Deserialize, JsonSchema, Clone, Debug, Default, PartialEq)]
#[serde(rename_all = "camelCase")]
pub struct OrderedSetStatus {
    /// How many pods there are.
    pub replicas: u32,
    /// The number of running and ready pods.
    pub ready_replicas: u32,
    /// The number of pods with the present template.
    pub updated_replicas: u32,
    /// The labels of the pods, for `kubectl scale` and autoscalers.
    pub selector: String,
    /// The pod that keeps other pods waiting, and pods that kept others waiting and have ended since.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub waiting: Vec<Waiting>,
    /// `Ready`: all pods exist, are ready and up to date. `Blocked`: a pod cannot be created, or has kept
    /// other pods waiting for longer than the set's patience.
    #[serde(default)]
    pub conditions: Vec<Condition>,
}

/// A pod that keeps other pods waiting, or that kept others waiting and has ended since.
///
/// The time is in the status of the set, because a pod that ends and is replaced repeatedly is a new pod each
/// time.
#[derive(Serialize, Deserialize, JsonSchema, Clone, Debug, PartialEq)]
pub struct Waiting {
    /// The index of the pod.
    pub index: u32,
    /// The time at which the pod began to keep other pods waiting.
    pub since: Time,
    /// The number of replacements of the pod since then.
    #[serde(default)]
    pub replacements: u32,
}
