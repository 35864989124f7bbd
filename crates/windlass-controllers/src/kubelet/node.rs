//! The node object with conditions, and the Lease of the node.

use std::collections::BTreeMap;
use std::time::Duration;

use k8s_openapi::api::coordination::v1::{Lease, LeaseSpec};
use k8s_openapi::api::core::v1::{
    DaemonEndpoint, Node, NodeAddress, NodeCondition, NodeDaemonEndpoints, NodeSpec, NodeStatus,
    NodeSystemInfo,
};
use k8s_openapi::apimachinery::pkg::api::resource::Quantity;
use k8s_openapi::apimachinery::pkg::apis::meta::v1::{MicroTime, Time};
use k8s_openapi::jiff::Timestamp;
use kube_client::Client;
use kube_client::api::{Api, Patch};
use kube_core::ObjectMeta;
use serde_json::json;
use windlass_runtime::{Error, Result, RunContext};

use crate::component::{self, KUBELET};
use crate::conditions;

/// The name of the simulated node.
pub(crate) const NODE_NAME: &str = "windlass";
/// The address of the node: private, unlikely to exist on a real network, and outside of the ranges of services
/// and pods.
pub(super) const HOST_IP: &str = "10.250.0.2";
/// The capacity of the node.
pub(super) const HOST_CPU: &str = "256";
pub(super) const HOST_MEMORY: &str = "1Ti";
/// The interval of heartbeats, and the duration of the Lease.
const HEARTBEAT: Duration = Duration::from_secs(10);
const LEASE_SECONDS: i32 = 40;
const LEASES: &str = "kube-node-lease";
/// The conditions are written with every heartbeat of this number.
const STATUS_EVERY: u32 = 30;

/// Registers the node and sends heartbeats until the manager stops.
///
/// `runtime` is the version of the container runtime, as in `process://0.1.0`.
pub(crate) async fn keep(cx: RunContext, runtime: Option<String>) -> Result<()> {
    for beat in 0_u32.. {
        // If the node was deleted, the next heartbeat creates the node again.
        match beat_once(&cx, beat.is_multiple_of(STATUS_EVERY), runtime.as_deref()).await {
            Err(error) if beat == 0 => return Err(error.while_doing("registering the node")),
            Err(error) => tracing::warn!(%error, "the node's heartbeat failed"),
            Ok(()) => {}
        }
        tokio::select! {
            biased;
            () = cx.shutdown().requested() => break,
            () = tokio::time::sleep(HEARTBEAT) => {}
        }
    }
    Ok(())
}

async fn beat_once(cx: &RunContext, with_status: bool, runtime: Option<&str>) -> Result<()> {
    let now = cx.env().now();
    register(cx.client(), with_status, runtime, now).await?;
    renew(cx.client(), MicroTime(now)).await
}

async fn register(client: &Client, with_status: bool, runtime: Option<&str>, now: Timestamp) -> Result<()> {
    let nodes: Api<Node> = Api::all(client.clone());
    let there = nodes.get_opt(NODE_NAME).await.map_err(Error::from)?;
    let (node, fresh) = match there {
        Some(node) => (node, false),
        None => match nodes.create(&component::post(KUBELET), &object()).await.map_err(Error::from) {
            Ok(node) => (node, true),
            Err(error) if error.is_already_exists() => return Ok(()),
            Err(error) => return Err(error),
        },
    };
    if fresh || with_status {
        let status = json!({ "status": status(node.status.unwrap_or_default(), runtime, now) });
        let manager = component::patch(KUBELET);
        nodes.patch_status(NODE_NAME, &manager, &Patch::Merge(status)).await.map_err(Error::from)?;
    }
    Ok(())
}

fn object() -> Node {
    let labels = [
        ("kubernetes.io/hostname", NODE_NAME),
        ("kubernetes.io/os", "linux"),
        ("kubernetes.io/arch", architecture()),
        ("beta.kubernetes.io/os", "linux"),
        ("beta.kubernetes.io/arch", architecture()),
        ("node-role.kubernetes.io/control-plane", ""),
    ];
    let labels: BTreeMap<String, String> =
        labels.iter().map(|(key, value)| ((*key).to_owned(), (*value).to_owned())).collect();
    let spec = NodeSpec {
        pod_cidr: Some("10.244.0.0/16".to_owned()),
        pod_cidrs: Some(vec!["10.244.0.0/16".to_owned()]),
        provider_id: Some(format!("windlass://{NODE_NAME}")),
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

fn status(mut status: NodeStatus, runtime: Option<&str>, now: Timestamp) -> NodeStatus {
    let room = [("cpu", HOST_CPU), ("memory", HOST_MEMORY), ("ephemeral-storage", "1Ti"), ("pods", "60000")];
    let room: BTreeMap<String, Quantity> =
        room.iter().map(|(name, amount)| ((*name).to_owned(), Quantity((*amount).to_owned()))).collect();
    let address =
        |kind: &str, address: &str| NodeAddress { type_: kind.to_owned(), address: address.to_owned() };
    status.addresses = Some(vec![address("InternalIP", HOST_IP), address("Hostname", NODE_NAME)]);
    status.capacity = Some(room.clone());
    status.allocatable = Some(room);
    status.daemon_endpoints =
        Some(NodeDaemonEndpoints { kubelet_endpoint: Some(DaemonEndpoint { port: 10250 }) });
    status.node_info = Some(NodeSystemInfo {
        architecture: architecture().to_owned(),
        operating_system: "linux".to_owned(),
        os_image: "simulated".to_owned(),
        kernel_version: "simulated".to_owned(),
        container_runtime_version: runtime
            .map_or_else(|| format!("simulated://{}", env!("CARGO_PKG_VERSION")), str::to_owned),
        kubelet_version: format!("v1.36.0+windlass-{}", env!("CARGO_PKG_VERSION")),
        ..NodeSystemInfo::default()
    });
    let conditions = status.conditions.get_or_insert_default();
    for (kind, holds, reason, message) in [
        ("MemoryPressure", false, "KubeletHasSufficientMemory", "kubelet has sufficient memory available"),
        ("DiskPressure", false, "KubeletHasNoDiskPressure", "kubelet has no disk pressure"),
        ("PIDPressure", false, "KubeletHasSufficientPID", "kubelet has sufficient PID available"),
        ("Ready", true, "KubeletReady", "kubelet is posting ready status"),
    ] {
        let condition = NodeCondition {
            type_: kind.to_owned(),
            status: if holds { "True" } else { "False" }.to_owned(),
            reason: Some(reason.to_owned()),
            message: Some(message.to_owned()),
            last_heartbeat_time: Some(Time(now)),
            last_transition_time: None,
        };
        conditions::set(conditions, condition, &Time(now));
    }
    status
}

fn architecture() -> &'static str {
    match std::env::consts::ARCH {
        "x86_64" => "amd64",
        "aarch64" => "arm64",
        other => other,
    }
}

async fn renew(client: &Client, now: MicroTime) -> Result<()> {
    let leases: Api<Lease> = Api::namespaced(client.clone(), LEASES);
    let renewal = json!({ "spec": { "renewTime": now } });
    let renewed = leases
        .patch(NODE_NAME, &component::patch(KUBELET), &Patch::Merge(renewal))
        .await
        .map_err(Error::from);
    match renewed {
        Err(error) if error.is_not_found() => {}
        other => return other.map(drop),
    }
    let lease = Lease {
        metadata: ObjectMeta {
            name: Some(NODE_NAME.to_owned()),
            namespace: Some(LEASES.to_owned()),
            ..ObjectMeta::default()
        },
        spec: Some(LeaseSpec {
            holder_identity: Some(NODE_NAME.to_owned()),
            lease_duration_seconds: Some(LEASE_SECONDS),
            renew_time: Some(now),
            ..LeaseSpec::default()
        }),
    };
    leases.create(&component::post(KUBELET), &lease).await.map(drop).map_err(Error::from)
}
