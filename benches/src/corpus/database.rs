//! A custom resource with a status and two field managers.

use super::{app, namespace};
use crate::random::Random;
use serde_json::json;

pub(super) fn database(random: &mut Random, number: u64, revision: u64) -> String {
    let (app, namespace, time, uid) = (app(random), namespace(random), random.time(), random.uid());
    let (replicas, minor) = (random.below(9) + 1, random.below(10));
    let managed = json!([
        {"apiVersion": "db.example.com/v1", "fieldsType": "FieldsV1", "fieldsV1": {"f:spec": {
            "f:backup": {"f:retentionDays": {}, "f:schedule": {}}, "f:image": {}, "f:replicas": {}, "f:storage": {},
            "f:version": {}}}, "manager": "kubectl", "operation": "Apply", "time": time},
        {"apiVersion": "db.example.com/v1", "fieldsType": "FieldsV1", "fieldsV1": {"f:status": {
            "f:conditions": {}, "f:phase": {}, "f:readyReplicas": {}}}, "manager": "example-operator",
            "operation": "Update", "subresource": "status", "time": time},
    ]);
    json!({
        "apiVersion": "db.example.com/v1", "kind": "Database",
        "metadata": {
            "creationTimestamp": time, "finalizers": ["db.example.com/cleanup"], "generation": 1,
            "labels": {"app.kubernetes.io/name": app, "app.kubernetes.io/managed-by": "example-operator"},
            "managedFields": managed, "name": format!("{app}-{number:06}"), "namespace": namespace,
            "resourceVersion": revision.to_string(), "uid": uid,
        },
        "spec": {
            "replicas": replicas, "version": format!("16.{minor}"),
            "image": format!("registry.example.com/db/postgres:16.{minor}"),
            "storage": {"size": "100Gi", "class": "gp3"},
            "backup": {"schedule": "0 3 * * *", "retentionDays": 14},
        },
        "status": {
            "phase": "Ready", "observedGeneration": 1, "readyReplicas": replicas,
            "conditions": [{"type": "Ready", "status": "True", "reason": "AllReplicasReady",
                "lastTransitionTime": time, "observedGeneration": 1}],
        },
    })
    .to_string()
}
