//! The objects of simulated nodes.

use std::collections::BTreeMap;

use k8s_openapi::api::core::v1::{
    DaemonEndpoint, Node, NodeAddress, NodeCondition, NodeDaemonEndpoints, NodeSpec, NodeStatus,
    NodeSystemInfo,
};
use k8s_openapi::apimachinery::pkg::api::resource::Quantity;
use k8s_openapi::apimachinery::pkg::apis::meta::v1::Time;
use k8s_openapi::jiff::Timestamp;
use kube_core::{ObjectMeta, ResourceExt};

use super::script::PREFIX;
use crate::conditions;

/// The name of the first node. Programs of pods run on the first node only.
pub(crate) const NODE_NAME: &str = "windlass";
/// The address of the first node: private, unlikely to exist on a real network, and outside of the ranges of services
/// and pods.
pub(super) const HOST_IP: &str = "10.250.0.2";
/// The capacity of the first node.
pub(super) const HOST_CPU: &str = "256";
pub(super) const HOST_MEMORY: &str = "1Ti";
/// The capacity of the first node, and of all other simulated nodes.
const FIRST_CAPACITY: [(&str, &str); 4] =
    [("cpu", HOST_CPU), ("memory", HOST_MEMORY), ("ephemeral-storage", "1Ti"), ("pods", "60000")];
const CAPACITY: [(&str, &str); 4] =
    [("cpu", "32"), ("memory", "128Gi"), ("ephemeral-storage", "1Ti"), ("pods", "110")];

/// The state of a simulated node, from the annotation `kubelet.windlass.dev/node-state`.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) enum NodeState {
    /// The node is ready.
    #[default]
    Ready,
    /// `not-ready`: the kubelet runs and reports that the node is not ready.
    NotReady,
    /// `stopped`: the kubelet sends no heartbeats, and neither starts nor ends pods.
    Stopped,
}

impl NodeState {
    pub(super) fn of(node: &Node) -> Self {
        match node.annotations().get(&format!("{PREFIX}node-state")).map(String::as_str) {
            Some("not-ready") => Self::NotReady,
            Some("stopped") => Self::Stopped,
            _ => Self::Ready,
        }
    }
}

/// Returns whether a node is simulated: the first node, or a node with the annotation `kubelet.windlass.dev/run: simulate`.
pub(super) fn is_simulated(node: &Node) -> bool {
    let annotation = node.annotations().get(&format!("{PREFIX}run"));
    node.metadata.name.as_deref() == Some(NODE_NAME) || annotation.is_some_and(|run| run == "simulate")
}

/// Completes a node that is to be created and simulated.
pub(super) fn simulated(mut node: Node) -> Node {
    let name = node.name_any();
    node.annotations_mut().entry(format!("{PREFIX}run")).or_insert_with(|| "simulate".to_owned());
    for (key, value) in labels(&name) {
        node.labels_mut().entry(key).or_insert(value);
    }
    let spec = node.spec.get_or_insert_default();
    spec.provider_id.get_or_insert_with(|| format!("windlass://{name}"));
    node
}

/// Returns the first node, as it is created.
pub(super) fn first() -> Node {
    let mut labels = BTreeMap::new();
    labels.insert("node-role.kubernetes.io/control-plane".to_owned(), String::new());
    let spec = NodeSpec {
        pod_cidr: Some("10.244.0.0/16".to_owned()),
        pod_cidrs: Some(vec!["10.244.0.0/16".to_owned()]),
        ..NodeSpec::default()
    };
    Node {
        metadata: ObjectMeta {
            name: Some(NODE_NAME.to_owned()),
            labels: Some(labels),
            ..ObjectMeta::default()
        },
        spec: Some(spec),
        status: None,
    }
}

/// Returns the labels that each kubelet sets.
pub(super) fn labels(name: &str) -> BTreeMap<String, String> {
    let labels = [
        ("kubernetes.io/hostname", name),
        ("kubernetes.io/os", "linux"),
        ("kubernetes.io/arch", architecture()),
        ("beta.kubernetes.io/os", "linux"),
        ("beta.kubernetes.io/arch", architecture()),
    ];
    labels.iter().map(|(key, value)| ((*key).to_owned(), (*value).to_owned())).collect()
}

/// Returns the status that the kubelet of a node reports. A capacity that the node has already is kept.
pub(super) fn status(node: &Node, address: &str, runtime: Option<&str>, now: Timestamp) -> NodeStatus {
    let name = node.name_any();
    let is_first = name == NODE_NAME;
    let mut status = node.status.clone().unwrap_or_default();
    let default = if is_first { FIRST_CAPACITY } else { CAPACITY };
    let capacity = status.capacity.get_or_insert_default();
    for (resource, amount) in default {
        capacity.entry(resource.to_owned()).or_insert_with(|| Quantity(amount.to_owned()));
    }
    let allocatable = status.allocatable.get_or_insert_default();
    for (resource, amount) in capacity {
        allocatable.entry(resource.clone()).or_insert_with(|| amount.clone());
    }
    let shown =
        |kind: &str, address: &str| NodeAddress { type_: kind.to_owned(), address: address.to_owned() };
    status.addresses = Some(vec![shown("InternalIP", address), shown("Hostname", &name)]);
    status.daemon_endpoints =
        Some(NodeDaemonEndpoints { kubelet_endpoint: Some(DaemonEndpoint { port: 10250 }) });
    status.node_info = Some(system_info(runtime.filter(|_| is_first)));
    let conditions = status.conditions.get_or_insert_default();
    for condition in health(NodeState::of(node)) {
        let condition = NodeCondition { last_heartbeat_time: Some(Time(now)), ..condition };
        conditions::set(conditions, condition, &Time(now));
    }
    status
}

fn system_info(runtime: Option<&str>) -> NodeSystemInfo {
    NodeSystemInfo {
        architecture: architecture().to_owned(),
        operating_system: "linux".to_owned(),
        os_image: "simulated".to_owned(),
        kernel_version: "simulated".to_owned(),
        container_runtime_version: runtime
            .map_or_else(|| format!("simulated://{}", env!("CARGO_PKG_VERSION")), str::to_owned),
        kubelet_version: format!("v1.37.2+windlass-{}", env!("CARGO_PKG_VERSION")),
        ..NodeSystemInfo::default()
    }
}

/// Returns the conditions of a node.
fn health(state: NodeState) -> [NodeCondition; 4] {
    let ready = match state {
        NodeState::Ready => ("Ready", true, "KubeletReady", "kubelet is posting ready status"),
        NodeState::NotReady | NodeState::Stopped => {
            ("Ready", false, "KubeletNotReady", "the annotation of the node says that the node is not ready")
        }
    };
    [
        ("MemoryPressure", false, "KubeletHasSufficientMemory", "kubelet has sufficient memory available"),
        ("DiskPressure", false, "KubeletHasNoDiskPressure", "kubelet has no disk pressure"),
        ("PIDPressure", false, "KubeletHasSufficientPID", "kubelet has sufficient PID available"),
        ready,
    ]
    .map(|(kind, holds, reason, message)| NodeCondition {
        type_: kind.to_owned(),
        status: if holds { "True" } else { "False" }.to_owned(),
        reason: Some(reason.to_owned()),
        message: Some(message.to_owned()),
        ..NodeCondition::default()
    })
}

fn architecture() -> &'static str {
    match std::env::consts::ARCH {
        "x86_64" => "amd64",
        "aarch64" => "arm64",
        other => other,
    }
}
