//! Manager: the template of the Deployment.

use serde_json::{Value, json};

use super::{
    Model,
    marks::{Marks, items, with},
};
use crate::{
    CertificateOrigin,
    manifests::{CERTIFICATES, METRICS_ARGUMENT},
};

/// The environment variable of a namespaced operator. No value may remove the variable.
pub(super) const WATCH_NAMESPACE: &str = "WATCH_NAMESPACE";

/// The Secret with the certificate. cert-manager or the user writes the Secret.
const SECRET: &str = "webhook-server-cert";

/// The fields of the pod that are values, with the path below `manager`.
pub(super) const POD_VALUES: [(&str, &str); 8] = [
    ("affinity", "affinity"),
    ("imagePullSecrets", "imagePullSecrets"),
    ("nodeSelector", "nodeSelector"),
    ("priorityClassName", "priorityClassName"),
    ("securityContext", "podSecurityContext"),
    ("terminationGracePeriodSeconds", "terminationGracePeriodSeconds"),
    ("tolerations", "tolerations"),
    ("topologySpreadConstraints", "topologySpreadConstraints"),
];

/// The fields of the container that are values of the same name below `manager`.
pub(super) const CONTAINER_VALUES: [&str; 2] = ["resources", "securityContext"];

/// Returns whether an object is the Deployment of the operator.
pub(super) fn is_it(object: &Value) -> bool {
    object["kind"] == "Deployment" && object.pointer("/spec/template/spec/containers/0").is_some()
}

/// Replaces the fields of the Deployment that are values by marks. All other fields stay, including fields
/// that the user has added to `config/manager/manager.yaml`.
pub(super) fn mark(model: &Model<'_>, deployment: &mut Value, marks: &mut Marks) {
    marks.extend(&mut deployment["metadata"]["labels"], items(".Values.manager.labels"));
    deployment["metadata"]["annotations"] = marks.add(with("annotations", ".Values.manager.annotations"));
    let spec = &mut deployment["spec"];
    spec["replicas"] = marks.add(vec!["replicas: {{ .Values.manager.replicas }}".to_owned()]);
    spec["strategy"] = marks.add(with("strategy", ".Values.manager.strategy"));
    let template = &mut spec["template"];
    marks.extend(&mut template["metadata"]["labels"], items(".Values.manager.pod.labels"));
    marks.extend(&mut template["metadata"]["annotations"], items(".Values.manager.pod.annotations"));
    mark_pod(model, &mut template["spec"], marks);
}

fn mark_pod(model: &Model<'_>, pod: &mut Value, marks: &mut Marks) {
    for (field, value) in POD_VALUES {
        let path = format!(".Values.manager.{value}");
        let lines = match field {
            "priorityClassName" | "terminationGracePeriodSeconds" => vec![
                format!("{{{{- with {path} }}}}"),
                format!("{field}: {{{{ . }}}}"),
                "{{- end }}".to_owned(),
            ],
            _ => with(field, &path),
        };
        pod[field] = marks.add(lines);
    }
    pod["volumes"] = marks.add(list("volumes", &pod["volumes"], &certificate_volume(model), "extraVolumes"));
    mark_container(model, &mut pod["containers"][0], marks);
}

fn mark_container(model: &Model<'_>, container: &mut Value, marks: &mut Marks) {
    for field in CONTAINER_VALUES {
        container[field] = marks.add(with(field, &format!(".Values.manager.{field}")));
    }
    container["image"] = marks.add(vec![format!("image: {}", model.helpers.image())]);
    container["imagePullPolicy"] = marks.add(vec![
        "{{- with .Values.manager.image.pullPolicy }}".to_owned(),
        "imagePullPolicy: {{ . }}".to_owned(),
        "{{- end }}".to_owned(),
    ]);
    container["args"] = marks.add(arguments(model));
    container["env"] = marks.add(environment(&container["env"]));
    container["ports"] = marks.add(list("ports", &container["ports"], &ports(model), "extraPorts"));
    let mounts = &container["volumeMounts"];
    let lines = list("volumeMounts", mounts, &certificate_mount(model), "extraVolumeMounts");
    container["volumeMounts"] = marks.add(lines);
}

/// Returns the lines of a list: the items of the object, the conditional lines, and the items of a value.
fn list(key: &str, own: &Value, conditional: &[String], value: &str) -> Vec<String> {
    let mut lines = vec![format!("{key}:")];
    lines.extend(own.as_array().into_iter().flatten().map(item));
    lines.extend_from_slice(conditional);
    lines.extend(items(&format!(".Values.manager.{value}")));
    lines
}

/// Returns an item of a list as a line: JSON is YAML.
fn item(value: &Value) -> String {
    format!("- {}", value.to_string().replace("{{", "{{ \"{{\" }}"))
}

/// Returns lines behind a condition.
fn when(condition: &str, lines: Vec<String>) -> Vec<String> {
    let mut all = vec![format!("{{{{- if {condition} }}}}")];
    all.extend(lines);
    all.push("{{- end }}".to_owned());
    all
}

fn arguments(model: &Model<'_>) -> Vec<String> {
    let mut lines = vec!["args:".to_owned()];
    lines.push("{{- range .Values.manager.args }}".to_owned());
    lines.push("- {{ tpl . $ | quote }}".to_owned());
    lines.push("{{- end }}".to_owned());
    if let Some(metrics) = &model.inventory.metrics {
        let argument = METRICS_ARGUMENT.replace(&metrics.port.to_string(), "{{ .Values.metrics.port }}");
        lines.extend(when(&model.helpers.on("metrics"), vec![format!("- {argument}")]));
    }
    if let Some(certificate) = &model.certificate {
        let folder = format!("- --webhook-cert-path={CERTIFICATES}");
        lines.extend(match certificate.origin {
            CertificateOrigin::Files => when(&model.helpers.on("webhook"), vec![folder]),
            // The flag overrides the code of the operator: the operator takes the certificate from the
            // folder.
            CertificateOrigin::SelfIssued => {
                when(&model.helpers.certified(), vec![folder, "- --webhook-local=true".to_owned()])
            }
        });
    }
    lines
}

/// Returns the environment: the variable of the operator's namespace, `manager.env`, and `manager.envOverrides` by name.
fn environment(own: &Value) -> Vec<String> {
    let mut lines = vec!["env:".to_owned()];
    let fixed = own.as_array().into_iter().flatten().filter(|variable| variable["name"] == WATCH_NAMESPACE);
    lines.extend(fixed.map(item));
    let rest = [
        "{{- range .Values.manager.env }}",
        "{{- if not (hasKey $.Values.manager.envOverrides .name) }}",
        "- {{ toJson . }}",
        "{{- end }}",
        "{{- end }}",
        "{{- range $name, $value := .Values.manager.envOverrides }}",
        "- name: {{ $name }}",
        "  value: {{ $value | quote }}",
        "{{- end }}",
    ];
    lines.extend(rest.map(ToOwned::to_owned));
    lines
}

fn ports(model: &Model<'_>) -> Vec<String> {
    let mut lines = Vec::new();
    if model.inventory.metrics.is_some() {
        let port = ["- containerPort: {{ .Values.metrics.port }}", "  name: metrics", "  protocol: TCP"];
        lines.extend(when(&model.helpers.on("metrics"), port.map(ToOwned::to_owned).into()));
    }
    if let Some(webhooks) = &model.inventory.webhooks {
        let port = json!({ "containerPort": webhooks.port, "name": "webhook-server", "protocol": "TCP" });
        lines.extend(when(&model.helpers.on("webhook"), vec![item(&port)]));
    }
    lines
}

/// Returns lines behind the condition that the certificate comes from a Secret.
fn from_secret(model: &Model<'_>, line: String) -> Vec<String> {
    match model.certificate.as_ref().map(|certificate| certificate.origin) {
        None => Vec::new(),
        Some(CertificateOrigin::Files) => when(&model.helpers.on("webhook"), vec![line]),
        Some(CertificateOrigin::SelfIssued) => when(&model.helpers.certified(), vec![line]),
    }
}

fn certificate_mount(model: &Model<'_>) -> Vec<String> {
    let mount = json!({ "mountPath": CERTIFICATES, "name": "webhook-certs", "readOnly": true });
    from_secret(model, item(&mount))
}

fn certificate_volume(model: &Model<'_>) -> Vec<String> {
    let volume = json!({ "name": "webhook-certs", "secret": { "secretName": SECRET } });
    from_secret(model, item(&volume))
}

/// Returns lines that refuse a namespace outside of the validity of a self-issued certificate.
pub(super) fn namespace_check(model: &Model<'_>) -> String {
    let certificate = model.certificate.as_ref();
    let Some(namespace) = certificate.and_then(|certificate| certificate.namespace.as_ref()) else {
        return String::new();
    };
    let (webhook, certified) = (model.helpers.on("webhook"), model.helpers.on("certManager"));
    format!(
        "{{{{- if and ({webhook}) (not ({certified})) (ne .Release.Namespace \"{namespace}\") }}}}\n{{{{- fail \"the code of the operator \
         issues a certificate for the namespace {namespace}: install with --namespace {namespace}, or set certManager.enable=true\" }}}}\n\
         {{{{- end }}}}\n"
    )
}
