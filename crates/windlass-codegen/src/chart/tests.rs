use std::{collections::BTreeMap, fs, path::Path, process::Command};

use expect_test::expect;
use serde_json::Value;

use super::{Details, files};
use crate::{
    CertificateOrigin, Inventory, ServiceDeclaration,
    manifests::{
        GENERATED, Manifests, Options, documents,
        tests::{everything, full, small},
    },
};

fn details() -> Details {
    Details { version: "1.2.0".to_owned(), ..Details::default() }
}

fn chart(inventory: &Inventory, options: &Options) -> BTreeMap<String, String> {
    files(inventory, options, &details()).expect("a chart")
}

/// Calls the program that `$HELM` names, or `helm`. Returns `None` if there is no such program.
fn helm(arguments: &[&str], folder: &Path) -> Option<(bool, String)> {
    let program = std::env::var("HELM").unwrap_or_else(|_| "helm".to_owned());
    let output = Command::new(program).args(arguments).arg(folder).output().ok()?;
    let text = |bytes: &[u8]| String::from_utf8_lossy(bytes).into_owned();
    let said = if output.status.success() { text(&output.stdout) } else { text(&output.stderr) };
    Some((output.status.success(), said))
}

fn written(files: &BTreeMap<String, String>) -> tempfile::TempDir {
    let folder = tempfile::tempdir().expect("a folder");
    for (path, text) in files {
        let path = folder.path().join(path);
        fs::create_dir_all(path.parent().expect("a folder")).expect("made");
        fs::write(path, text).expect("written");
    }
    folder
}

/// Removes empty lists, mappings and `null`: all three mean that a field is absent.
fn pruned(value: &Value) -> Value {
    let is_kept = |value: &Value| match value {
        Value::Null => false,
        Value::Array(items) => !items.is_empty(),
        Value::Object(members) => !members.is_empty(),
        _ => true,
    };
    match value {
        Value::Array(items) => items.iter().map(pruned).collect(),
        Value::Object(members) => {
            let members = members.iter().map(|(key, value)| (key.clone(), pruned(value)));
            Value::Object(members.filter(|(_, value)| is_kept(value)).collect())
        }
        other => other.clone(),
    }
}

/// Returns objects in a form and an order that allow a comparison.
fn comparable(objects: &[Value]) -> Vec<Value> {
    let mut objects: Vec<Value> =
        objects.iter().filter(|object| object["kind"] != "Namespace").map(pruned).collect();
    for object in &mut objects {
        object["metadata"]["labels"]["app.kubernetes.io/managed-by"] = Value::Null;
    }
    objects.sort_by_key(|object| {
        format!("{} {} {}", object["kind"], object["metadata"]["namespace"], object["metadata"]["name"])
    });
    objects
}

const NO_HELM: &str = "skipped: neither $HELM nor helm is installed";

/// Compares the output of Helm with the manifests.
fn compare(inventory: &Inventory, options: &Options, set: &str) {
    let folder = written(&chart(inventory, options));
    let arguments = [
        "template",
        "web-operator",
        "--namespace",
        "web-operator-system",
        "--set",
        set,
        "--set",
        "crd.keep=false",
    ];
    let Some((success, rendered)) = helm(&arguments, folder.path()) else { return eprintln!("{NO_HELM}") };
    assert!(success, "{rendered}");
    let rendered = comparable(&documents(&rendered).expect("YAML"));
    let expected = comparable(&Manifests::new(inventory, options.clone()).expect("manifests").objects());
    let names = |objects: &[Value]| -> Vec<String> {
        objects.iter().map(|object| format!("{} {}", object["kind"], object["metadata"]["name"])).collect()
    };
    assert_eq!(names(&rendered), names(&expected));
    for (rendered, expected) in rendered.iter().zip(&expected) {
        assert_eq!(rendered, expected);
    }
}

#[test]
fn a_chart_renders_the_objects_of_the_manifests() {
    compare(&full(), &everything(), "");
    compare(&full(), &Options::new("web-operator"), "");
    compare(&small(), &Options::new("web-operator"), "");
    let mut namespaced = Options::new("web-operator");
    namespaced.namespaced = true;
    compare(&small(), &namespaced, "");
    let mut bare = Options::new("web-operator");
    bare.components.clear();
    let mut inventory = small();
    inventory.metrics = None;
    compare(&inventory, &bare, "");
}

fn self_issued() -> Inventory {
    let mut inventory = full();
    let webhooks = inventory.webhooks.as_mut().expect("webhooks");
    webhooks.certificates = CertificateOrigin::SelfIssued;
    webhooks.service =
        Some(ServiceDeclaration { namespace: "web-operator-system".to_owned(), name: "hooks".to_owned() });
    inventory
}

#[test]
fn a_self_issued_certificate_needs_its_namespace_or_cert_manager() {
    compare(&self_issued(), &Options::new("web-operator"), "");
    let folder = written(&chart(&self_issued(), &Options::new("web-operator")));
    let elsewhere = ["template", "web-operator", "--namespace", "elsewhere"];
    let Some((success, said)) = helm(&elsewhere, folder.path()) else { return eprintln!("{NO_HELM}") };
    assert!(!success && said.contains("install with --namespace web-operator-system"), "{said}");
    let certified = [&elsewhere[..], &["--set", "certManager.enable=true"]].concat();
    let (success, said) = helm(&certified, folder.path()).expect("Helm");
    assert!(success && said.contains("--webhook-local=true") && said.contains("kind: Certificate"), "{said}");
    assert!(said.contains("- hooks.elsewhere.svc"), "{said}");
}

#[test]
fn values_have_the_names_of_kubebuilder() {
    let folder = written(&chart(&full(), &Options::new("web-operator")));
    let rendered = |set: &str| {
        let arguments = ["template", "prod", "--namespace", "123", "--set", set];
        let (success, said) = helm(&arguments, folder.path())?;
        let objects: Vec<&str> = said.lines().filter(|line| !line.starts_with('#')).collect();
        Some(if success { objects.join("\n") } else { format!("refused: {said}") })
    };
    let has = |set: &str, part: &str| match rendered(set) {
        Some(text) => assert!(text.contains(part), "--set {set}: no {part:?} in {text}"),
        None => eprintln!("{NO_HELM}"),
    };
    let lacks = |set: &str, part: &str| match rendered(set) {
        Some(text) => {
            assert!(!text.starts_with("refused") && !text.contains(part), "--set {set}: {part:?} in {text}");
        }
        None => eprintln!("{NO_HELM}"),
    };
    has("", "name: prod-web-operator-controller-manager\n  namespace: \"123\"");
    has("manager.replicas=3", "replicas: 3");
    has("manager.image.repository=a,manager.image.tag=1", "image: \"a:1\"");
    has("manager.image.digest=sha256:ab", "image: \"controller@sha256:ab\"");
    has("manager.envOverrides.A=1", "- name: A\n          value: \"1\"");
    has("manager.nodeSelector.disk=ssd", "nodeSelector:\n        disk: ssd");
    has("manager.pod.labels.team=web", "team: web");
    has("manager.imagePullSecrets[0].name=pull", "- name: pull");
    has("metrics.port=9000", "- --metrics-bind-address=:9000");
    has("manager.replicas=x", "refused: ");
    has("manager.image.pullPolicy=Sometimes", "refused: ");
    has("crd.keep=true", "helm.sh/resource-policy: keep");
    lacks("crd.keep=false", "helm.sh/resource-policy");
    lacks("crd.enable=false", "kind: CustomResourceDefinition");
    lacks("crd.enabled=false", "kind: CustomResourceDefinition");
    lacks("rbacHelpers.enable=false", "-admin-role");
    lacks("metrics.enable=false", "metrics-bind-address");
    lacks("webhook.enable=false", "webhook");
    lacks("certManager.enable=false", "cert-manager");
    has("prometheus.enable=true", "kind: ServiceMonitor");
    has("networkPolicy.enable=true", "allow-webhook-traffic");
}

#[test]
fn real_helm_has_no_complaint() {
    for inventory in [full(), small(), self_issued()] {
        let folder = written(&chart(&inventory, &everything()));
        let lint = ["lint", "--strict", "--namespace", "web-operator-system"];
        let Some((success, said)) = helm(&lint, folder.path()) else { return eprintln!("{NO_HELM}") };
        assert!(success, "{said}");
    }
}

#[test]
fn every_file_says_in_its_first_line_that_the_file_is_generated() {
    for (path, text) in chart(&full(), &everything()) {
        assert!(text.lines().next().is_some_and(|line| line.contains(GENERATED)), "{path}");
    }
}

#[test]
fn braces_in_a_description_are_no_template() {
    let mut inventory = small();
    inventory.crds[0]
        .metadata
        .annotations
        .get_or_insert_default()
        .insert("note".to_owned(), "{{ a }}".to_owned());
    let text = &chart(&inventory, &everything())["templates/crd/web.example.com_websites.yaml"];
    assert!(text.contains(r#"{{ "{{" }} a }}"#), "{text}");
    compare(&inventory, &Options::new("web-operator"), "");
}

#[test]
fn a_deployment_that_is_kept_by_hand_keeps_its_fields() {
    let mut options = Options::new("web-operator");
    let plain = Manifests::new(&small(), options.clone()).expect("manifests").files();
    let mut own = documents(&plain["config/manager/manager.yaml"]).expect("YAML");
    own[1]["spec"]["template"]["spec"]["hostNetwork"] = true.into();
    own[1]["spec"]["template"]["spec"]["containers"][0]["env"] =
        serde_json::json!([{ "name": "A", "value": "b" }]);
    options.own_files.insert("config/manager/manager.yaml".to_owned(), own);
    let files = chart(&small(), &options);
    assert!(files["templates/manager/manager.yaml"].contains("hostNetwork: true"));
    assert!(files["values.yaml"].contains("- name: A"), "{}", files["values.yaml"]);
    compare(&small(), &options, "");
}

#[test]
fn the_values_are_those_of_the_deployment() {
    expect![[r##"
        # Code generated by windlass. DO NOT EDIT.
        # To keep your own defaults, remove the first line: the file is yours then.

        # Names begin with the name of the release, unless this is set.
        fullnameOverride: ""
        nameOverride: ""

        manager:
          # Number of pods. One pod at a time is the leader.
          replicas: 1
          # Image of the operator. A digest wins over the tag; the default tag is the appVersion.
          image:
            digest: ""
            pullPolicy: ""
            repository: controller
            tag: latest
          # Arguments. Each argument may contain a template.
          args:
          - --leader-elect
          - --leader-election-id=web-operator
          - --health-probe-bind-address=:8081
          # Environment variables, as in a container.
          env: []
          # Environment variables by name, for --set manager.envOverrides.NAME=VALUE.
          envOverrides: {}
          resources:
            limits:
              cpu: 500m
              memory: 128Mi
            requests:
              cpu: 10m
              memory: 64Mi
          securityContext:
            allowPrivilegeEscalation: false
            capabilities:
              drop:
              - ALL
            readOnlyRootFilesystem: true
          affinity: {}
          imagePullSecrets: []
          nodeSelector: {}
          priorityClassName: ""
          podSecurityContext:
            runAsNonRoot: true
            seccompProfile:
              type: RuntimeDefault
          terminationGracePeriodSeconds: 35
          tolerations: []
          topologySpreadConstraints: []
          strategy: {}
          # Further labels and annotations of the Deployment.
          labels: {}
          annotations: {}
          # Further labels and annotations of the pods.
          pod:
            annotations: {}
            labels: {}
          # Further ports, volumes and mounts.
          extraPorts: []
          extraVolumes: []
          extraVolumeMounts: []

        # Annotations of the service account, such as a cloud role.
        serviceAccount:
          annotations: {}

        # Roles for people: administrators, editors and viewers of each kind.
        rbacHelpers:
          enable: true

        # CustomResourceDefinitions: `helm upgrade` updates them. With keep, `helm uninstall` keeps them and all objects.
        crd:
          enable: true
          keep: true

        # The metrics endpoint and its service.
        metrics:
          enable: true
          port: 8443

        # A ServiceMonitor of the Prometheus operator.
        prometheus:
          enable: false

        # The webhook server, its service and the configurations.
        webhook:
          enable: true

        # The certificate of the webhook server by cert-manager. If off, write the Secret webhook-server-cert yourself.
        certManager:
          enable: true

        # Network policies for the metrics endpoint and the webhook server.
        networkPolicy:
          enable: false
    "##]]
    .assert_eq(&chart(&full(), &Options::new("web-operator"))["values.yaml"]);
}
