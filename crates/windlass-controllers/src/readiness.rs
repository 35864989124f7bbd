//! A check that the cluster can run pods.

use k8s_openapi::api::core::v1::{Node, ServiceAccount};
use kube_client::Client;
use kube_client::api::{Api, ListParams};

/// Checks once whether pods can run: a node is ready, and the namespace `default` has a service account.
///
/// # Errors
/// The missing object, or the error of the server.
pub async fn can_run_pods(client: &Client) -> Result<(), String> {
    let nodes: Api<Node> = Api::all(client.clone());
    let found = nodes.list(&ListParams::default()).await.map_err(|error| error.to_string())?;
    let mut conditions = found.items.into_iter().filter_map(|node| node.status?.conditions).flatten();
    if !conditions.any(|condition| condition.type_ == "Ready" && condition.status == "True") {
        return Err("no node is ready".to_owned());
    }
    let accounts: Api<ServiceAccount> = Api::namespaced(client.clone(), "default");
    accounts.get("default").await.map(drop).map_err(|error| error.to_string())
}
