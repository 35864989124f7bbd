//! A check that the cluster can run pods.

use k8s_openapi::api::core::v1::{Node, ServiceAccount};
use kube_client::Client;
use kube_client::api::{Api, ListParams};

use crate::conditions;
use crate::node_fit::untolerated_taint;

/// Checks once whether pods can run: a node is ready for pods, and the namespace `default` has a service account.
///
/// # Errors
/// The missing object, or the error of the server.
pub async fn can_run_pods(client: &Client) -> Result<(), String> {
    let nodes: Api<Node> = Api::all(client.clone());
    let found = nodes.list(&ListParams::default()).await.map_err(|error| error.to_string())?;
    if !found.items.iter().any(takes_pods) {
        return Err("no node is ready".to_owned());
    }
    let accounts: Api<ServiceAccount> = Api::namespaced(client.clone(), "default");
    accounts.get("default").await.map(drop).map_err(|error| error.to_string())
}

/// Returns whether a node is ready and has no taint that keeps pods off.
fn takes_pods(node: &Node) -> bool {
    let conditions = node.status.as_ref().and_then(|status| status.conditions.as_ref());
    let taints = node.spec.as_ref().and_then(|spec| spec.taints.as_deref()).unwrap_or_default();
    conditions::is_true(conditions, "Ready") && untolerated_taint(taints, &[]).is_none()
}
