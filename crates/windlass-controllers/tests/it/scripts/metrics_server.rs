//! The resource metrics API of a recorded server.

use k8s_openapi::jiff::Timestamp;
use kube_client::Client;
use kube_client::config::Kubeconfig;
use serde_json::{Value, json};
use windlass_test::TestCluster;

use super::stage::send;

const METRICS: &str = "/apis/metrics.k8s.io/v1beta1";
const SERVICES: &str = "/apis/apiregistration.k8s.io/v1/apiservices";
pub(super) const SERVICE: &str = "/apis/apiregistration.k8s.io/v1/apiservices/v1beta1.metrics.k8s.io";

/// An embedded server whose custom resources are the metrics of pods. The recorded server aggregates the embedded server.
pub(super) struct MetricsServer {
    cluster: TestCluster,
    namespace: String,
}

impl MetricsServer {
    /// Starts the server, and registers the API with the server of `recorded`.
    pub(super) async fn start(recorded: &Client, namespace: &str) -> Self {
        let cluster = TestCluster::start().await;
        cluster.install(&serde_json::from_value(definition()).unwrap()).await;
        let client = cluster.client();
        // The recorded server has no credentials for the embedded server.
        let subject =
            json!({"apiGroup": "rbac.authorization.k8s.io", "kind": "User", "name": "system:anonymous"});
        let role =
            json!({"apiGroup": "rbac.authorization.k8s.io", "kind": "ClusterRole", "name": "cluster-admin"});
        let binding = json!({"metadata": {"name": "everybody"}, "subjects": [subject], "roleRef": role});
        send(&client, "/apis/rbac.authorization.k8s.io/v1/clusterrolebindings", &binding).await;
        send(&client, "/api/v1/namespaces", &json!({"metadata": {"name": namespace}})).await;
        let config = Kubeconfig::from_yaml(&cluster.kubeconfig().await).unwrap();
        let url = config.clusters[0].cluster.as_ref().unwrap().server.clone().unwrap();
        let port: u16 = url.rsplit(':').next().unwrap().parse().unwrap();
        let service = json!({
            "metadata": {"name": "metrics"}, "spec": {"type": "ExternalName", "externalName": "localhost"},
        });
        send(recorded, &format!("/api/v1/namespaces/{namespace}/services"), &service).await;
        let spec = json!({
            "group": "metrics.k8s.io", "version": "v1beta1", "groupPriorityMinimum": 100, "versionPriority": 100,
            "service": {"namespace": namespace, "name": "metrics", "port": port}, "insecureSkipTLSVerify": true,
        });
        let registered = json!({"metadata": {"name": "v1beta1.metrics.k8s.io"}, "spec": spec});
        send(recorded, SERVICES, &registered).await;
        Self { cluster, namespace: namespace.to_owned() }
    }

    /// Sets the usage of a pod with the container `c`.
    pub(super) async fn set(&self, pod: &str, labels: &Value, usage: &Value) {
        let path = format!("{METRICS}/namespaces/{}/pods", self.namespace);
        let metrics = json!({
            "apiVersion": "metrics.k8s.io/v1beta1", "kind": "PodMetrics",
            "metadata": {"name": pod, "labels": labels},
            "timestamp": Timestamp::now().to_string(), "window": "30s",
            "containers": [{"name": "c", "usage": usage}],
        });
        let client = self.cluster.client();
        let applied = http::Request::patch(format!("{path}/{pod}?fieldManager=script&force=true"))
            .header("content-type", "application/apply-patch+yaml")
            .body(serde_json::to_vec(&metrics).unwrap());
        client.request::<Value>(applied.unwrap()).await.unwrap();
    }
}

/// Returns the definition of the metrics of pods.
fn definition() -> Value {
    let schema = json!({"type": "object", "x-kubernetes-preserve-unknown-fields": true});
    json!({
        "metadata": {
            "name": "pods.metrics.k8s.io", "annotations": {"api-approved.kubernetes.io": "unapproved, a test"},
        },
        "spec": {
            "group": "metrics.k8s.io", "scope": "Namespaced", "names": {"plural": "pods", "kind": "PodMetrics"},
            "versions": [{
                "name": "v1beta1", "served": true, "storage": true, "schema": {"openAPIV3Schema": schema},
            }],
        },
    })
}
