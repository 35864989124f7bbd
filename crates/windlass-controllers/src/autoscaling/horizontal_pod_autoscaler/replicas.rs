//! The number of replicas that a metric asks for.

use std::collections::BTreeMap;
use std::sync::Arc;

use k8s_openapi::api::core::v1::Pod;
use k8s_openapi::jiff::Timestamp;
use kube_core::ResourceExt;

use super::metrics::{Values, milli};
use super::pod_groups::PodGroups;
use crate::pods;

/// The ratios of usage and target that change nothing.
#[derive(Clone, Copy, Debug)]
pub(super) struct Tolerances {
    pub down: f64,
    pub up: f64,
}

impl Tolerances {
    fn contain(self, ratio: f64) -> bool {
        1.0 - self.down <= ratio && ratio <= 1.0 + self.up
    }
}

/// The result of a metric.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Proposal {
    pub replicas: i32,
    /// The usage in thousandths: of a pod on average, or of all.
    pub usage: i64,
    /// The usage in percent of the requests.
    pub utilization: Option<i32>,
}

/// The usage against the target.
#[derive(Clone, Copy, Debug)]
struct Measure {
    ratio: f64,
    usage: i64,
    utilization: Option<i32>,
}

/// Computes replicas for the pods of a target.
#[derive(Clone, Copy, Debug)]
pub(super) struct Calculator<'a> {
    pub pods: &'a [Arc<Pod>],
    /// The replicas in the spec of the target.
    pub current: i32,
    pub tolerances: Tolerances,
    pub now: Timestamp,
}

const NO_PODS: &str = "no pods returned by selector while calculating replica count";

impl Calculator<'_> {
    /// Computes the replicas for a utilization in percent of the requests.
    ///
    /// # Errors
    /// A pod has no request, or no pod has a usage that counts.
    pub(super) fn by_utilization(
        &self,
        values: Values,
        resource: &str,
        container: Option<&str>,
        target: i32,
    ) -> Result<Proposal, String> {
        let requests = requests(self.pods, resource, container);
        let measure = |values: &Values| utilization(values, requests.as_ref().map_err(Clone::clone)?, target);
        let full = |pod: &str| {
            let request = requests.as_ref().ok().and_then(|requests| requests.get(pod)).copied();
            request.unwrap_or(0).saturating_mul(i64::from(target.max(100))) / 100
        };
        self.by_pods(values, resource, measure, full)
    }

    /// Computes the replicas for an average usage of the pods, in thousandths. `resource` is empty for metrics that are no resource.
    ///
    /// # Errors
    /// No pod has a usage that counts.
    pub(super) fn by_average(&self, values: Values, resource: &str, target: i64) -> Result<Proposal, String> {
        let measure = |values: &Values| {
            let usage = total(values) / values.len().max(1) as i64;
            Ok(Measure { ratio: usage as f64 / target as f64, usage, utilization: None })
        };
        self.by_pods(values, resource, measure, |_| target)
    }

    /// Computes the replicas for the usage of all pods together, in thousandths.
    ///
    /// # Errors
    /// The target has no pods.
    pub(super) fn by_total(&self, usage: i64, target: i64) -> Result<Proposal, String> {
        let ratio = usage as f64 / target as f64;
        let replicas = if self.current == 0 {
            rounded_up(ratio)
        } else if self.tolerances.contain(ratio) {
            self.current
        } else if self.pods.is_empty() {
            return Err(format!("unable to calculate ready pods: {NO_PODS}"));
        } else {
            let is_ready = |pod: &&Arc<Pod>| pods::phase(pod) == "Running" && pods::is_ready(pod);
            rounded_up(ratio * self.pods.iter().filter(is_ready).count() as f64)
        };
        Ok(Proposal { replicas, usage, utilization: None })
    }

    /// Computes the replicas for a usage of all pods together that is shared by the pods. `running` is the number of pods in the status
    /// of the target.
    pub(super) fn by_share(&self, usage: i64, target: i64, running: i32) -> Proposal {
        let ratio = usage as f64 / (target as f64 * f64::from(running));
        let replicas =
            if self.tolerances.contain(ratio) { running } else { rounded_up(usage as f64 / target as f64) };
        let usage = (usage as f64 / f64::from(running.max(1))).ceil() as i64;
        Proposal { replicas, usage, utilization: None }
    }

    /// Computes the replicas for metrics of pods. Pods without a metric count as idle when the target would grow, and as `full` when the
    /// target would shrink. Pods that are not ready count as idle when the target would grow, and not at all otherwise.
    fn by_pods(
        &self,
        mut values: Values,
        resource: &str,
        measure: impl Fn(&Values) -> Result<Measure, String>,
        full: impl Fn(&str) -> i64,
    ) -> Result<Proposal, String> {
        if self.pods.is_empty() {
            return Err(NO_PODS.to_owned());
        }
        let groups = PodGroups::of(self.pods, &values, resource, self.now);
        values.retain(|pod, _| !groups.ignored.contains(pod) && !groups.unready.contains(pod));
        if values.is_empty() {
            return Err("did not receive metrics for targeted pods (pods might be unready)".to_owned());
        }
        let Measure { ratio, usage, utilization } = measure(&values)?;
        let proposal = |replicas| Ok(Proposal { replicas, usage, utilization });
        let adds_unready = !groups.unready.is_empty() && ratio > 1.0;
        if !adds_unready && groups.missing.is_empty() {
            let is_close = self.tolerances.contain(ratio);
            return proposal(if is_close { self.current } else { rounded_up(ratio * groups.ready as f64) });
        }
        if ratio < 1.0 {
            values.extend(groups.missing.iter().map(|pod| (pod.clone(), full(pod))));
        } else if ratio > 1.0 {
            values.extend(groups.missing.iter().map(|pod| (pod.clone(), 0)));
        }
        if adds_unready {
            values.extend(groups.unready.iter().map(|pod| (pod.clone(), 0)));
        }
        let again = measure(&values)?.ratio;
        let turns = (ratio < 1.0 && again > 1.0) || (ratio > 1.0 && again < 1.0);
        if self.tolerances.contain(again) || turns {
            return proposal(self.current);
        }
        let replicas = rounded_up(again * values.len() as f64);
        let turns = (again < 1.0 && replicas > self.current) || (again > 1.0 && replicas < self.current);
        proposal(if turns { self.current } else { replicas })
    }
}

fn utilization(values: &Values, requests: &BTreeMap<String, i64>, target: i32) -> Result<Measure, String> {
    let known = || values.iter().filter_map(|(pod, value)| Some((*value, *requests.get(pod)?)));
    let usage = known().fold(0_i64, |sum, (value, _)| sum.saturating_add(value));
    let requested = known().fold(0_i64, |sum, (_, request)| sum.saturating_add(request));
    if requested == 0 {
        return Err("no metrics returned matched known pods".to_owned());
    }
    let percent = i32::try_from(usage.saturating_mul(100) / requested).unwrap_or(i32::MAX);
    Ok(Measure {
        ratio: f64::from(percent) / f64::from(target),
        usage: usage / known().count().max(1) as i64,
        utilization: Some(percent),
    })
}

fn total(values: &Values) -> i64 {
    values.values().fold(0_i64, |sum, value| sum.saturating_add(*value))
}

/// Rounds up. A number that does not fit is the largest number.
fn rounded_up(number: f64) -> i32 {
    number.ceil() as i32
}

/// Returns the requests of the pods, in thousandths.
fn requests(
    pods: &[Arc<Pod>],
    resource: &str,
    container: Option<&str>,
) -> Result<BTreeMap<String, i64>, String> {
    pods.iter().map(|pod| Ok((pod.name_any(), request(pod, resource, container)?))).collect()
}

fn request(pod: &Pod, resource: &str, container: Option<&str>) -> Result<i64, String> {
    let Some(spec) = &pod.spec else { return Ok(0) };
    let of_pod = spec.resources.as_ref().and_then(|resources| resources.requests.as_ref());
    if let Some(of_pod) = of_pod.filter(|requests| container.is_none() && !requests.is_empty()) {
        let amount = of_pod.get(resource).and_then(|quantity| milli(&quantity.0));
        return amount
            .ok_or_else(|| format!("missing pod-level request for {resource} in Pod {}", pod.name_any()));
    }
    let sidecars = spec.init_containers.iter().flatten();
    let sidecars = sidecars.filter(|init| init.restart_policy.as_deref() == Some("Always"));
    let mut sum = 0_i64;
    for own in spec.containers.iter().chain(sidecars) {
        if container.is_some_and(|container| container != own.name) {
            continue;
        }
        let requests = own.resources.as_ref().and_then(|resources| resources.requests.as_ref());
        let amount = requests.and_then(|requests| requests.get(resource)).and_then(|amount| milli(&amount.0));
        sum = sum.saturating_add(amount.ok_or_else(|| {
            format!("missing request for {resource} in container {} of Pod {}", own.name, pod.name_any())
        })?);
        if container.is_some() {
            return Ok(sum);
        }
    }
    match container {
        Some(container) => Err(format!("container {container} not found in Pod {}", pod.name_any())),
        None => Ok(sum),
    }
}

#[cfg(test)]
mod tests;
