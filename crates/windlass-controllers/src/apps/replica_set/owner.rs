//! The kinds with a number of equal pods: ReplicaSets, and ReplicationControllers, the older form.

use std::fmt::Debug;

use k8s_openapi::NamespaceResourceScope;
use k8s_openapi::api::apps::v1::{ReplicaSet, ReplicaSetStatus};
use kube_core::Resource;
use serde::Serialize;
use windlass_runtime::Object;

/// A kind that this controller keeps pods for.
pub(crate) trait ReplicaOwner:
    Object + Resource<DynamicType = (), Scope = NamespaceResourceScope> + Serialize + Clone + Debug
{
    /// The name of the controller.
    const CONTROLLER: &str;
    type Status: Serialize + Send;

    /// Returns the object in the form of a ReplicaSet.
    fn to_replica_set(&self) -> ReplicaSet;

    /// Returns the status in the form of this kind.
    fn status(status: ReplicaSetStatus) -> Self::Status;
}

impl ReplicaOwner for ReplicaSet {
    const CONTROLLER: &str = "replicaset-controller";
    type Status = ReplicaSetStatus;

    fn to_replica_set(&self) -> ReplicaSet {
        self.clone()
    }

    fn status(status: ReplicaSetStatus) -> ReplicaSetStatus {
        status
    }
}
