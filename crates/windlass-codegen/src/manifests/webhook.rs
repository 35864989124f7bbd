//! `config/webhook` and `config/certmanager`: the configurations of webhooks, the service and the certificate
//! of the server.

use json_patch::PatchOperation;
use std::collections::BTreeMap;

use k8s_openapi::api::{
    admissionregistration::v1::{
        MutatingWebhook, MutatingWebhookConfiguration, ServiceReference, ValidatingWebhook,
        ValidatingWebhookConfiguration, WebhookClientConfig,
    },
    core::v1::{Service, ServiceSpec},
};
use serde_json::{Value, json};

use super::{
    metrics::{ARGUMENTS, MOUNTS, PORTS, VOLUMES, service_port},
    operator::deployment_name,
    options::{Component, Names},
    rbac::metadata,
    tree::{Change, Folder, Patch, add, object},
};
use crate::{CertificateOrigin, ConversionDeclaration, WebhooksDeclaration};

/// The folder in the container with the certificate.
pub(crate) const CERTIFICATES: &str = "/tmp/k8s-webhook-server/serving-certs";

/// The Secret with the certificate. cert-manager writes the Secret.
const SECRET: &str = "webhook-server-cert";

/// Returns whether the certificate of the webhook server comes from outside of the operator.
pub(super) fn needs_certificate(webhooks: &WebhooksDeclaration) -> bool {
    webhooks.certificates == CertificateOrigin::Files
}

/// Returns `config/webhook`: configurations, service, and the patch of the Deployment.
pub(super) fn folder(webhooks: &WebhooksDeclaration, names: &Names) -> Folder {
    let configurations = [mutating(webhooks, names), validating(webhooks, names)];
    Folder::component(Component::Webhook)
        .file("manifests.yaml", configurations.into_iter().flatten().collect())
        .file("service.yaml", vec![service(webhooks, names)])
        .patch(Patch {
            file: "manager_webhook_patch.yaml".to_owned(),
            kind: "Deployment",
            name: deployment_name(names),
            change: Change::Operations(server(webhooks)),
        })
}

fn mutating_name(names: &Names) -> String {
    names.of("mutating-webhook-configuration")
}

fn validating_name(names: &Names) -> String {
    names.of("validating-webhook-configuration")
}

fn mutating(webhooks: &WebhooksDeclaration, names: &Names) -> Option<Value> {
    let webhook = |webhook: &MutatingWebhook| MutatingWebhook {
        client_config: client_config(&webhook.client_config, names),
        ..webhook.clone()
    };
    let webhooks: Vec<_> = webhooks.mutating.iter().map(webhook).collect();
    (!webhooks.is_empty()).then(|| {
        let metadata = metadata(names, mutating_name(names), None);
        object(&MutatingWebhookConfiguration { metadata, webhooks: Some(webhooks) })
    })
}

fn validating(webhooks: &WebhooksDeclaration, names: &Names) -> Option<Value> {
    let webhook = |webhook: &ValidatingWebhook| ValidatingWebhook {
        client_config: client_config(&webhook.client_config, names),
        ..webhook.clone()
    };
    let webhooks: Vec<_> = webhooks.validating.iter().map(webhook).collect();
    (!webhooks.is_empty()).then(|| {
        let metadata = metadata(names, validating_name(names), None);
        object(&ValidatingWebhookConfiguration { metadata, webhooks: Some(webhooks) })
    })
}

/// Returns the address of a webhook for the API server. The path comes from the inventory.
fn client_config(declared: &WebhookClientConfig, names: &Names) -> WebhookClientConfig {
    let path = declared.service.as_ref().and_then(|service| service.path.clone());
    let service = ServiceReference {
        name: names.webhook_service.clone(),
        namespace: names.namespace.clone(),
        path,
        port: None,
    };
    WebhookClientConfig { service: Some(service), ..WebhookClientConfig::default() }
}

fn service(webhooks: &WebhooksDeclaration, names: &Names) -> Value {
    object(&Service {
        metadata: metadata(names, names.webhook_service.clone(), Some(&names.namespace)),
        spec: Some(ServiceSpec {
            ports: Some(vec![service_port(None, 443, webhooks.port)]),
            selector: Some(names.pod_labels()),
            ..ServiceSpec::default()
        }),
        ..Service::default()
    })
}

/// Returns the patch of the Deployment: the port, and the certificate if the certificate comes from outside
/// of the operator.
fn server(webhooks: &WebhooksDeclaration) -> Vec<PatchOperation> {
    let port = json!({ "containerPort": webhooks.port, "name": "webhook-server", "protocol": "TCP" });
    let mut operations = vec![add(PORTS, port)];
    if needs_certificate(webhooks) {
        operations.push(add(ARGUMENTS, json!(format!("--webhook-cert-path={CERTIFICATES}"))));
        operations.push(add(
            MOUNTS,
            json!({ "mountPath": CERTIFICATES, "name": "webhook-certs", "readOnly": true }),
        ));
        operations.push(add(VOLUMES, json!({ "name": "webhook-certs", "secret": { "secretName": SECRET } })));
    }
    operations
}

/// Returns `config/certmanager`: a certificate, and the annotations that make cert-manager write the
/// authority to the configurations.
pub(super) fn certificate_folder(webhooks: &WebhooksDeclaration, names: &Names) -> Folder {
    let mut folder = Folder::component(Component::CertManager)
        .file("issuer.yaml", vec![issuer(names)])
        .file("certificate-webhook.yaml", vec![certificate(names)]);
    let mut patch = |file: String, kind, name| {
        let patch = inject(file, kind, name, names);
        folder.patches.push(patch);
    };
    if !webhooks.mutating.is_empty() {
        patch("mutating_ca_patch.yaml".to_owned(), "MutatingWebhookConfiguration", mutating_name(names));
    }
    if !webhooks.validating.is_empty() {
        patch(
            "validating_ca_patch.yaml".to_owned(),
            "ValidatingWebhookConfiguration",
            validating_name(names),
        );
    }
    for ConversionDeclaration { group, plural, .. } in &webhooks.conversions {
        let file = format!("{group}_{plural}_ca_patch.yaml");
        patch(file, "CustomResourceDefinition", format!("{plural}.{group}"));
    }
    folder
}

fn certificate_name(names: &Names) -> String {
    names.of("serving-cert")
}

fn issuer(names: &Names) -> Value {
    json!({
        "apiVersion": "cert-manager.io/v1",
        "kind": "Issuer",
        "metadata": metadata(names, names.of("selfsigned-issuer"), Some(&names.namespace)),
        "spec": { "selfSigned": {} },
    })
}

fn certificate(names: &Names) -> Value {
    let service = format!("{}.{}.svc", names.webhook_service, names.namespace);
    json!({
        "apiVersion": "cert-manager.io/v1",
        "kind": "Certificate",
        "metadata": metadata(names, certificate_name(names), Some(&names.namespace)),
        "spec": {
            "dnsNames": [service, format!("{service}.cluster.local")],
            "issuerRef": { "kind": "Issuer", "name": names.of("selfsigned-issuer") },
            "secretName": SECRET,
        },
    })
}

/// Returns a patch with the annotation that makes cert-manager write the authority into an object.
fn inject(file: String, kind: &'static str, name: String, names: &Names) -> Patch {
    let certificate = format!("{}/{}", names.namespace, certificate_name(names));
    let annotations = BTreeMap::from([("cert-manager.io/inject-ca-from".to_owned(), certificate)]);
    Patch { file, kind, name, change: Change::Annotations(annotations) }
}
