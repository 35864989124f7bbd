//! The Service of the name server, as a real cluster has the Service.

use k8s_openapi::api::core::v1::Service;
use kube_client::api::Api;
use serde_json::json;
use windlass_runtime::{Error, Result, RunContext};

use super::DNS_SERVER;
use crate::component::{self, KUBELET};

/// Creates the Service `kube-dns` if the cluster has no such Service. The Service has no endpoints: the node answers at its address.
pub(crate) async fn create(cx: RunContext) -> Result<()> {
    let service = json!({
        "metadata": {
            "name": "kube-dns",
            "labels": {"k8s-app": "kube-dns", "kubernetes.io/name": "CoreDNS", "kubernetes.io/cluster-service": "true"},
        },
        "spec": {
            "clusterIP": DNS_SERVER,
            "ports": [
                {"name": "dns", "port": 53, "protocol": "UDP"},
                {"name": "dns-tcp", "port": 53, "protocol": "TCP"},
            ],
        },
    });
    let service: Service = serde_json::from_value(service).map_err(Error::other)?;
    let api: Api<Service> = Api::namespaced(cx.client().clone(), "kube-system");
    match api.create(&component::post(KUBELET), &service).await.map_err(Error::from) {
        Err(error) if !error.is_already_exists() => {
            tracing::warn!(%error, "the Service kube-dns was not created: pods find the name server without the Service");
        }
        _ => {}
    }
    cx.shutdown().requested().await;
    Ok(())
}
