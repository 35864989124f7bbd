//! Metrics in annotations.
//!
//! | annotation | of | meaning |
//! |---|---|---|
//! | `metrics.windlass.dev/cpu: 250m` | a pod | the usage of the pod: `cpu`, `memory`, or the name of a metric of type `Pods` |
//! | `metrics.windlass.dev/cpu.web: 100m` | a pod | the usage of the container `web` |
//! | the same | the scaled workload | the usage of each pod that has no annotation of its own |
//! | `metrics.windlass.dev/requests: "300"` | any other object | a metric of type `Object` |
//! | `metrics.windlass.dev/queue: "30"` | the autoscaler | a metric of type `External` |
//!
//! The values are quantities. The selectors of metrics have no effect.

use std::collections::BTreeMap;
use std::sync::Arc;

use k8s_openapi::api::autoscaling::v2::CrossVersionObjectReference;
use k8s_openapi::api::core::v1::Pod;
use kube_core::ResourceExt;
use windlass_schema::Quantity;

/// The prefix of the annotations.
pub(super) const PREFIX: &str = "metrics.windlass.dev/";

/// The errors of a cluster without metrics.
const RESOURCE_API: &str = "unable to fetch metrics from resource metrics API";
const CUSTOM_API: &str = "unable to fetch metrics from custom metrics API";
const EXTERNAL_API: &str = "unable to fetch metrics from external metrics API";
const UNKNOWN: &str = "the server could not find the requested resource";
const NO_CUSTOM_API: &str = "no custom metrics API (custom.metrics.k8s.io) registered";

/// The annotations of an object.
pub(super) type Annotations = BTreeMap<String, String>;

/// Values in thousandths, by the name of the pod.
pub(super) type Values = BTreeMap<String, i64>;

/// The metrics of an autoscaler.
#[derive(Debug, Default)]
pub(super) struct Metrics {
    pub pods: Vec<Arc<Pod>>,
    /// The annotations of the scaled workload.
    pub target: Annotations,
    /// The annotations of the autoscaler.
    pub autoscaler: Annotations,
    /// The annotations of the objects that metrics describe, by kind and name; or why an object cannot be read.
    pub objects: BTreeMap<(String, String), Result<Annotations, String>>,
}

impl Metrics {
    /// Returns the usage of a resource by the pods, or by a container of each pod.
    ///
    /// # Errors
    /// No pod has a value.
    pub(super) fn of_resource(&self, name: &str, container: Option<&str>) -> Result<Values, String> {
        let values = self.of_pods(|annotations, pod| match container {
            Some(container) => value(annotations, &format!("{name}.{container}")),
            None => value(annotations, name).or_else(|| sum(annotations, name, pod)),
        });
        if values.is_empty() {
            return Err(format!("{RESOURCE_API}: {UNKNOWN} (get pods.metrics.k8s.io)"));
        }
        Ok(values)
    }

    /// Returns the values of a metric of type `Pods`.
    ///
    /// # Errors
    /// No pod has a value.
    pub(super) fn of_name(&self, name: &str) -> Result<Values, String> {
        let values = self.of_pods(|annotations, _| value(annotations, name));
        if values.is_empty() {
            return Err(format!("{CUSTOM_API}: {NO_CUSTOM_API}"));
        }
        Ok(values)
    }

    /// Returns the value of a metric that describes an object.
    ///
    /// # Errors
    /// The object does not exist or has no value.
    pub(super) fn of_object(&self, object: &CrossVersionObjectReference, name: &str) -> Result<i64, String> {
        let key = (object.kind.clone(), object.name.clone());
        let annotations = match self.objects.get(&key) {
            Some(Ok(annotations)) => annotations,
            Some(Err(why)) => return Err(format!("{CUSTOM_API}: {why}")),
            None => return Err(format!("{CUSTOM_API}: {} {:?} was not read", object.kind, object.name)),
        };
        value(annotations, name).ok_or_else(|| format!("{CUSTOM_API}: {NO_CUSTOM_API}"))
    }

    /// Returns the value of an external metric.
    ///
    /// # Errors
    /// The autoscaler has no value.
    pub(super) fn external(&self, name: &str) -> Result<i64, String> {
        value(&self.autoscaler, name)
            .ok_or_else(|| format!("{EXTERNAL_API}: {UNKNOWN} (get {name}.external.metrics.k8s.io)"))
    }

    fn of_pods(&self, find: impl Fn(&Annotations, &Pod) -> Option<i64>) -> Values {
        let value = |pod: &Pod| find(pod.annotations(), pod).or_else(|| find(&self.target, pod));
        self.pods.iter().filter_map(|pod| Some((pod.name_any(), value(pod)?))).collect()
    }
}

/// Returns the sum over all containers of a pod, if each container has a value.
fn sum(annotations: &Annotations, name: &str, pod: &Pod) -> Option<i64> {
    let containers = &pod.spec.as_ref()?.containers;
    containers.iter().try_fold(0_i64, |sum, container| {
        Some(sum.saturating_add(value(annotations, &format!("{name}.{}", container.name))?))
    })
}

/// Returns the value of an annotation in thousandths. An annotation that is no quantity counts as absent.
fn value(annotations: &Annotations, name: &str) -> Option<i64> {
    milli(annotations.get(&format!("{PREFIX}{name}"))?)
}

/// Parses a quantity, in thousandths.
pub(super) fn milli(text: &str) -> Option<i64> {
    let quantity: Quantity = text.trim().parse().ok()?;
    i64::try_from(quantity.to_milli()).ok()
}
