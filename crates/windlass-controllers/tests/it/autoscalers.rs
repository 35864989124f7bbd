//! HorizontalPodAutoscalers, with metrics in annotations.

use k8s_openapi::api::apps::v1::Deployment;
use k8s_openapi::api::autoscaling::v2::HorizontalPodAutoscaler;
use k8s_openapi::api::core::v1::Event;
use kube_client::api::{ListParams, Patch, PatchParams};
use serde_json::{Value, json};
use windlass_test::{TestCluster, eventually};

use crate::support::{WAIT_LIMIT, api, becomes, create};

fn deployment() -> Value {
    json!({
        "metadata": {"name": "web", "annotations": {"metrics.windlass.dev/cpu": "1500m"}},
        "spec": {
            "replicas": 2,
            "selector": {"matchLabels": {"app": "web"}},
            "template": {
                "metadata": {"labels": {"app": "web"}},
                "spec": {"containers": [{
                    "name": "c", "image": "busybox", "resources": {"requests": {"cpu": "100m"}}}]},
            },
        },
    })
}

fn autoscaler(metric: Value) -> Value {
    json!({
        "metadata": {"name": "web"},
        "spec": {
            "scaleTargetRef": {"apiVersion": "apps/v1", "kind": "Deployment", "name": "web"},
            "minReplicas": 1, "maxReplicas": 5, "metrics": [metric],
        },
    })
}

fn condition(autoscaler: &HorizontalPodAutoscaler, kind: &str) -> Option<(String, String)> {
    let conditions = autoscaler.status.as_ref()?.conditions.as_ref()?;
    let found = conditions.iter().find(|condition| condition.type_ == kind)?;
    Some((found.status.clone(), found.reason.clone().unwrap_or_default()))
}

fn ready(deployment: &Deployment) -> i32 {
    deployment.status.as_ref().and_then(|status| status.ready_replicas).unwrap_or(0)
}

#[tokio::test]
async fn a_busy_deployment_grows_to_the_maximum() {
    let cluster = TestCluster::with_controllers().await;
    let client = cluster.client();
    create::<Deployment>(&client, deployment()).await;
    becomes::<Deployment>(&client, "web", |deployment| ready(deployment) == 2).await;
    let metric = json!({"type": "Resource", "resource": {
        "name": "cpu", "target": {"type": "Utilization", "averageUtilization": 50}}});
    create::<HorizontalPodAutoscaler>(&client, autoscaler(metric)).await;
    let grown = becomes::<HorizontalPodAutoscaler>(&client, "web", |autoscaler| {
        let status = autoscaler.status.as_ref();
        status.is_some_and(|status| status.desired_replicas == 4)
    })
    .await;
    let status = |reason: &str| Some(("True".to_owned(), reason.to_owned()));
    assert_eq!(condition(&grown, "AbleToScale"), status("SucceededRescale"));
    assert_eq!(condition(&grown, "ScalingActive"), status("ValidMetricFound"));
    assert_eq!(condition(&grown, "ScalingLimited"), status("ScaleUpLimit"));
    let metrics = serde_json::to_value(grown.status.unwrap().current_metrics).unwrap();
    assert_eq!(
        metrics[0]["resource"]["current"],
        json!({"averageUtilization": 1500, "averageValue": "1500m"})
    );
    becomes::<Deployment>(&client, "web", |deployment| ready(deployment) == 4).await;
    let message = "New size: 4; reason: cpu resource utilization (percentage of request) above target";
    eventually(WAIT_LIMIT, || async {
        let events =
            api::<Event>(&client).list(&ListParams::default()).await.map_err(|error| error.to_string())?;
        let is_recorded = events.items.iter().any(|event| event.message.as_deref() == Some(message));
        is_recorded.then_some(()).ok_or_else(|| format!("{message:?} is not recorded"))
    })
    .await;
}

#[tokio::test]
async fn a_change_of_an_external_metric_takes_effect_at_once() {
    let cluster = TestCluster::with_controllers().await;
    let client = cluster.client();
    create::<Deployment>(&client, deployment()).await;
    let metric = json!({"type": "External", "external": {
        "metric": {"name": "queue"}, "target": {"type": "AverageValue", "averageValue": "10"}}});
    create::<HorizontalPodAutoscaler>(&client, autoscaler(metric)).await;
    let missing = becomes::<HorizontalPodAutoscaler>(&client, "web", |autoscaler| {
        condition(autoscaler, "ScalingActive").is_some()
    })
    .await;
    let failed = ("False".to_owned(), "FailedGetExternalMetric".to_owned());
    assert_eq!(condition(&missing, "ScalingActive"), Some(failed));
    let annotations = json!({"metadata": {"annotations": {"metrics.windlass.dev/queue": "30"}}});
    api::<HorizontalPodAutoscaler>(&client)
        .patch("web", &PatchParams::default(), &Patch::Merge(annotations))
        .await
        .unwrap();
    becomes::<Deployment>(&client, "web", |deployment| ready(deployment) == 3).await;
}

#[tokio::test]
async fn an_autoscaler_without_a_target_says_so() {
    let cluster = TestCluster::with_controllers().await;
    let client = cluster.client();
    let metric = json!({"type": "Resource", "resource": {
        "name": "cpu", "target": {"type": "Utilization", "averageUtilization": 50}}});
    create::<HorizontalPodAutoscaler>(&client, autoscaler(metric)).await;
    let found = becomes::<HorizontalPodAutoscaler>(&client, "web", |autoscaler| {
        condition(autoscaler, "AbleToScale").is_some()
    })
    .await;
    let conditions = found.status.unwrap().conditions.unwrap();
    assert_eq!(conditions[0].reason.as_deref(), Some("FailedGetScale"));
    let message =
        "the HPA controller was unable to get the target's current scale: deployments.apps \"web\" not found";
    assert_eq!(conditions[0].message.as_deref(), Some(message));
}

#[tokio::test]
async fn a_target_that_was_scaled_to_zero_returns() {
    let cluster = TestCluster::with_controllers().await;
    let client = cluster.client();
    create::<Deployment>(&client, deployment()).await;
    let metric = json!({"type": "External", "external": {
        "metric": {"name": "queue"}, "target": {"type": "AverageValue", "averageValue": "10"}}});
    let mut zero = autoscaler(metric);
    zero["spec"]["minReplicas"] = json!(0);
    zero["spec"]["behavior"] = json!({"scaleDown": {"stabilizationWindowSeconds": 0}});
    zero["metadata"]["annotations"] = json!({"metrics.windlass.dev/queue": "0"});
    create::<HorizontalPodAutoscaler>(&client, zero).await;
    let wanted = |replicas: i32| {
        move |deployment: &Deployment| deployment.spec.as_ref().unwrap().replicas == Some(replicas)
    };
    becomes::<Deployment>(&client, "web", wanted(0)).await;
    becomes::<HorizontalPodAutoscaler>(&client, "web", |autoscaler| {
        condition(autoscaler, "ScaledToZero") == Some(("True".to_owned(), "ScaledToZero".to_owned()))
    })
    .await;
    let busy = json!({"metadata": {"annotations": {"metrics.windlass.dev/queue": "25"}}});
    api::<HorizontalPodAutoscaler>(&client)
        .patch("web", &PatchParams::default(), &Patch::Merge(busy))
        .await
        .unwrap();
    becomes::<Deployment>(&client, "web", wanted(3)).await;
    becomes::<HorizontalPodAutoscaler>(&client, "web", |autoscaler| {
        condition(autoscaler, "ScaledToZero") == Some(("False".to_owned(), "NotScaledToZero".to_owned()))
    })
    .await;
}

#[tokio::test]
async fn a_target_with_an_earlier_version_is_found_by_group_and_kind() {
    let cluster = TestCluster::with_controllers().await;
    let client = cluster.client();
    create::<Deployment>(&client, deployment()).await;
    let metric = json!({"type": "Resource", "resource": {
        "name": "cpu", "target": {"type": "Utilization", "averageUtilization": 50}}});
    let mut earlier = autoscaler(metric);
    earlier["spec"]["scaleTargetRef"]["apiVersion"] = json!("apps/v1beta2");
    create::<HorizontalPodAutoscaler>(&client, earlier).await;
    becomes::<HorizontalPodAutoscaler>(&client, "web", |autoscaler| {
        condition(autoscaler, "AbleToScale").is_some_and(|(status, _)| status == "True")
    })
    .await;
}
