//! The resources and ports that a pod requests of a node.

use std::collections::BTreeMap;

use k8s_openapi::api::core::v1::{Container, Pod, PodSpec, ResourceRequirements};
use k8s_openapi::apimachinery::pkg::api::resource::Quantity;

use super::quantity::Milli;
use crate::host_ports::{HostPort, host_ports};

/// Amounts by resource name (`cpu`, `memory`, `pods`, …).
pub(super) type ResourceList = BTreeMap<String, Milli>;

/// The name of the resource that counts pods.
pub(super) const PODS: &str = "pods";

/// The CPU that the scores assume for a pod without a request: 100m.
const ASSUMED_CPU: Milli = Milli(100);
/// The memory that the scores assume for a pod without a request: 200 MiB.
const ASSUMED_MEMORY: Milli = Milli(200 * 1024 * 1024 * 1000);

/// The resources and ports that one pod requests, or that all pods of a node request together.
#[derive(Clone, Debug, Default)]
pub(super) struct Requests {
    pub amounts: ResourceList,
    pub ports: Vec<HostPort>,
    /// CPU and memory for the scores: pods without requests count with a default.
    pub assumed: [Milli; 2],
}

impl Requests {
    /// Returns the requests of a pod.
    pub(super) fn of(pod: &Pod) -> Self {
        let mut amounts = pod.spec.as_ref().map(amounts).unwrap_or_default();
        let assumed =
            |name: &str, default| amounts.get(name).copied().filter(|amount| amount.0 > 0).unwrap_or(default);
        let assumed = [assumed("cpu", ASSUMED_CPU), assumed("memory", ASSUMED_MEMORY)];
        amounts.insert(PODS.to_owned(), Milli(1000));
        Self { amounts, ports: host_ports(pod), assumed }
    }

    /// Adds the requests of another pod.
    pub(super) fn add(&mut self, other: &Self) {
        add(&mut self.amounts, &other.amounts);
        self.ports.extend(other.ports.iter().cloned());
        for (total, amount) in self.assumed.iter_mut().zip(other.assumed) {
            total.0 += amount.0;
        }
    }

    /// Subtracts requests that were added before.
    pub(super) fn subtract(&mut self, other: &Self) {
        for (name, amount) in &other.amounts {
            if let Some(total) = self.amounts.get_mut(name) {
                total.0 -= amount.0;
            }
        }
        for port in &other.ports {
            if let Some(at) = self.ports.iter().position(|taken| taken == port) {
                self.ports.swap_remove(at);
            }
        }
        for (total, amount) in self.assumed.iter_mut().zip(other.assumed) {
            total.0 -= amount.0;
        }
    }

    /// Returns the amount of a resource; zero if nothing is requested.
    pub(super) fn amount(&self, name: &str) -> Milli {
        self.amounts.get(name).copied().unwrap_or_default()
    }
}

/// Returns the amounts that the scheduler reserves for a pod: the larger of the sum of the containers and of
/// the largest sum during initialization, or the request of the whole pod; and the overhead.
fn amounts(spec: &PodSpec) -> ResourceList {
    let mut running = ResourceList::new();
    for container in &spec.containers {
        add(&mut running, &requested(container.resources.as_ref()));
    }
    let mut sidecars = ResourceList::new();
    let mut starting = ResourceList::new();
    for container in spec.init_containers.iter().flatten() {
        let mut during = requested(container.resources.as_ref());
        add(&mut during, &sidecars);
        raise(&mut starting, &during);
        if is_sidecar(container) {
            let own = requested(container.resources.as_ref());
            add(&mut sidecars, &own);
            add(&mut running, &own);
        }
    }
    raise(&mut running, &starting);
    running.extend(requested(spec.resources.as_ref()));
    add(&mut running, &resource_list(spec.overhead.as_ref()));
    running
}

fn is_sidecar(container: &Container) -> bool {
    container.restart_policy.as_deref() == Some("Always")
}

fn requested(resources: Option<&ResourceRequirements>) -> ResourceList {
    resource_list(resources.and_then(|resources| resources.requests.as_ref()))
}

fn add(total: &mut ResourceList, more: &ResourceList) {
    for (name, amount) in more {
        match total.get_mut(name) {
            Some(total) => total.0 += amount.0,
            None => drop(total.insert(name.clone(), *amount)),
        }
    }
}

/// Raises each amount of `total` to at least the amount of `least`.
fn raise(total: &mut ResourceList, least: &ResourceList) {
    for (name, amount) in least {
        let entry = total.entry(name.clone()).or_default();
        *entry = (*entry).max(*amount);
    }
}

/// Parses quantities. A malformed quantity is left out.
pub(super) fn resource_list(quantities: Option<&BTreeMap<String, Quantity>>) -> ResourceList {
    let parse =
        |(name, quantity): (&String, &Quantity)| Some((name.clone(), quantity.0.parse::<Milli>().ok()?));
    quantities.into_iter().flatten().filter_map(parse).collect()
}

#[cfg(test)]
mod tests {
    use serde_json::{Value, json};

    use super::*;

    fn requests(spec: Value) -> Requests {
        Requests::of(&serde_json::from_value(json!({"metadata": {"name": "p"}, "spec": spec})).unwrap())
    }

    fn cpu(amount: &str) -> Value {
        json!({"requests": {"cpu": amount}})
    }

    #[test]
    fn the_largest_init_container_counts_once() {
        let wanted = requests(json!({
            "initContainers": [{"name": "i", "resources": {"requests": {"cpu": "1500m", "memory": "1Gi"}}}],
            "containers": [{"name": "a", "resources": cpu("400m")}, {"name": "b", "resources": cpu("400m")}],
        }));
        assert_eq!(wanted.amount("cpu"), Milli(1500));
        assert_eq!(wanted.amount("memory"), "1Gi".parse().unwrap());
        assert_eq!(wanted.amount(PODS), Milli(1000));
    }

    #[test]
    fn sidecars_count_with_the_containers_and_with_later_init_containers() {
        let wanted = requests(json!({
            "initContainers": [
                {"name": "s", "restartPolicy": "Always", "resources": cpu("300m")},
                {"name": "i", "resources": cpu("900m")},
            ],
            "containers": [{"name": "a", "resources": cpu("400m")}],
            "overhead": {"cpu": "10m"},
        }));
        assert_eq!(wanted.amount("cpu"), Milli(1210));
    }

    #[test]
    fn the_request_of_the_whole_pod_replaces_the_sum() {
        let wanted = requests(json!({
            "containers": [{"name": "a", "resources": cpu("400m")}], "resources": cpu("2"),
        }));
        assert_eq!(wanted.amount("cpu"), Milli(2000));
    }

    #[test]
    fn requests_are_subtracted_as_they_were_added() {
        let pod = requests(json!({"containers": [{
            "name": "a", "resources": cpu("400m"), "ports": [{"containerPort": 80, "hostPort": 80}],
        }]}));
        let mut node = Requests::default();
        node.add(&pod);
        node.add(&pod);
        assert_eq!(node.amount("cpu"), Milli(800));
        node.subtract(&pod);
        assert_eq!((node.amount("cpu"), node.ports.len(), node.assumed[0]), (Milli(400), 1, Milli(400)));
    }
}
