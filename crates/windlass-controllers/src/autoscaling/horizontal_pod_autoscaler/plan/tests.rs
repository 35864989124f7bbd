use std::sync::Arc;

use k8s_openapi::api::core::v1::Pod;
use serde_json::{Value, json};

use super::*;
use crate::autoscaling::horizontal_pod_autoscaler::metrics::Annotations;

fn at(second: i64) -> Timestamp {
    Timestamp::from_second(1_800_000_000 + second).unwrap()
}

fn autoscaler(spec: Value) -> HorizontalPodAutoscaler {
    let mut all = json!({
        "scaleTargetRef": {"apiVersion": "apps/v1", "kind": "Deployment", "name": "web"},
        "minReplicas": 2, "maxReplicas": 6,
        "metrics": [{"type": "Resource", "resource": {
            "name": "cpu", "target": {"type": "Utilization", "averageUtilization": 50}}}],
    });
    all.as_object_mut().unwrap().extend(spec.as_object().unwrap().clone());
    serde_json::from_value(json!({"metadata": {"name": "web", "namespace": "ns"}, "spec": all})).unwrap()
}

fn annotations(values: &[(&str, &str)]) -> Annotations {
    let entry = |(name, value): &(&str, &str)| (format!("metrics.windlass.dev/{name}"), (*value).to_owned());
    values.iter().map(entry).collect()
}

/// Pods that are ready, request a CPU, and have an annotation each.
fn pods(values: &[(&str, &str)]) -> Vec<Arc<Pod>> {
    let pod = |(index, value): (usize, &(&str, &str))| {
        let pod = json!({
            "metadata": {"name": format!("web-{index}"), "annotations": annotations(&[*value])},
            "spec": {"containers": [{"name": "c", "resources": {"requests": {"cpu": "1", "memory": "1Gi"}}}]},
            "status": {"phase": "Running", "startTime": "2026-01-01T00:00:00Z", "conditions": [
                {"type": "Ready", "status": "True", "lastTransitionTime": "2026-01-01T00:00:05Z"}]},
        });
        Arc::new(serde_json::from_value(pod).unwrap())
    };
    values.iter().enumerate().map(pod).collect()
}

fn size(wanted: i32) -> Size {
    Size { wanted, running: wanted, selector: "app=web".to_owned() }
}

/// An autoscaler over time.
struct Stage {
    autoscaler: HorizontalPodAutoscaler,
    metrics: Metrics,
    history: History,
}

impl Stage {
    fn new(spec: Value, pods: Vec<Arc<Pod>>) -> Self {
        let metrics = Metrics { pods, ..Metrics::default() };
        Self { autoscaler: autoscaler(spec), metrics, history: History::default() }
    }

    fn plan(&mut self, wanted: i32, second: i64) -> Plan {
        let size = size(wanted);
        let input = Input {
            autoscaler: &self.autoscaler,
            size: &size,
            selector_error: None,
            metrics: &self.metrics,
            is_1_37: true,
            now: at(second),
        };
        let plan = plan(input, &mut self.history);
        self.autoscaler.status = Some(plan.status.clone());
        plan
    }
}

fn condition(plan: &Plan, kind: &str) -> String {
    let found = plan.status.conditions.iter().flatten().find(|condition| condition.type_ == kind).unwrap();
    format!("{} {}: {}", found.status, found.reason.as_deref().unwrap(), found.message.as_deref().unwrap())
}

#[test]
fn a_busy_target_grows() {
    let mut stage = Stage::new(json!({}), pods(&[("cpu", "600m"), ("cpu", "900m"), ("cpu", "750m")]));
    let plan = stage.plan(3, 0);
    let reason = "cpu resource utilization (percentage of request) above target".to_owned();
    assert_eq!(plan.rescale, Some(Rescale { from: 3, to: 5, reason }));
    assert_eq!(
        condition(&plan, "ScalingActive"),
        "True ValidMetricFound: the HPA was able to successfully calculate a replica count from cpu resource utilization \
         (percentage of request)"
    );
    assert_eq!(
        condition(&plan, "ScalingLimited"),
        "False DesiredWithinRange: the desired count is within the acceptable range"
    );
    assert_eq!(
        condition(&plan, "AbleToScale"),
        "True ReadyForNewScale: recommended size matches current size"
    );
    let metrics = serde_json::to_value(&plan.status.current_metrics).unwrap();
    let current = json!({"averageUtilization": 75, "averageValue": "750m"});
    assert_eq!(metrics, json!([{"type": "Resource", "resource": {"name": "cpu", "current": current}}]));
    assert_eq!((plan.status.current_replicas, plan.status.desired_replicas), (Some(3), 5));
}

#[test]
fn an_idle_target_shrinks_after_five_minutes() {
    let mut stage = Stage::new(json!({}), pods(&[("cpu", "100m"); 4]));
    let plan = stage.plan(4, 0);
    assert_eq!(plan.rescale, None);
    assert!(condition(&plan, "AbleToScale").starts_with("True ScaleDownStabilized: "), "{plan:?}");
    let plan = stage.plan(4, 301);
    let reason = "All metrics below target".to_owned();
    assert_eq!(plan.rescale, Some(Rescale { from: 4, to: 2, reason }), "the minimum");
    assert!(condition(&plan, "ScalingLimited").starts_with("True TooFewReplicas: "), "{plan:?}");
}

#[test]
fn a_target_outside_of_the_bounds_returns_without_metrics() {
    let mut stage = Stage::new(json!({}), pods(&[]));
    let above = stage.plan(9, 0).rescale.unwrap();
    assert_eq!((above.to, above.reason.as_str()), (6, "Current number of replicas above Spec.MaxReplicas"));
    let below = stage.plan(1, 0).rescale.unwrap();
    assert_eq!((below.to, below.reason.as_str()), (2, "Current number of replicas below Spec.MinReplicas"));
    let off = stage.plan(0, 0);
    assert_eq!(off.rescale, None);
    assert_eq!(
        condition(&off, "ScalingActive"),
        "False ScalingDisabled: scaling is disabled since the replica count of the target is zero"
    );
}

#[test]
fn a_metric_that_is_missing_says_so_and_scales_nothing() {
    let mut stage = Stage::new(json!({}), pods(&[("other", "1")]));
    let plan = stage.plan(3, 0);
    let cause = "failed to get cpu utilization: unable to get metrics for resource cpu: unable to fetch metrics from resource metrics API: the server could not find the requested resource (get pods.metrics.k8s.io)";
    assert_eq!(plan.rescale, None);
    assert_eq!(
        plan.warnings,
        [
            ("FailedGetResourceMetric", cause.to_owned()),
            (
                "FailedComputeMetricsReplicas",
                format!(
                    "invalid metrics (1 invalid out of 1), first error is: failed to get cpu resource metric value: {cause}"
                )
            ),
        ]
    );
    assert_eq!(
        condition(&plan, "ScalingActive"),
        format!("False FailedGetResourceMetric: the HPA was unable to compute the replica count: {cause}")
    );
}

/// Returns the replicas that a metric asks for, the current value, and the name of the metric.
fn by(metric: Value, change: impl FnOnce(&mut Metrics)) -> (i32, Value, String) {
    let mut stage = Stage::new(json!({"metrics": [metric], "maxReplicas": 20}), pods(&[("rps", "20"); 3]));
    change(&mut stage.metrics);
    let plan = stage.plan(3, 0);
    let status = serde_json::to_value(&plan.status.current_metrics.as_ref().unwrap()[0]).unwrap();
    let kind = status["type"].as_str().unwrap().to_owned();
    let field = format!("{}{}", kind[..1].to_lowercase(), &kind[1..]);
    let message = condition(&plan, "ScalingActive");
    let name = message.rsplit_once(" from ").map(|(_, name)| name.to_owned()).unwrap();
    (plan.status.desired_replicas, status[field]["current"].clone(), name)
}

#[test]
fn every_type_of_metric_scales() {
    let average = |value: &str| json!({"type": "AverageValue", "averageValue": value});
    let metric = |name: &str| json!({"name": name});
    let pods = json!({"type": "Pods", "pods": {"metric": metric("rps"), "target": average("10")}});
    assert_eq!(by(pods, |_| {}), (6, json!({"averageValue": "20"}), "pods metric rps".into()));

    let described = json!({"apiVersion": "networking.k8s.io/v1", "kind": "Ingress", "name": "main"});
    let of_object = |metrics: &mut Metrics| {
        let key = ("Ingress".to_owned(), "main".to_owned());
        metrics.objects.insert(key, Ok(annotations(&[("requests", "2k")])));
    };
    let value = json!({"type": "Value", "value": "1k"});
    let object = |target: Value| {
        json!({"type": "Object", "object": {
            "metric": metric("requests"), "describedObject": described.clone(), "target": target}})
    };
    assert_eq!(by(object(value), of_object), (6, json!({"value": "2k"}), "Ingress metric requests".into()));
    assert_eq!(
        by(object(average("500")), of_object),
        (4, json!({"averageValue": "666667m"}), "external metric requests(nil)".into())
    );

    let external = json!({"type": "External", "external": {
        "metric": {"name": "queue", "selector": {"matchLabels": {"q": "a"}}}, "target": average("30")}});
    let of_queue = |metrics: &mut Metrics| metrics.autoscaler = annotations(&[("queue", "150")]);
    let name = "external metric queue(&LabelSelector{MatchLabels:map[string]string{q: a,},\
                MatchExpressions:[]LabelSelectorRequirement{},})";
    assert_eq!(by(external, of_queue), (5, json!({"averageValue": "50"}), name.into()));

    let memory = json!({"type": "Resource", "resource": {"name": "memory", "target": average("64Mi")}});
    let of_target = |metrics: &mut Metrics| metrics.target = annotations(&[("memory", "128Mi")]);
    assert_eq!(by(memory, of_target), (6, json!({"averageValue": "128Mi"}), "memory resource".into()));

    let container = json!({"type": "ContainerResource", "containerResource": {
        "name": "cpu", "container": "c", "target": {"type": "Utilization", "averageUtilization": 50}}});
    let of_container = |metrics: &mut Metrics| metrics.target = annotations(&[("cpu.c", "1")]);
    let current = json!({"averageUtilization": 100, "averageValue": "1"});
    let name = "cpu container resource utilization (percentage of request)";
    assert_eq!(by(container, of_container), (6, current, name.into()));
}

#[test]
fn the_largest_of_the_metrics_counts_and_a_broken_metric_prevents_shrinking() {
    let cpu = |percent: i32| {
        json!({"type": "Resource", "resource": {
            "name": "cpu", "target": {"type": "Utilization", "averageUtilization": percent}}})
    };
    let broken = json!({"type": "Resource", "resource": {
        "name": "memory", "target": {"type": "Utilization", "averageUtilization": 50}}});
    let busy = || pods(&[("cpu", "900m"); 3]);
    let both = Stage::new(json!({"metrics": [cpu(90), cpu(50)]}), busy()).plan(3, 0);
    assert_eq!(both.status.desired_replicas, 6);
    let mut grows = Stage::new(json!({"metrics": [broken.clone(), cpu(50)]}), busy());
    let plan = grows.plan(3, 0);
    assert_eq!((plan.status.desired_replicas, plan.warnings.len()), (6, 1));
    let mut shrinks = Stage::new(json!({"metrics": [cpu(200), broken]}), busy());
    shrinks.plan(3, 0);
    let plan = shrinks.plan(3, 400);
    assert_eq!(plan.rescale, None);
    assert!(condition(&plan, "ScalingActive").starts_with("False FailedGetResourceMetric: "), "{plan:?}");
}

#[test]
fn the_outcome_of_a_change_is_in_the_status() {
    let mut plan = Stage::new(json!({}), pods(&[("cpu", "900m"); 3])).plan(3, 0);
    plan.not_rescaled(3, "conflict", at(1));
    assert_eq!(
        condition(&plan, "AbleToScale"),
        "False FailedUpdateScale: the HPA controller was unable to update the target scale: conflict"
    );
    assert_eq!((plan.status.desired_replicas, plan.status.last_scale_time.is_some()), (3, false));
    plan.rescaled(6, at(2));
    assert_eq!(
        condition(&plan, "AbleToScale"),
        "True SucceededRescale: the HPA controller was able to update the target scale to 6"
    );
    assert_eq!((plan.status.desired_replicas, plan.status.last_scale_time.is_some()), (6, true));
    let missing = Plan::without_target(&autoscaler(json!({})), "deployments.apps \"web\" not found", at(0));
    assert_eq!(
        condition(&missing, "AbleToScale"),
        "False FailedGetScale: the HPA controller was unable to get the target's current scale: deployments.apps \"web\" not found"
    );
}

#[test]
fn a_target_without_replicas_returns_only_if_the_autoscaler_scaled_it_to_zero() {
    let metric = json!({"type": "External", "external": {
        "metric": {"name": "queue"}, "target": {"type": "AverageValue", "averageValue": "10"}}});
    let down = json!({"type": "Percent", "value": 100, "periodSeconds": 15});
    let up = json!({"type": "Pods", "value": 4, "periodSeconds": 15});
    let behavior = json!({
        "scaleDown": {"stabilizationWindowSeconds": 0, "policies": [down]}, "scaleUp": {"policies": [up]},
    });
    let spec = json!({"minReplicas": 0, "metrics": [metric], "behavior": behavior});
    let mut stage = Stage::new(spec, Vec::new());
    stage.metrics.autoscaler = annotations(&[("queue", "25")]);
    let by_hand = stage.plan(0, 0);
    assert_eq!(by_hand.rescale, None);
    assert!(condition(&by_hand, "ScalingActive").starts_with("False ScalingDisabled"), "{by_hand:?}");
    stage.metrics.autoscaler = annotations(&[("queue", "0")]);
    let mut down = stage.plan(2, 1);
    let rescale = down.rescale.take().unwrap();
    assert_eq!((rescale.from, rescale.to), (2, 0));
    down.note_zero(&stage.autoscaler.spec, &rescale, at(1));
    assert_eq!(
        condition(&down, "ScaledToZero"),
        "True ScaledToZero: the HPA controller scaled the workload to zero"
    );
    stage.autoscaler.status = Some(down.status);
    stage.metrics.autoscaler = annotations(&[("queue", "25")]);
    let up = stage.plan(0, 20).rescale.unwrap();
    assert_eq!((up.from, up.to), (0, 3));
    stage.metrics.autoscaler = annotations(&[("queue", "0")]);
    stage.autoscaler.spec.min_replicas = Some(2);
    let least = stage.plan(0, 40).rescale.unwrap();
    assert_eq!((least.to, least.reason.as_str()), (2, "Current number of replicas below Spec.MinReplicas"));
}
