//! Replication controllers: the older form of ReplicaSets, with the controller of ReplicaSets.

use k8s_openapi::api::apps::v1::{ReplicaSet, ReplicaSetCondition, ReplicaSetSpec, ReplicaSetStatus};
use k8s_openapi::api::core::v1::{
    ReplicationController, ReplicationControllerCondition, ReplicationControllerStatus,
};
use k8s_openapi::apimachinery::pkg::apis::meta::v1::LabelSelector;
use windlass_runtime::Controller;

use crate::apps::replica_set::{self, ReplicaOwner};

/// Returns the controller.
pub(crate) fn controller() -> Controller {
    replica_set::controller::<ReplicationController>()
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
