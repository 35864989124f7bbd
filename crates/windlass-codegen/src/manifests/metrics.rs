//! `config/metrics` and `config/prometheus`: the metrics endpoint, and the readers of the metrics.

use k8s_openapi::{
    api::core::v1::{Service, ServicePort, ServiceSpec},
    apimachinery::pkg::util::intstr::IntOrString,
};
use serde_json::{Value, json};

use super::{
    operator::deployment_name,
    options::{Component, METRICS_ARGUMENT, Names},
    rbac::metadata,
    tree::{Change, Folder, Patch, add, object},
};
use crate::{Inventory, MetricsDeclaration};

/// The paths of a Deployment that components add to.
pub(super) const ARGUMENTS: &str = "/spec/template/spec/containers/0/args/-";
pub(super) const PORTS: &str = "/spec/template/spec/containers/0/ports/-";
pub(super) const MOUNTS: &str = "/spec/template/spec/containers/0/volumeMounts/-";
pub(super) const VOLUMES: &str = "/spec/template/spec/volumes/-";

/// Returns `config/metrics`: the argument that turns on the endpoint, and the service of the endpoint.
pub(super) fn folder(inventory: &Inventory, names: &Names) -> Folder {
    let folder = Folder::component(Component::Metrics);
    let Some(metrics) = &inventory.metrics else { return folder };
    let patch = Patch {
        file: "manager_metrics_patch.yaml".to_owned(),
        kind: "Deployment",
        name: deployment_name(names),
        change: Change::Operations(vec![
            add(ARGUMENTS, json!(METRICS_ARGUMENT)),
            add(PORTS, json!({ "containerPort": metrics.port, "name": "metrics", "protocol": "TCP" })),
        ]),
    };
    folder.file("metrics_service.yaml", vec![service(metrics, names)]).patch(patch)
}

/// Returns the name of the port of the service.
fn port_name(metrics: &MetricsDeclaration) -> &'static str {
    if metrics.secure { "https" } else { "http" }
}

fn service(metrics: &MetricsDeclaration, names: &Names) -> Value {
    let mut metadata =
        metadata(names, names.of("controller-manager-metrics-service"), Some(&names.namespace));
    metadata.labels.get_or_insert_default().extend(names.pod_labels());
    object(&Service {
        metadata,
        spec: Some(ServiceSpec {
            ports: Some(vec![service_port(Some(port_name(metrics)), metrics.port, metrics.port)]),
            selector: Some(names.pod_labels()),
            ..ServiceSpec::default()
        }),
        ..Service::default()
    })
}

pub(super) fn service_port(name: Option<&str>, port: u16, target: u16) -> ServicePort {
    ServicePort {
        name: name.map(ToOwned::to_owned),
        port: port.into(),
        protocol: Some("TCP".to_owned()),
        target_port: Some(IntOrString::Int(target.into())),
        ..ServicePort::default()
    }
}

/// Returns `config/prometheus`: a ServiceMonitor. Prometheus needs the role of metrics readers.
pub(super) fn prometheus_folder(inventory: &Inventory, names: &Names) -> Folder {
    let folder = Folder::component(Component::Prometheus);
    let Some(metrics) = &inventory.metrics else { return folder };
    let mut endpoint =
        json!({ "path": "/metrics", "port": port_name(metrics), "scheme": port_name(metrics) });
    if metrics.secure {
        endpoint["bearerTokenFile"] = json!("/var/run/secrets/kubernetes.io/serviceaccount/token");
        // The operator signs the certificate itself.
        endpoint["tlsConfig"] = json!({ "insecureSkipVerify": true });
    }
    let mut labels = names.labels();
    labels.extend(names.pod_labels());
    let monitor = json!({
        "apiVersion": "monitoring.coreos.com/v1",
        "kind": "ServiceMonitor",
        "metadata": {
            "labels": labels,
            "name": names.of("controller-manager-metrics-monitor"),
            "namespace": names.namespace,
        },
        "spec": { "endpoints": [endpoint], "selector": { "matchLabels": names.pod_labels() } },
    });
    folder.file("monitor.yaml", vec![monitor])
}
