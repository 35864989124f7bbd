//! `config/network-policy`: who may connect to the operator.

use k8s_openapi::{
    api::networking::v1::{
        NetworkPolicy, NetworkPolicyIngressRule, NetworkPolicyPeer, NetworkPolicyPort, NetworkPolicySpec,
    },
    apimachinery::pkg::{apis::meta::v1::LabelSelector, util::intstr::IntOrString},
};
use serde_json::Value;

use super::{
    operator::text_map,
    options::{Component, Names},
    rbac::metadata,
    tree::{Folder, object},
};
use crate::Inventory;

/// Returns `config/network-policy`: namespaces with the label `metrics: enabled` reach the metrics. Every
/// client reaches the webhooks, because the API server is in no namespace. The ports are the ports of the
/// pod.
pub(super) fn folder(inventory: &Inventory, names: &Names) -> Folder {
    let mut folder = Folder::component(Component::NetworkPolicy);
    if let Some(metrics) = &inventory.metrics {
        let readers = NetworkPolicyPeer {
            namespace_selector: Some(LabelSelector {
                match_labels: Some(text_map([("metrics", "enabled")])),
                ..LabelSelector::default()
            }),
            ..NetworkPolicyPeer::default()
        };
        let policy = policy(names, "allow-metrics-traffic", metrics.port, Some(vec![readers]));
        folder = folder.file("allow-metrics-traffic.yaml", vec![policy]);
    }
    if let Some(webhooks) = &inventory.webhooks {
        let policy = policy(names, "allow-webhook-traffic", webhooks.port, None);
        folder = folder.file("allow-webhook-traffic.yaml", vec![policy]);
    }
    folder
}

fn policy(names: &Names, name: &str, port: u16, from: Option<Vec<NetworkPolicyPeer>>) -> Value {
    let port = NetworkPolicyPort {
        port: Some(IntOrString::Int(port.into())),
        protocol: Some("TCP".to_owned()),
        end_port: None,
    };
    object(&NetworkPolicy {
        metadata: metadata(names, names.of(name), Some(&names.namespace)),
        spec: Some(NetworkPolicySpec {
            ingress: Some(vec![NetworkPolicyIngressRule { from, ports: Some(vec![port]) }]),
            pod_selector: Some(LabelSelector {
                match_labels: Some(names.pod_labels()),
                ..LabelSelector::default()
            }),
            policy_types: Some(vec!["Ingress".to_owned()]),
            egress: None,
        }),
    })
}
