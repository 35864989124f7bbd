//! The usage of services.

use serde_json::Value;
use windlass_schema::Quantity;

use super::resource_list::ResourceList;

const RESOURCES: [&str; 4] = ["count/services", "services", "services.nodeports", "services.loadbalancers"];

/// Returns whether services use a resource of a quota.
pub(crate) fn use_resource(resource: &str) -> bool {
    RESOURCES.contains(&resource)
}

/// Returns the usage of a service. Node ports count before the allocation.
pub(crate) fn usage(service: &Value) -> ResourceList {
    let spec = &service["spec"];
    let ports = || spec["ports"].as_array().into_iter().flatten();
    let with_node_port = || ports().filter(|port| port["nodePort"].as_i64().is_some_and(|port| port != 0));
    let (node_ports, balancers) = match spec["type"].as_str() {
        Some("NodePort") => (ports().count(), 0),
        Some("LoadBalancer") if spec["allocateLoadBalancerNodePorts"] == false => {
            (with_node_port().count(), 1)
        }
        Some("LoadBalancer") => (ports().count(), 1),
        _ => (0, 0),
    };
    let counts = [1, 1, node_ports as i64, balancers];
    RESOURCES.iter().zip(counts).map(|(name, count)| ((*name).to_owned(), Quantity::whole(count))).collect()
}
