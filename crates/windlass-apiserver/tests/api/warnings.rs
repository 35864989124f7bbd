//! Warnings about what objects have.

use serde_json::{Value, json};

use crate::harness::{Api, NOT_ENFORCED};

/// Creates the object in a dry run, and returns its warnings.
async fn warned(api: &Api, path: &str, object: Value) -> Vec<String> {
    let reply = api.post(&format!("{path}?dryRun=All"), object).await.is(201);
    let warnings = reply.warnings().into_iter().filter(|warning| !warning.starts_with(NOT_ENFORCED));
    warnings.map(|warning| warning.trim_start_matches("299 - ").replace('\\', "")).collect()
}

fn claim_spec(size: &str) -> Value {
    json!({"accessModes": ["ReadWriteOnce"], "resources": {"requests": {"storage": size}}})
}

const CLASS: &str = "volume.beta.kubernetes.io/storage-class";

#[tokio::test]
async fn of_volumes_and_claims() {
    let api = Api::start();
    let claims = format!("/api/v1/namespaces/{}/persistentvolumeclaims", api.namespace().await);
    let claim = json!({"metadata": {"name": "a", "annotations": {CLASS: "x"}}, "spec": claim_spec("1.500")});
    assert_eq!(
        warned(&api, &claims, claim).await,
        [
            format!(r#""metadata.annotations[{CLASS}]: deprecated since v1.8; use "storageClassName" attribute instead""#),
            r#""spec.resources.requests[storage]: fractional byte value "1.500" is invalid, must be an integer""#.to_owned(),
        ]
    );
    let old_zone = json!([{"matchExpressions": [{"key": "failure-domain.beta.kubernetes.io/zone", "operator": "Exists"}]}]);
    let volume = json!({"metadata": {"name": "warned"}, "spec": {
        "capacity": {"storage": "1Gi"}, "accessModes": ["ReadWriteOnce"], "hostPath": {"path": "/tmp/x"},
        "nodeAffinity": {"required": {"nodeSelectorTerms": old_zone}},
    }});
    assert_eq!(
        warned(&api, "/api/v1/persistentvolumes", volume).await,
        [
            r#""spec.nodeAffinity.required.nodeSelectorTerms[0].matchExpressions[0].key: failure-domain.beta.kubernetes.io/zone is deprecated since v1.17; use "topology.kubernetes.io/zone" instead""#
        ]
    );
    let topologies = json!([{"matchLabelExpressions": [{"key": "failure-domain.beta.kubernetes.io/zone", "values": ["a"]}]}]);
    let class =
        json!({"metadata": {"name": "warned"}, "provisioner": "a.b/c", "allowedTopologies": topologies});
    assert_eq!(
        warned(&api, "/apis/storage.k8s.io/v1/storageclasses", class).await,
        [
            r#""allowedTopologies[0].matchLabelExpressions[0].key: deprecated since v1.17; use "topology.kubernetes.io/zone" instead""#
        ]
    );
}

#[tokio::test]
async fn of_stateful_sets() {
    let api = Api::start();
    let sets = format!("/apis/apps/v1/namespaces/{}/statefulsets", api.namespace().await);
    let template = json!({
        "metadata": {"labels": {"app": "a"}}, "spec": {"containers": [{"name": "c", "image": "i"}]},
    });
    let set = json!({"metadata": {"name": "a"}, "spec": {
        "selector": {"matchLabels": {"app": "a"}}, "template": template, "revisionHistoryLimit": -1,
        "volumeClaimTemplates": [{"metadata": {"name": "d"}, "spec": claim_spec("1.5")}],
    }});
    assert_eq!(
        warned(&api, &sets, set).await,
        [
            r#""spec.volumeClaimTemplates[0].resources.requests[storage]: fractional byte value "1500m" is invalid, must be an integer""#,
            r#""spec.revisionHistoryLimit: a negative value retains all historical revisions; a value >= 0 is recommended""#,
        ]
    );
}

#[tokio::test]
async fn of_other_kinds() {
    let api = Api::start();
    let ns = api.namespace().await;
    let class = json!({
        "metadata": {"name": "warned"}, "handler": "x", "scheduling": {"nodeSelector": {"beta.kubernetes.io/arch": "a"}},
    });
    assert_eq!(
        warned(&api, "/apis/node.k8s.io/v1/runtimeclasses", class).await,
        [r#""scheduling.nodeSelector: deprecated since v1.14; use "kubernetes.io/arch" instead""#]
    );
    let secret = json!({
        "metadata": {"name": "a"}, "type": "kubernetes.io/tls", "data": {"tls.crt": "eA==", "tls.key": "eA=="},
    });
    assert_eq!(
        warned(&api, &format!("/api/v1/namespaces/{ns}/secrets"), secret).await,
        [r#""tls: failed to find any PEM data in certificate input""#]
    );
    let template = json!({"spec": {"restartPolicy": "Never", "containers": [{"name": "c", "image": "i"}]}});
    let job = json!({"metadata": {"name": "a"}, "spec": {
        "completions": 100_001, "parallelism": 10_001, "completionMode": "Indexed", "template": template,
    }});
    assert_eq!(
        warned(&api, &format!("/apis/batch/v1/namespaces/{ns}/jobs"), job).await,
        [
            r#""spec: In Indexed Jobs with a number of completions higher than 10^5 and a parallelism higher than 10^4, Kubernetes might not be able to track completedIndexes when a big number of indexes fail""#
        ]
    );
}
