//! The kinds with a number of equal pods: ReplicaSets, and ReplicationControllers, the older form.

use k8s_openapi::NamespaceResourceScope;
use k8s_openapi::api::apps::v1::{ReplicaSet, ReplicaSetCondition, ReplicaSetSpec, ReplicaSetStatus};
use k8s_openapi::api::core::v1::{
    ReplicationController, ReplicationControllerCondition, ReplicationControllerStatus,
};
use k8s_openapi::apimachinery::pkg::apis::meta::v1::LabelSelector;
use kube_core::Resource;
use serde::Serialize;
use windlass_runtime::Object;

/// A kind that this controller keeps pods for.
pub(super) trait ReplicaOwner:
    Object + Resource<DynamicType = (), Scope = NamespaceResourceScope> + Serialize + Sized
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

impl ReplicaOwner for ReplicationController {
    const CONTROLLER: &str = "replication-controller";
    type Status = ReplicationControllerStatus;

    fn to_replica_set(&self) -> ReplicaSet {
        let spec = self.spec.clone().unwrap_or_default();
        let status = self.status.clone().unwrap_or_default();
        let condition = |condition: ReplicationControllerCondition| ReplicaSetCondition {
            type_: condition.type_,
            status: condition.status,
            reason: condition.reason,
            message: condition.message,
            last_transition_time: condition.last_transition_time,
        };
        ReplicaSet {
            metadata: self.metadata.clone(),
            spec: Some(ReplicaSetSpec {
                min_ready_seconds: spec.min_ready_seconds,
                replicas: spec.replicas,
                selector: LabelSelector { match_labels: spec.selector, match_expressions: None },
                template: spec.template,
            }),
            status: Some(ReplicaSetStatus {
                replicas: status.replicas,
                available_replicas: status.available_replicas,
                ready_replicas: status.ready_replicas,
                fully_labeled_replicas: status.fully_labeled_replicas,
                observed_generation: status.observed_generation,
                conditions: status.conditions.map(|list| list.into_iter().map(condition).collect()),
                terminating_replicas: None,
            }),
        }
    }

    fn status(status: ReplicaSetStatus) -> ReplicationControllerStatus {
        let condition = |condition: ReplicaSetCondition| ReplicationControllerCondition {
            type_: condition.type_,
            status: condition.status,
            reason: condition.reason,
            message: condition.message,
            last_transition_time: condition.last_transition_time,
        };
        ReplicationControllerStatus {
            replicas: status.replicas,
            available_replicas: status.available_replicas,
            ready_replicas: status.ready_replicas,
            fully_labeled_replicas: status.fully_labeled_replicas,
            observed_generation: status.observed_generation,
            conditions: status.conditions.map(|list| list.into_iter().map(condition).collect()),
        }
    }
}
