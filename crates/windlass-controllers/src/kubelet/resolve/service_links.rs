//! The environment variables of Services.

use std::sync::Arc;

use k8s_openapi::api::core::v1::{PodSpec, Service};
use kube_core::ResourceExt;

/// The address of the Service `kubernetes`, until the Service exists.
const API_SERVER: &str = "10.0.0.1";

/// Returns the variables of the Services that a pod of `namespace` sees: those of its namespace, unless it disables them, and
/// `kubernetes`.
pub(super) fn service_links(
    spec: &PodSpec,
    namespace: &str,
    services: &[Arc<Service>],
) -> Vec<(String, String)> {
    let mut all = vec![
        ("KUBERNETES_SERVICE_HOST".to_owned(), API_SERVER.to_owned()),
        ("KUBERNETES_SERVICE_PORT".to_owned(), "443".to_owned()),
    ];
    let is_master = |service: &Service| {
        service.name_any() == "kubernetes" && service.namespace().as_deref() == Some("default")
    };
    let links = spec.enable_service_links != Some(false);
    for service in services {
        if is_master(service) || (links && service.namespace().as_deref() == Some(namespace)) {
            all.extend(variables(service).unwrap_or_default());
        }
    }
    all
}

/// Returns the variables of a Service. `None`: the Service has no address.
fn variables(service: &Service) -> Option<Vec<(String, String)>> {
    let spec = service.spec.as_ref()?;
    let address = spec.cluster_ip.as_deref().filter(|address| !matches!(*address, "" | "None"))?;
    let ports = spec.ports.as_deref()?;
    let first = ports.first()?;
    let prefix = screaming(&service.name_any());
    let mut all = vec![
        (format!("{prefix}_SERVICE_HOST"), address.to_owned()),
        (format!("{prefix}_SERVICE_PORT"), first.port.to_string()),
    ];
    for port in ports {
        if let Some(name) = port.name.as_deref().filter(|name| !name.is_empty()) {
            all.push((format!("{prefix}_SERVICE_PORT_{}", screaming(name)), port.port.to_string()));
        }
    }
    let url = |protocol: &str, port| {
        let host = if address.contains(':') { format!("[{address}]") } else { address.to_owned() };
        format!("{}://{host}:{port}", protocol.to_lowercase())
    };
    let protocol_of = |protocol: &Option<String>| protocol.clone().unwrap_or_else(|| "TCP".to_owned());
    all.push((format!("{prefix}_PORT"), url(&protocol_of(&first.protocol), first.port)));
    for port in ports {
        let protocol = protocol_of(&port.protocol);
        let prefix = format!("{prefix}_PORT_{}_{protocol}", port.port);
        all.push((prefix.clone(), url(&protocol, port.port)));
        all.push((format!("{prefix}_PROTO"), protocol.to_lowercase()));
        all.push((format!("{prefix}_PORT"), port.port.to_string()));
        all.push((format!("{prefix}_ADDR"), address.to_owned()));
    }
    Some(all)
}

fn screaming(name: &str) -> String {
    name.replace('-', "_").to_uppercase()
}
