//! `config/manager`: the namespace and the Deployment of the operator.

use std::collections::BTreeMap;

use k8s_openapi::{
    api::{
        apps::v1::{Deployment, DeploymentSpec},
        core::v1::{
            Capabilities, Container, EnvVar, EnvVarSource, HTTPGetAction, Namespace, ObjectFieldSelector,
            PodSecurityContext, PodSpec, PodTemplateSpec, Probe, ResourceRequirements, SeccompProfile,
            SecurityContext,
        },
    },
    apimachinery::pkg::{
        api::resource::Quantity,
        apis::meta::v1::{LabelSelector, ObjectMeta},
        util::intstr::IntOrString,
    },
};
use serde_json::Value;

use super::{
    options::{Names, Options},
    rbac::{account_name, metadata},
    tree::{Folder, object},
};
use crate::Inventory;

/// The time that the operator may take to stop, in seconds: the 30 of a manager, and some to end the process.
const STOP_SECONDS: i64 = 35;

/// Returns `config/manager`.
pub(super) fn folder(inventory: &Inventory, options: &Options, names: &Names) -> Folder {
    let deployment = object(&deployment(inventory, options, names));
    Folder::new("manager").file("manager.yaml", vec![namespace(names), deployment])
}

/// Returns the name of the Deployment.
pub(super) fn deployment_name(names: &Names) -> String {
    names.of("controller-manager")
}

/// Returns the namespace. Pods in the namespace obey the strictest pod security standard.
fn namespace(names: &Names) -> Value {
    let mut metadata = metadata(names, names.namespace.clone(), None);
    let labels = metadata.labels.get_or_insert_default();
    labels.insert("control-plane".to_owned(), "controller-manager".to_owned());
    labels.insert("pod-security.kubernetes.io/enforce".to_owned(), "restricted".to_owned());
    object(&Namespace { metadata, ..Namespace::default() })
}

fn deployment(inventory: &Inventory, options: &Options, names: &Names) -> Deployment {
    let mut labels = names.labels();
    labels.extend(names.pod_labels());
    Deployment {
        metadata: ObjectMeta {
            labels: Some(labels),
            ..metadata(names, deployment_name(names), Some(&names.namespace))
        },
        spec: Some(DeploymentSpec {
            replicas: Some(1),
            selector: LabelSelector { match_labels: Some(names.pod_labels()), ..LabelSelector::default() },
            template: PodTemplateSpec {
                metadata: Some(ObjectMeta {
                    annotations: Some(text_map([("kubectl.kubernetes.io/default-container", "manager")])),
                    labels: Some(names.pod_labels()),
                    ..ObjectMeta::default()
                }),
                spec: Some(pod(inventory, options, names)),
            },
            ..DeploymentSpec::default()
        }),
        ..Deployment::default()
    }
}

fn pod(inventory: &Inventory, options: &Options, names: &Names) -> PodSpec {
    PodSpec {
        containers: vec![container(inventory, options)],
        security_context: Some(PodSecurityContext {
            run_as_non_root: Some(true),
            seccomp_profile: Some(SeccompProfile {
                type_: "RuntimeDefault".to_owned(),
                ..SeccompProfile::default()
            }),
            ..PodSecurityContext::default()
        }),
        service_account_name: Some(account_name(names)),
        termination_grace_period_seconds: Some(STOP_SECONDS),
        // Components add volumes.
        volumes: Some(Vec::new()),
        ..PodSpec::default()
    }
}

fn container(inventory: &Inventory, options: &Options) -> Container {
    let health = inventory.health_port;
    Container {
        name: "manager".to_owned(),
        image: Some(options.image.clone()),
        command: Some(vec!["/manager".to_owned()]),
        args: Some(arguments(options)),
        env: options.namespaced.then(|| vec![own_namespace()]),
        // A new manager is ready a second after the first answer, and has a minute for the first answer.
        startup_probe: health.map(|port| Probe { failure_threshold: Some(60), ..probe("/healthz", port, 1) }),
        liveness_probe: health.map(|port| probe("/healthz", port, 20)),
        readiness_probe: health.map(|port| probe("/readyz", port, 1)),
        // Components add ports and mounts.
        ports: Some(Vec::new()),
        volume_mounts: Some(Vec::new()),
        resources: Some(ResourceRequirements {
            limits: Some(amounts("500m", "128Mi")),
            requests: Some(amounts("10m", "64Mi")),
            ..ResourceRequirements::default()
        }),
        security_context: Some(SecurityContext {
            allow_privilege_escalation: Some(false),
            capabilities: Some(Capabilities { add: None, drop: Some(vec!["ALL".to_owned()]) }),
            read_only_root_filesystem: Some(true),
            ..SecurityContext::default()
        }),
        ..Container::default()
    }
}

/// Returns the arguments of the operator. The operator's namespace is the namespace of the pod, because an
/// overlay may choose another namespace.
fn arguments(options: &Options) -> Vec<String> {
    let own = format!("--namespace={}", options.namespace);
    let expanded = |argument: String| {
        if argument == own { "--namespace=$(WATCH_NAMESPACE)".to_owned() } else { argument }
    };
    options.arguments().into_iter().map(expanded).collect()
}

fn own_namespace() -> EnvVar {
    EnvVar {
        name: "WATCH_NAMESPACE".to_owned(),
        value_from: Some(EnvVarSource {
            field_ref: Some(ObjectFieldSelector {
                api_version: None,
                field_path: "metadata.namespace".to_owned(),
            }),
            ..EnvVarSource::default()
        }),
        ..EnvVar::default()
    }
}

fn probe(path: &str, port: u16, period: i32) -> Probe {
    Probe {
        http_get: Some(HTTPGetAction {
            path: Some(path.to_owned()),
            port: IntOrString::Int(port.into()),
            ..HTTPGetAction::default()
        }),
        period_seconds: Some(period),
        ..Probe::default()
    }
}

fn amounts(cpu: &str, memory: &str) -> BTreeMap<String, Quantity> {
    BTreeMap::from([
        ("cpu".to_owned(), Quantity(cpu.to_owned())),
        ("memory".to_owned(), Quantity(memory.to_owned())),
    ])
}

pub(super) fn text_map<const N: usize>(pairs: [(&str, &str); N]) -> BTreeMap<String, String> {
    pairs.map(|(key, value)| (key.to_owned(), value.to_owned())).into()
}
