//! One metric of an autoscaler: the replicas that the metric asks for, and the status of the metric.

use k8s_openapi::api::autoscaling::v2::{
    ContainerResourceMetricStatus, ExternalMetricSource, ExternalMetricStatus, MetricIdentifier, MetricSpec,
    MetricStatus, MetricTarget, MetricValueStatus, ObjectMetricSource, ObjectMetricStatus, PodsMetricSource,
    PodsMetricStatus, ResourceMetricStatus,
};
use k8s_openapi::apimachinery::pkg::api::resource::Quantity as Amount;
use k8s_openapi::apimachinery::pkg::apis::meta::v1::LabelSelector;
use windlass_schema::Quantity;

use super::Planner;
use crate::autoscaling::horizontal_pod_autoscaler::metrics::milli;
use crate::autoscaling::horizontal_pod_autoscaler::replicas::{Calculator, Proposal};

/// Why a metric gives no number.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Failure {
    /// The reason of the Event and the condition.
    pub reason: &'static str,
    /// The message of the Event.
    pub cause: String,
    /// The message of the metric, for the Event about all metrics.
    pub message: String,
}

/// The number of replicas, and the name of the metric.
type Outcome = Result<(i32, String), Failure>;

impl Planner<'_> {
    /// Computes a metric. The status of a metric that fails is empty.
    pub(super) fn metric(&self, calculator: Calculator<'_>, metric: &MetricSpec) -> (MetricStatus, Outcome) {
        let mut status = MetricStatus::default();
        let outcome = self.compute_metric(calculator, metric, &mut status);
        if outcome.is_ok() {
            status.type_.clone_from(&metric.type_);
        }
        (status, outcome)
    }

    fn compute_metric(
        &self,
        calculator: Calculator<'_>,
        metric: &MetricSpec,
        status: &mut MetricStatus,
    ) -> Outcome {
        if let Some(source) = &metric.resource {
            let (current, replicas, name) =
                self.resource(calculator, &source.name, None, &source.target).map_err(|cause| Failure {
                    reason: "FailedGetResourceMetric",
                    message: format!("failed to get {} resource metric value: {cause}", source.name),
                    cause,
                })?;
            status.resource = Some(ResourceMetricStatus { name: source.name.clone(), current });
            return Ok((replicas, name));
        }
        if let Some(source) = &metric.container_resource {
            let container = Some(source.container.as_str());
            let (current, replicas, name) = self
                .resource(calculator, &source.name, container, &source.target)
                .map_err(|cause| Failure {
                    reason: "FailedGetContainerResourceMetric",
                    message: format!("failed to get {} container metric value: {cause}", source.container),
                    cause,
                })?;
            status.container_resource = Some(ContainerResourceMetricStatus {
                container: source.container.clone(),
                name: source.name.clone(),
                current,
            });
            return Ok((replicas, name));
        }
        if let Some(source) = &metric.pods {
            return self.pods(calculator, source, status);
        }
        if let Some(source) = &metric.object {
            return self.object(calculator, source, status);
        }
        if let Some(source) = &metric.external {
            return self.external(calculator, source, status);
        }
        let cause = format!("unknown metric source type {:?}", metric.type_);
        Err(Failure { reason: "InvalidMetricSourceType", message: cause.clone(), cause })
    }

    fn resource(
        &self,
        calculator: Calculator<'_>,
        name: &str,
        container: Option<&str>,
        target: &MetricTarget,
    ) -> Result<(MetricValueStatus, i32, String), String> {
        let values = || {
            let values = self.input.metrics.of_resource(name, container);
            values.map_err(|why| format!("unable to get metrics for resource {name}: {why}"))
        };
        if let Some(average) = amount(target.average_value.as_ref()) {
            let found = values().and_then(|values| calculator.by_average(values, name, average));
            let found = found.map_err(|why| format!("failed to get {name} usage: {why}"))?;
            let current = MetricValueStatus {
                average_value: Some(usage_of(name, found.usage)),
                ..MetricValueStatus::default()
            };
            return Ok((current, found.replicas, format!("{name} resource")));
        }
        let Some(percent) = target.average_utilization else {
            return Err("invalid resource metric source: neither an average utilization target nor an average value (usage) \
                        target was set"
                .to_owned());
        };
        let found = values().and_then(|values| calculator.by_utilization(values, name, container, percent));
        let found = found.map_err(|why| format!("failed to get {name} utilization: {why}"))?;
        let current = MetricValueStatus {
            average_utilization: found.utilization,
            average_value: Some(usage_of(name, found.usage)),
            value: None,
        };
        let kind = if container.is_some() { "container resource" } else { "resource" };
        Ok((current, found.replicas, format!("{name} {kind} utilization (percentage of request)")))
    }

    fn pods(
        &self,
        calculator: Calculator<'_>,
        source: &PodsMetricSource,
        status: &mut MetricStatus,
    ) -> Outcome {
        let name = &source.metric.name;
        let values = self.input.metrics.of_name(name);
        let values = values.map_err(|why| format!("unable to get metric {name}: {why}"));
        let target = amount(source.target.average_value.as_ref()).unwrap_or_default();
        let found = values.and_then(|values| calculator.by_average(values, "", target));
        let found = found.map_err(|cause| Failure {
            reason: "FailedGetPodsMetric",
            message: format!("failed to get pods metric value: {cause}"),
            cause,
        })?;
        status.pods = Some(PodsMetricStatus { metric: source.metric.clone(), current: average(&found) });
        Ok((found.replicas, format!("pods metric {name}")))
    }

    fn object(
        &self,
        calculator: Calculator<'_>,
        source: &ObjectMetricSource,
        status: &mut MetricStatus,
    ) -> Outcome {
        let (name, object) = (&source.metric.name, &source.described_object);
        let failure = |cause: String, context: String| Failure {
            reason: "FailedGetObjectMetric",
            message: format!("failed to get object metric value: {context}{cause}"),
            cause,
        };
        let usage = self.input.metrics.of_object(object, name).map_err(|why| {
            format!(
                "unable to get metric {name}: {why} on {} {}/{}",
                object.kind, self.namespace, object.name
            )
        });
        let is_average = source.target.type_ == "AverageValue";
        let (found, current, shown) = if is_average
            && let Some(target) = amount(source.target.average_value.as_ref())
        {
            let context = format!("failed to get {name} object metric: ");
            let usage = usage.map_err(|why| failure(why, context))?;
            let found = calculator.by_share(usage, target, self.input.size.running);
            (found, average(&found), format!("external metric {}", with_selector(&source.metric)))
        } else if let Some(target) = amount(source.target.value.as_ref()) {
            let found = usage.and_then(|usage| calculator.by_total(usage, target));
            let found = found.map_err(|why| failure(why, String::new()))?;
            (found, value(&found), format!("{} metric {name}", object.kind))
        } else {
            let why =
                "invalid object metric source: neither a value target nor an average value target was set";
            return Err(failure(why.to_owned(), String::new()));
        };
        status.object = Some(ObjectMetricStatus {
            current,
            described_object: object.clone(),
            metric: source.metric.clone(),
        });
        Ok((found.replicas, shown))
    }

    fn external(
        &self,
        calculator: Calculator<'_>,
        source: &ExternalMetricSource,
        status: &mut MetricStatus,
    ) -> Outcome {
        let name = &source.metric.name;
        let failure = |cause: String, context: &str| Failure {
            reason: "FailedGetExternalMetric",
            message: format!("failed to get {name} external metric value: {context}{cause}"),
            cause,
        };
        let usage = self.input.metrics.external(name).map_err(|why| {
            let selector = go_selector(source.metric.selector.as_ref());
            format!("unable to get external metric {}/{name}/{selector}: {why}", self.namespace)
        });
        let (found, current) = if let Some(target) = amount(source.target.average_value.as_ref()) {
            let context = format!("failed to get {name} external metric: ");
            let usage = usage.map_err(|why| failure(why, &context))?;
            let found = calculator.by_share(usage, target, self.input.size.running);
            (found, average(&found))
        } else if let Some(target) = amount(source.target.value.as_ref()) {
            let context = format!("failed to get external metric {name}: ");
            let found = usage.and_then(|usage| calculator.by_total(usage, target));
            let found = found.map_err(|why| failure(why, &context))?;
            (found, value(&found))
        } else {
            let why =
                "invalid external metric source: neither a value target nor an average value target was set";
            return Err(failure(why.to_owned(), ""));
        };
        status.external = Some(ExternalMetricStatus { current, metric: source.metric.clone() });
        Ok((found.replicas, format!("external metric {}", with_selector(&source.metric))))
    }
}

fn amount(quantity: Option<&Amount>) -> Option<i64> {
    quantity.and_then(|quantity| milli(&quantity.0))
}

fn average(found: &Proposal) -> MetricValueStatus {
    MetricValueStatus { average_value: Some(decimal(found.usage)), ..MetricValueStatus::default() }
}

fn value(found: &Proposal) -> MetricValueStatus {
    MetricValueStatus { value: Some(decimal(found.usage)), ..MetricValueStatus::default() }
}

/// Returns thousandths as a quantity.
fn decimal(milli: i64) -> Amount {
    let text = format!("{milli}m");
    Amount(text.parse::<Quantity>().map_or(text, |quantity| quantity.to_string()))
}

/// Returns the usage of a resource, in thousandths, as a quantity: memory has the suffixes `Ki`, `Mi` and so on.
fn usage_of(resource: &str, milli: i64) -> Amount {
    let bytes = milli / 1000;
    if resource != "memory" || milli % 1000 != 0 || bytes < 1024 {
        return decimal(milli);
    }
    let (mut number, mut suffix) = (bytes, "");
    for next in ["Ki", "Mi", "Gi", "Ti", "Pi", "Ei"] {
        if number % 1024 != 0 {
            break;
        }
        (number, suffix) = (number / 1024, next);
    }
    Amount(format!("{number}{suffix}"))
}

fn with_selector(metric: &MetricIdentifier) -> String {
    format!("{}({})", metric.name, go_selector(metric.selector.as_ref()))
}

/// Writes a selector as Go prints the selector.
fn go_selector(selector: Option<&LabelSelector>) -> String {
    let Some(selector) = selector else { return "nil".to_owned() };
    let labels = selector.match_labels.iter().flatten().map(|(key, value)| format!("{key}: {value},"));
    let rules = selector.match_expressions.iter().flatten().map(|rule| {
        let values = rule.values.as_deref().unwrap_or_default().join(" ");
        format!("LabelSelectorRequirement{{Key:{},Operator:{},Values:[{values}],}},", rule.key, rule.operator)
    });
    format!(
        "&LabelSelector{{MatchLabels:map[string]string{{{}}},MatchExpressions:[]LabelSelectorRequirement{{{}}},}}",
        labels.collect::<String>(),
        rules.collect::<String>()
    )
}
