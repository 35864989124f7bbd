//! The custom resource `Foo`.

use k8s_openapi::apiextensions_apiserver::pkg::apis::apiextensions::v1::CustomResourceDefinition;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use windlass::{prelude::*, schema};

/// The desired state of a Foo.
#[schema]
#[derive(CustomResource, Serialize, Deserialize, JsonSchema, Clone, Debug, Default, PartialEq, Eq)]
#[kube(
    group = "samplecontroller.k8s.io",
    version = "v1alpha1",
    kind = "Foo",
    namespaced,
    status = "FooStatus"
)]
// The server accepts a group under k8s.io only with this annotation.
#[kube(annotation("api-approved.kubernetes.io", "unapproved, experimental-only"))]
#[serde(rename_all = "camelCase")]
pub struct FooSpec {
    /// The name of the Deployment, in the namespace of the Foo.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub deployment_name: String,
    /// The number of replicas of the Deployment. Without a number, the field is left to other field managers.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schema(minimum = 1, maximum = 10)]
    pub replicas: Option<i32>,
}

/// The observed state of a Foo.
#[derive(Serialize, Deserialize, JsonSchema, Clone, Debug, Default, PartialEq, Eq)]
#[serde(rename_all = "camelCase")]
pub struct FooStatus {
    /// The available replicas of the Deployment.
    #[serde(default)]
    pub available_replicas: i32,
}

/// Returns the variant of the CRD without the status subresource: there, the status is a field like any other.
///
/// [`Foo::crd`] has the subresource, which most operators want: a user's update of the object cannot change
/// the status, and a change of the status leaves `metadata.generation` alone.
pub fn crd_without_status() -> CustomResourceDefinition {
    let mut crd = Foo::crd();
    for version in &mut crd.spec.versions {
        version.subresources = None;
    }
    crd
}
