//! A check that the cluster can run pods.

use k8s_openapi::api::core::v1::{Node, ServiceAccount};
use kube_client::Client;
use kube_client::api::{Api, ListParams};

use crate::conditions;
use crate::node_fit::untolerated_taint;

/// Checks once whether pods can run: at least `nodes` nodes are ready for pods, and the namespace `default` has a service account.
///
/// # Errors
/// The missing object, or the error of the server.
pub async fn can_run_pods(client: &Client, nodes: usize) -> Result<(), String> {
    let api: Api<Node> = Api::all(client.clone());
    let found = api.list(&ListParams::default()).await.map_err(|error| error.to_string())?;
    let ready = found.items.iter().filter(|node| takes_pods(node)).count();
    if ready < nodes {
        return Err(format!("{ready} of {nodes} nodes are ready"));
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
