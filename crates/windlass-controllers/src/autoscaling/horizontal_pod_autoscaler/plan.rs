//! The next size of an autoscaler's target, and the next status of the autoscaler.

use k8s_openapi::api::autoscaling::v2::{
    HPAScalingRules, HorizontalPodAutoscaler, HorizontalPodAutoscalerCondition, HorizontalPodAutoscalerSpec,
    HorizontalPodAutoscalerStatus, MetricStatus,
};
use k8s_openapi::apimachinery::pkg::apis::meta::v1::Time;
use k8s_openapi::jiff::Timestamp;
use kube_core::ResourceExt;
use windlass_schema::Quantity;

use super::history::History;
use super::limits::{Bounds, limit, stabilize};
use super::metrics::Metrics;
use super::replicas::{Calculator, Tolerances};
use crate::conditions;

mod metric;

/// The condition of an autoscaler that scaled the target to zero. Another target without replicas is left alone.
const SCALED_TO_ZERO: &str = "ScaledToZero";
const BELOW_MINIMUM: &str = "Current number of replicas below Spec.MinReplicas";

/// The ratio of usage and target, beside 1, that changes nothing.
const TOLERANCE: f64 = 0.1;

/// The size of a target.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct Size {
    /// The replicas in the spec.
    pub wanted: i32,
    /// The replicas in the status.
    pub running: i32,
    /// The label selector of the pods.
    pub selector: String,
}

/// The input of a plan.
#[derive(Clone, Copy)]
pub(super) struct Input<'a> {
    pub autoscaler: &'a HorizontalPodAutoscaler,
    pub size: &'a Size,
    /// Why the selector cannot be used: the reason of an Event, and the message.
    pub selector_error: Option<&'a (&'static str, String)>,
    pub metrics: &'a Metrics,
    /// Whether the controller has the features of Kubernetes 1.37: `observedGeneration`, and the return from zero replicas of a target
    /// that the autoscaler, by the condition `ScaledToZero`, scaled to zero.
    pub is_1_37: bool,
    pub now: Timestamp,
}

/// A change of the target's size.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Rescale {
    pub from: i32,
    pub to: i32,
    pub reason: String,
}

/// The change to make, and the status. The status does not contain the outcome of the change.
#[derive(Debug)]
pub(super) struct Plan {
    pub status: HorizontalPodAutoscalerStatus,
    /// Reasons and messages of warnings.
    pub warnings: Vec<(&'static str, String)>,
    pub rescale: Option<Rescale>,
}

impl Plan {
    /// Returns the plan for a target whose size cannot be read.
    pub(super) fn without_target(autoscaler: &HorizontalPodAutoscaler, why: &str, now: Timestamp) -> Self {
        let mut status = autoscaler.status.clone().unwrap_or_default();
        let message = format!("the HPA controller was unable to get the target's current scale: {why}");
        set(&mut status, "AbleToScale", false, "FailedGetScale", message, now);
        Self { status, warnings: vec![("FailedGetScale", why.to_owned())], rescale: None }
    }

    /// Notes that the target has the new size.
    pub(super) fn rescaled(&mut self, to: i32, now: Timestamp) {
        let message = format!("the HPA controller was able to update the target scale to {to}");
        set(&mut self.status, "AbleToScale", true, "SucceededRescale", message, now);
        self.status.desired_replicas = to;
        self.status.last_scale_time = Some(Time(now));
    }

    /// Notes whether the autoscaler has scaled the target to zero.
    pub(super) fn note_zero(
        &mut self,
        spec: &HorizontalPodAutoscalerSpec,
        rescale: &Rescale,
        now: Timestamp,
    ) {
        let is_zero =
            rescale.from > 0 && rescale.to == 0 && spec.min_replicas == Some(0) && is_independent(spec);
        let (reason, verb) =
            if is_zero { ("ScaledToZero", "scaled") } else { ("NotScaledToZero", "did not scale") };
        let message = format!("the HPA controller {verb} the workload to zero");
        set(&mut self.status, SCALED_TO_ZERO, is_zero, reason, message, now);
    }

    /// Notes that the size of the target could not be changed. `desired` are the desired replicas before the plan.
    pub(super) fn not_rescaled(&mut self, desired: i32, why: &str, now: Timestamp) {
        let message = format!("the HPA controller was unable to update the target scale: {why}");
        set(&mut self.status, "AbleToScale", false, "FailedUpdateScale", message, now);
        self.status.desired_replicas = desired;
    }
}

/// Plans the next step.
pub(super) fn plan(input: Input<'_>, history: &mut History) -> Plan {
    let Input { autoscaler, size, now, .. } = input;
    let mut planner = Planner {
        input,
        namespace: autoscaler.namespace().unwrap_or_default(),
        status: autoscaler.status.clone().unwrap_or_default(),
        warnings: Vec::new(),
    };
    let got = "the HPA controller was able to get the target's current scale";
    planner.set("AbleToScale", true, "SucceededGetScale", got.to_owned());
    history.begin(size.wanted, now);
    let spec = &autoscaler.spec;
    let least = spec.min_replicas.unwrap_or(1);
    let rescale = |to: i32, reason: &str| Some(Rescale { from: size.wanted, to, reason: reason.to_owned() });
    let was_scaled_to_zero = conditions::is_true(planner.status.conditions.as_ref(), SCALED_TO_ZERO);
    let returns = input.is_1_37 && was_scaled_to_zero && (least != 0 || is_independent(spec));
    if size.wanted == 0 && !returns {
        let message = "scaling is disabled since the replica count of the target is zero";
        planner.set("ScalingActive", false, "ScalingDisabled", message.to_owned());
        planner.finish(None, None)
    } else if size.wanted > spec.max_replicas {
        planner.finish(None, rescale(spec.max_replicas, "Current number of replicas above Spec.MaxReplicas"))
    } else if size.wanted < least && size.wanted != 0 {
        planner.finish(None, rescale(least, BELOW_MINIMUM))
    } else {
        planner.by_metrics(spec, least, history)
    }
}

struct Planner<'a> {
    input: Input<'a>,
    namespace: String,
    status: HorizontalPodAutoscalerStatus,
    warnings: Vec<(&'static str, String)>,
}

impl Planner<'_> {
    fn set(&mut self, kind: &str, holds: bool, reason: &str, message: String) {
        set(&mut self.status, kind, holds, reason, message, self.input.now);
    }

    fn finish(mut self, metrics: Option<Vec<MetricStatus>>, rescale: Option<Rescale>) -> Plan {
        let current = self.input.size.wanted;
        if self.input.is_1_37 {
            self.status.observed_generation = self.input.autoscaler.metadata.generation;
        }
        self.status.current_replicas = Some(current);
        self.status.desired_replicas = rescale.as_ref().map_or(current, |rescale| rescale.to);
        self.status.current_metrics = metrics;
        Plan { status: self.status, warnings: self.warnings, rescale }
    }

    fn by_metrics(mut self, spec: &HorizontalPodAutoscalerSpec, least: i32, history: &mut History) -> Plan {
        let Input { size, now, .. } = self.input;
        let mut statuses = Vec::new();
        let (desired, metric) = match self.compute(spec, &mut statuses) {
            Ok(computed) => computed,
            Err(why) => {
                self.warnings.push(("FailedComputeMetricsReplicas", why));
                let desired = self.status.desired_replicas;
                let mut plan = self.finish(Some(statuses), None);
                plan.status.desired_replicas = desired;
                return plan;
            }
        };
        let reason = match desired.cmp(&size.wanted) {
            std::cmp::Ordering::Greater => format!("{metric} above target"),
            std::cmp::Ordering::Less => "All metrics below target".to_owned(),
            std::cmp::Ordering::Equal => String::new(),
        };
        let behavior = spec.behavior.as_ref();
        let stable = stabilize(behavior, size.wanted, desired, history, now);
        if stable.replicas == desired {
            self.set(
                "AbleToScale",
                true,
                "ReadyForNewScale",
                "recommended size matches current size".to_owned(),
            );
        } else {
            self.set("AbleToScale", true, stable.reason, stable.message.to_owned());
        }
        let bounds = Bounds { current: size.wanted, least, most: spec.max_replicas };
        let limited = limit(behavior, bounds, stable.replicas, history, now);
        let is_limited = limited.replicas != stable.replicas;
        self.set("ScalingLimited", is_limited, limited.reason, limited.message.to_owned());
        let (mut to, mut reason) = (limited.replicas, reason);
        if size.wanted == 0 && to < least {
            to = least;
            if reason.is_empty() {
                BELOW_MINIMUM.clone_into(&mut reason);
            }
        }
        let rescale = (to != size.wanted).then_some(Rescale { from: size.wanted, to, reason });
        self.finish(Some(statuses), rescale)
    }

    /// Returns the largest number of replicas that a metric asks for, and the name of the metric.
    fn compute(
        &mut self,
        spec: &HorizontalPodAutoscalerSpec,
        statuses: &mut Vec<MetricStatus>,
    ) -> Result<(i32, String), String> {
        if let Some((reason, message)) = self.input.selector_error {
            self.warnings.push((*reason, message.clone()));
            let (reason, shown) = if *reason == "SelectorRequired" {
                ("InvalidSelector", "the HPA target's scale is missing a selector".to_owned())
            } else {
                (*reason, message.clone())
            };
            self.set("ScalingActive", false, reason, shown);
            return Err(message.clone());
        }
        let calculator = Calculator {
            pods: &self.input.metrics.pods,
            current: self.input.size.wanted,
            tolerances: tolerances(spec),
            now: self.input.now,
        };
        let metrics = spec.metrics.as_deref().unwrap_or_default();
        let mut best: Option<(i32, String)> = None;
        let mut failures = Vec::new();
        for metric in metrics {
            let (status, outcome) = self.metric(calculator, metric);
            statuses.push(status);
            match outcome {
                Ok((replicas, name)) => {
                    if best.as_ref().is_none_or(|(most, _)| *most == 0 || replicas > *most) {
                        best = Some((replicas, name));
                    }
                }
                Err(failure) => {
                    self.warnings.push((failure.reason, failure.cause.clone()));
                    failures.push(failure);
                }
            }
        }
        if let Some(first) = failures.first() {
            let shrinks = best.as_ref().is_some_and(|(replicas, _)| *replicas < self.input.size.wanted);
            if best.is_none() || shrinks {
                let message = format!("the HPA was unable to compute the replica count: {}", first.cause);
                self.set("ScalingActive", false, first.reason, message);
                return Err(format!(
                    "invalid metrics ({} invalid out of {}), first error is: {}",
                    failures.len(),
                    metrics.len(),
                    first.message
                ));
            }
        }
        let (replicas, name) = best.unwrap_or_default();
        let message = format!("the HPA was able to successfully calculate a replica count from {name}");
        self.set("ScalingActive", true, "ValidMetricFound", message);
        Ok((replicas, name))
    }
}

/// Returns whether a metric does not depend on the pods of the target: a target without pods can return.
fn is_independent(spec: &HorizontalPodAutoscalerSpec) -> bool {
    let mut metrics = spec.metrics.iter().flatten();
    metrics.any(|metric| matches!(metric.type_.as_str(), "Object" | "External"))
}

fn tolerances(spec: &HorizontalPodAutoscalerSpec) -> Tolerances {
    let of = |rules: Option<&HPAScalingRules>| {
        let tolerance = rules.and_then(|rules| rules.tolerance.as_ref());
        let parsed = tolerance.and_then(|quantity| quantity.0.parse::<Quantity>().ok());
        parsed.map_or(TOLERANCE, |quantity| quantity.to_f64())
    };
    let behavior = spec.behavior.as_ref();
    Tolerances {
        down: of(behavior.and_then(|behavior| behavior.scale_down.as_ref())),
        up: of(behavior.and_then(|behavior| behavior.scale_up.as_ref())),
    }
}

fn set(
    status: &mut HorizontalPodAutoscalerStatus,
    kind: &str,
    holds: bool,
    reason: &str,
    message: String,
    now: Timestamp,
) {
    let condition = HorizontalPodAutoscalerCondition {
        type_: kind.to_owned(),
        status: if holds { "True" } else { "False" }.to_owned(),
        reason: Some(reason.to_owned()),
        message: Some(message),
        last_transition_time: None,
    };
    conditions::set(status.conditions.get_or_insert_default(), condition, &Time(now));
}

#[cfg(test)]
mod tests;
