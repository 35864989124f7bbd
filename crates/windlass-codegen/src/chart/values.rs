//! Values: the file with the defaults of all values, with a comment for each group.

use serde_json::{Value, json};

use super::{
    Model,
    manager::{CONTAINER_VALUES, POD_VALUES, WATCH_NAMESPACE},
};
use crate::{
    CertificateOrigin,
    manifests::{Component, GENERATED, yaml::document_text},
};

/// A default value below `manager`, from the Deployment of the manifests.
pub(super) struct Default {
    pub(super) name: &'static str,
    pub(super) value: Value,
    comment: &'static str,
}

/// Returns the defaults below `manager`.
pub(super) fn manager(model: &Model<'_>, deployment: &Value) -> Vec<Default> {
    let spec = &deployment["spec"];
    let pod = &spec["template"]["spec"];
    let container = &pod["containers"][0];
    let mut defaults = vec![
        entry(
            "replicas",
            or(&spec["replicas"], json!(1)),
            "Number of pods. One pod at a time is the leader.",
        ),
        entry(
            "image",
            image(&model.options.image),
            "Image of the operator. A digest wins over the tag; the default tag is the appVersion.",
        ),
        entry(
            "args",
            arguments(model, &container["args"]),
            "Arguments. Each argument may contain a template.",
        ),
        entry("env", environment(&container["env"]), "Environment variables, as in a container."),
        entry(
            "envOverrides",
            json!({}),
            "Environment variables by name, for --set manager.envOverrides.NAME=VALUE.",
        ),
    ];
    for name in CONTAINER_VALUES {
        defaults.push(entry(name, or(&container[name], json!({})), ""));
    }
    for (field, name) in POD_VALUES {
        defaults.push(entry(name, or(&pod[field], empty(field)), ""));
    }
    defaults.extend([
        entry("strategy", or(&spec["strategy"], json!({})), ""),
        entry("labels", json!({}), "Further labels and annotations of the Deployment."),
        entry("annotations", or(&deployment["metadata"]["annotations"], json!({})), ""),
        entry(
            "pod",
            json!({ "labels": {}, "annotations": {} }),
            "Further labels and annotations of the pods.",
        ),
        entry("extraPorts", json!([]), "Further ports, volumes and mounts."),
        entry("extraVolumes", json!([]), ""),
        entry("extraVolumeMounts", json!([]), ""),
    ]);
    defaults
}

fn entry(name: &'static str, value: Value, comment: &'static str) -> Default {
    Default { name, value, comment }
}

fn or(value: &Value, default: Value) -> Value {
    if value.is_null() { default } else { value.clone() }
}

fn empty(field: &str) -> Value {
    match field {
        "priorityClassName" => json!(""),
        "terminationGracePeriodSeconds" => json!(35),
        "affinity" | "nodeSelector" | "securityContext" => json!({}),
        _ => json!([]),
    }
}

/// Takes an image reference apart.
fn image(reference: &str) -> Value {
    let (name, digest) = reference.split_once('@').unwrap_or((reference, ""));
    // A colon before the last slash is that of a port.
    let tag = name.rfind(':').filter(|colon| !name[*colon..].contains('/'));
    let (repository, tag) = tag.map_or((name, ""), |colon| (&name[..colon], &name[colon + 1..]));
    json!({ "repository": repository, "tag": tag, "digest": digest, "pullPolicy": "" })
}

/// Returns the arguments of the Deployment with the name of the project instead of the placeholder.
fn arguments(model: &Model<'_>, own: &Value) -> Value {
    let project = &model.options.project;
    let arguments = own.as_array().into_iter().flatten().filter_map(Value::as_str);
    arguments.map(|argument| argument.replace(super::PROJECT, project)).collect()
}

/// Returns the environment without the variable that the template always has.
fn environment(own: &Value) -> Value {
    let variables = own.as_array().into_iter().flatten();
    variables.filter(|variable| variable["name"] != WATCH_NAMESPACE).cloned().collect()
}

/// Returns the defaults of the parts beside the manager, with a comment.
pub(super) fn parts(model: &Model<'_>) -> Vec<(&'static str, Value, &'static str)> {
    let is_on = |component| model.options.components.contains(&component);
    let mut parts = vec![
        (
            "serviceAccount",
            json!({ "annotations": {} }),
            "Annotations of the service account, such as a cloud role.",
        ),
        (
            "rbacHelpers",
            json!({ "enable": true }),
            "Roles for people: administrators, editors and viewers of each kind.",
        ),
        (
            "crd",
            json!({ "enable": true, "keep": true }),
            "CustomResourceDefinitions: `helm upgrade` updates them. With keep, `helm uninstall` keeps them and all objects.",
        ),
    ];
    if let Some(metrics) = &model.inventory.metrics {
        let value = json!({ "enable": is_on(Component::Metrics), "port": metrics.port });
        parts.push(("metrics", value, "The metrics endpoint and its service."));
        let value = json!({ "enable": is_on(Component::Prometheus) });
        parts.push(("prometheus", value, "A ServiceMonitor of the Prometheus operator."));
    }
    if let Some(certificate) = &model.certificate {
        parts.push((
            "webhook",
            json!({ "enable": true }),
            "The webhook server, its service and the configurations.",
        ));
        let value = json!({ "enable": certificate.origin == CertificateOrigin::Files });
        let comment = match certificate.origin {
            CertificateOrigin::Files => {
                "The certificate of the webhook server by cert-manager. If off, write the Secret webhook-server-cert yourself."
            }
            CertificateOrigin::SelfIssued => {
                "The certificate of the webhook server by cert-manager. If off, the operator issues the certificate."
            }
        };
        parts.push(("certManager", value, comment));
    }
    let value = json!({ "enable": is_on(Component::NetworkPolicy) });
    parts.push(("networkPolicy", value, "Network policies for the metrics endpoint and the webhook server."));
    parts
}

/// Returns `values.yaml`.
pub(super) fn text(model: &Model<'_>, deployment: &Value) -> String {
    let mut text = format!(
        "# {GENERATED}\n# To keep your own defaults, remove the first line: the file is yours then.\n\n# Names begin with the name of the \
         release, unless this is set.\nfullnameOverride: \"\"\nnameOverride: \"\"\n\nmanager:\n"
    );
    for default in manager(model, deployment) {
        if !default.comment.is_empty() {
            text.extend(["  # ", default.comment, "\n"]);
        }
        push(&mut text, default.name, &default.value, "  ");
    }
    for (name, value, comment) in parts(model) {
        text.extend(["\n# ", comment, "\n"]);
        push(&mut text, name, &value, "");
    }
    text
}

fn push(text: &mut String, name: &str, value: &Value, indent: &str) {
    for line in document_text(&json!({ name: value })).lines() {
        text.extend([indent, line, "\n"]);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_image_reference_has_a_repository_a_tag_and_a_digest() {
        let parts = |reference: &str| {
            let image = image(reference);
            ["repository", "tag", "digest"].map(|part| image[part].as_str().unwrap_or_default().to_owned())
        };
        assert_eq!(parts("controller:latest"), ["controller", "latest", ""]);
        assert_eq!(parts("localhost:5000/web"), ["localhost:5000/web", "", ""]);
        assert_eq!(parts("localhost:5000/web:v1@sha256:ab"), ["localhost:5000/web", "v1", "sha256:ab"]);
    }
}
