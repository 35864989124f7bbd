//! HorizontalPodAutoscalers.

use serde_json::{Value, json};

use super::metrics_server::{MetricsServer, SERVICE};
use super::stage::Stage;

const AUTOSCALERS: &str = "autoscaling/v2/horizontalpodautoscalers";
const DEPLOYMENTS: &str = "apps/v1/deployments";

/// The pods of a deployment, with metrics: as annotations, and in the metrics API of a recorded server.
struct Pods {
    server: Option<MetricsServer>,
    /// The number of changes of the metrics.
    changes: u32,
}

impl Pods {
    /// Sets the usage of CPU of each pod, and lets the autoscaler read the metrics.
    async fn use_cpu(&mut self, stage: &Stage, cpu: &str) {
        for pod in stage.active().await {
            if let Some(server) = &self.server {
                server.set(&pod, &json!({"app": "web"}), &json!({"cpu": cpu, "memory": "1Mi"})).await;
            }
            let usage = json!({"metadata": {"annotations": {"metrics.windlass.dev/cpu": cpu}}});
            stage.patch(&format!("v1/pods/{pod}"), usage).await;
        }
        self.changes += 1;
        let read =
            json!({"metadata": {"annotations": {"metrics.windlass.dev/changes": self.changes.to_string()}}});
        stage.patch(&format!("{AUTOSCALERS}/web"), read).await;
    }
}

/// Reports the pods as ready for a long time.
async fn run_all(stage: &Stage) {
    let past = "2026-01-01T00:00:00Z";
    for pod in stage.active().await {
        let ready = json!([{"type": "Ready", "status": "True", "lastTransitionTime": past}]);
        stage.report(&pod, json!({"phase": "Running", "startTime": past, "conditions": ready})).await;
    }
}

fn deployment() -> Value {
    let requests = json!({"cpu": "100m"});
    let container = json!({"name": "c", "image": "i", "resources": {"requests": requests}});
    let template = json!({
        "metadata": {"labels": {"app": "web"}},
        "spec": {"containers": [container], "automountServiceAccountToken": false},
    });
    let spec = json!({"replicas": 2, "selector": {"matchLabels": {"app": "web"}}, "template": template});
    json!({"metadata": {"name": "web"}, "spec": spec})
}

#[tokio::test]
async fn an_autoscaler_follows_the_usage_of_cpu() {
    let mut stage = Stage::open("autoscaler", &[AUTOSCALERS, DEPLOYMENTS]).await;
    let metric = json!({
        "type": "Resource",
        "resource": {"name": "cpu", "target": {"type": "Utilization", "averageUtilization": 100}},
    });
    let target = json!({"apiVersion": "apps/v1", "kind": "Deployment", "name": "web"});
    let spec = json!({"scaleTargetRef": target, "minReplicas": 1, "maxReplicas": 5, "metrics": [metric]});
    stage.create(AUTOSCALERS, json!({"metadata": {"name": "web"}, "spec": spec})).await;
    stage.settle("no target").await;
    stage.create(DEPLOYMENTS, deployment()).await;
    stage.pods(2).await;
    run_all(&stage).await;
    let mut pods = Pods { server: None, changes: 0 };
    stage
        .patch(
            &format!("{AUTOSCALERS}/web"),
            json!({"metadata": {"annotations": {"metrics.windlass.dev/changes": "0"}}}),
        )
        .await;
    stage.settle("no metrics").await;
    pods.server = stage.metrics_server().await;
    pods.use_cpu(&stage, "190m").await;
    stage.pods(4).await;
    stage.has_condition(&format!("{DEPLOYMENTS}/web"), "Available", "False").await;
    run_all(&stage).await;
    pods.use_cpu(&stage, "100m").await;
    stage.settle("busy").await;
    pods.use_cpu(&stage, "300m").await;
    stage.pods(5).await;
    run_all(&stage).await;
    pods.use_cpu(&stage, "100m").await;
    stage.settle("at the maximum").await;
    pods.use_cpu(&stage, "20m").await;
    stage.settle("idle").await;
    let services: &[String] = if pods.server.is_some() { &[SERVICE.to_owned()] } else { &[] };
    stage.finish_with(services).await;
}
