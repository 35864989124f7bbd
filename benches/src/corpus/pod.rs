//! A running pod of a deployment, sometimes with a sidecar.

use super::{app, namespace};
use crate::random::Random;
use serde_json::{Map, Value, json};
use std::collections::HashMap;

pub(super) const SUFFIX: &str = "bcdfghjklmnpqrstvwxz2456789";
pub(super) const HEX: &str = "0123456789abcdef";

/// The data that the pods of a cluster share.
pub(super) struct Cluster {
    nodes: Vec<String>,
    /// The image of each application.
    digests: HashMap<String, String>,
}

impl Cluster {
    pub(super) fn new(random: &mut Random) -> Self {
        let mut octet = || random.below(256);
        let nodes = (0..800)
            .map(|_| format!("ip-10-{}-{}-{}.eu-west-1.compute.internal", octet(), octet(), octet()))
            .collect();
        Self { nodes, digests: HashMap::new() }
    }

    fn image_id(&mut self, random: &mut Random, app: &str) -> String {
        let digest = self.digests.entry(app.to_owned()).or_insert_with(|| random.letters(HEX, 64));
        format!("registry.example.com/platform/{app}@sha256:{digest}")
    }
}

const SIDECAR: &str = "mesh-proxy";

pub(super) fn pod(random: &mut Random, cluster: &mut Cluster, revision: u64) -> String {
    let (app, namespace, time) = (app(random), namespace(random), random.time());
    let hash = random.letters(SUFFIX, 10);
    let name = format!("{app}-{hash}-{}", random.letters(SUFFIX, 5));
    let (uid, owner, node) = (random.uid(), random.uid(), random.pick(&cluster.nodes).clone());
    let ip = format!("10.{}.{}.{}", random.below(256), random.below(256), random.below(254) + 1);
    let labels = json!({
        "app.kubernetes.io/name": app, "app.kubernetes.io/instance": format!("{app}-{namespace}"),
        "app.kubernetes.io/managed-by": "Helm", "app.kubernetes.io/part-of": app.split('-').next(),
        "pod-template-hash": hash, "team": namespace[..7],
    });
    let annotations = json!({
        "checksum/config": random.letters(HEX, 64), "prometheus.io/scrape": "true", "prometheus.io/port": "9090",
        "prometheus.io/path": "/metrics", "kubectl.kubernetes.io/restartedAt": time,
    });
    let token = format!("kube-api-access-{}", random.letters(SUFFIX, 5));
    let variables = 1 + random.below(3) as usize;
    let mut containers = vec![container(random, "app", &app, variables, &token)];
    if random.below(100) < 12 {
        containers.push(container(random, "proxy", SIDECAR, 2, &token));
    }
    let managed = managed_fields(&labels, &annotations, &containers, &owner, &ip, &time);
    let status = status(random, cluster, &app, &containers, &ip, &time);
    let spec = spec(&app, &containers, &node, &token);
    // The order of the fields is the order in which a server writes built-in kinds.
    format!(
        r#"{{"kind":"Pod","apiVersion":"v1","metadata":{{"name":"{name}","generateName":"{app}-{hash}-","namespace":"{namespace}","uid":"{uid}","resourceVersion":"{revision}","generation":1,"creationTimestamp":"{time}","labels":{labels},"annotations":{annotations},"ownerReferences":[{{"apiVersion":"apps/v1","kind":"ReplicaSet","name":"{app}-{hash}","uid":"{owner}","controller":true,"blockOwnerDeletion":true}}],"managedFields":{managed}}},"spec":{spec},"status":{status}}}"#
    )
}

fn container(random: &mut Random, name: &str, app: &str, variables: usize, token: &str) -> Value {
    let usual = [
        ("LOG_LEVEL", "info".to_owned()),
        ("APP_ENV", "production".to_owned()),
        ("OTEL_EXPORTER_OTLP_ENDPOINT", "http://otel-collector.observability:4317".to_owned()),
    ];
    let mut env: Vec<Value> =
        usual.iter().take(variables).map(|(name, value)| json!({"name": name, "value": value})).collect();
    env.push(json!({"name": "POD_NAME", "valueFrom": {"fieldRef": {"apiVersion": "v1", "fieldPath": "metadata.name"}}}));
    env.push(json!({"name": "DB_PASSWORD", "valueFrom": {"secretKeyRef": {"name": format!("{app}-db"), "key": "password"}}}));
    let probe = |path: &str| {
        json!({"httpGet": {"path": path, "port": "http", "scheme": "HTTP"}, "initialDelaySeconds": 10,
            "timeoutSeconds": 1, "periodSeconds": 10, "successThreshold": 1, "failureThreshold": 3})
    };
    json!({
        "name": name,
        "image": format!("registry.example.com/platform/{app}:v1.{}.{}", random.below(41), random.below(10)),
        "ports": [{"name": "http", "containerPort": 8080, "protocol": "TCP"},
            {"name": "metrics", "containerPort": 9090, "protocol": "TCP"}],
        "env": env,
        "resources": {"limits": {"cpu": "1", "memory": "1Gi"}, "requests": {"cpu": "250m", "memory": "512Mi"}},
        "volumeMounts": [{"name": "config", "mountPath": "/etc/app"},
            {"name": token, "readOnly": true, "mountPath": "/var/run/secrets/kubernetes.io/serviceaccount"}],
        "livenessProbe": probe("/healthz"), "readinessProbe": probe("/ready"),
        "terminationMessagePath": "/dev/termination-log", "terminationMessagePolicy": "File",
        "imagePullPolicy": "IfNotPresent",
        "securityContext": {"capabilities": {"drop": ["ALL"]}, "runAsNonRoot": true,
            "readOnlyRootFilesystem": true, "allowPrivilegeEscalation": false},
    })
}

fn spec(app: &str, containers: &[Value], node: &str, token: &str) -> Value {
    let toleration = |condition: &str| {
        json!({"key": format!("node.kubernetes.io/{condition}"), "operator": "Exists", "effect": "NoExecute",
            "tolerationSeconds": 300})
    };
    json!({
        "volumes": [
            {"name": "config", "configMap": {"name": format!("{app}-config"), "defaultMode": 420}},
            {"name": token, "projected": {"sources": [
                {"serviceAccountToken": {"expirationSeconds": 3607, "path": "token"}},
                {"configMap": {"name": "kube-root-ca.crt", "items": [{"key": "ca.crt", "path": "ca.crt"}]}},
                {"downwardAPI": {"items": [{"path": "namespace",
                    "fieldRef": {"apiVersion": "v1", "fieldPath": "metadata.namespace"}}]}},
            ], "defaultMode": 420}},
        ],
        "containers": containers, "restartPolicy": "Always", "terminationGracePeriodSeconds": 30,
        "dnsPolicy": "ClusterFirst", "serviceAccountName": app, "serviceAccount": app, "nodeName": node,
        "securityContext": {"runAsUser": 1000, "fsGroup": 1000, "seccompProfile": {"type": "RuntimeDefault"}},
        "imagePullSecrets": [{"name": "regcred"}], "schedulerName": "default-scheduler",
        "tolerations": [toleration("not-ready"), toleration("unreachable")], "priority": 0,
        "enableServiceLinks": true, "preemptionPolicy": "PreemptLowerPriority",
    })
}

fn status(
    random: &mut Random,
    cluster: &mut Cluster,
    app: &str,
    containers: &[Value],
    ip: &str,
    time: &str,
) -> Value {
    let conditions: Vec<Value> = CONDITIONS
        .iter()
        .map(
            |kind| json!({"type": kind, "status": "True", "lastProbeTime": null, "lastTransitionTime": time}),
        )
        .collect();
    let containers: Vec<Value> = containers
        .iter()
        .map(|container| {
            let image = if container["name"] == "app" { app } else { SIDECAR };
            json!({
                "name": container["name"], "state": {"running": {"startedAt": time}}, "lastState": {}, "ready": true,
                "restartCount": random.below(4), "image": container["image"],
                "imageID": cluster.image_id(random, image),
                "containerID": format!("containerd://{}", random.letters(HEX, 64)), "started": true,
            })
        })
        .collect();
    json!({
        "phase": "Running", "conditions": conditions, "hostIP": "10.1.2.3", "hostIPs": [{"ip": "10.1.2.3"}],
        "podIP": ip, "podIPs": [{"ip": ip}], "startTime": time, "containerStatuses": containers,
        "qosClass": "Burstable",
    })
}

const CONDITIONS: [&str; 5] =
    ["PodReadyToStartContainers", "Initialized", "Ready", "ContainersReady", "PodScheduled"];

/// Returns `{".": {}, "f:a": {}, "f:b": {}}`.
fn owned<'a>(dot: bool, fields: impl IntoIterator<Item = &'a str>) -> Value {
    let dot = dot.then(|| (".".to_owned(), json!({})));
    Value::Object(
        dot.into_iter().chain(fields.into_iter().map(|field| (format!("f:{field}"), json!({})))).collect(),
    )
}

fn owned_probe() -> Value {
    let mut probe = owned(
        true,
        ["failureThreshold", "initialDelaySeconds", "periodSeconds", "successThreshold", "timeoutSeconds"],
    );
    probe["f:httpGet"] = owned(true, ["path", "port", "scheme"]);
    probe
}

fn owned_container(container: &Value) -> Value {
    let each = |list: &str, key: &dyn Fn(&Value) -> String, fields: &dyn Fn(&Value) -> Value| {
        let entries = container[list].as_array().into_iter().flatten();
        let mut out: Map<String, Value> =
            entries.map(|entry| (format!("k:{}", key(entry)), fields(entry))).collect();
        out.insert(".".into(), json!({}));
        Value::Object(out)
    };
    let mut out = owned(
        true,
        ["image", "imagePullPolicy", "name", "terminationMessagePath", "terminationMessagePolicy"],
    );
    out["f:env"] = each("env", &|e| json!({"name": e["name"]}).to_string(), &|e| {
        owned(true, ["name", if e.get("value").is_some() { "value" } else { "valueFrom" }])
    });
    out["f:livenessProbe"] = owned_probe();
    out["f:readinessProbe"] = owned_probe();
    out["f:ports"] = each(
        "ports",
        &|p| json!({"containerPort": p["containerPort"], "protocol": "TCP"}).to_string(),
        &|_| owned(true, ["containerPort", "name", "protocol"]),
    );
    out["f:resources"] = json!({".": {}, "f:limits": owned(true, ["cpu", "memory"]), "f:requests": owned(true, ["cpu", "memory"])});
    let mut security = owned(true, ["allowPrivilegeEscalation", "readOnlyRootFilesystem", "runAsNonRoot"]);
    security["f:capabilities"] = owned(true, ["drop"]);
    out["f:securityContext"] = security;
    out["f:volumeMounts"] =
        each("volumeMounts", &|m| json!({"mountPath": m["mountPath"]}).to_string(), &|_| {
            owned(true, ["mountPath", "name"])
        });
    out
}

fn managed_fields(
    labels: &Value,
    annotations: &Value,
    containers: &[Value],
    owner: &str,
    ip: &str,
    time: &str,
) -> Value {
    let keys = |value: &Value| -> Vec<String> {
        value.as_object().into_iter().flatten().map(|(key, _)| key.clone()).collect()
    };
    let all = |value: &Value| owned(true, keys(value).iter().map(String::as_str));
    let by_name: Map<String, Value> = containers
        .iter()
        .map(|container| (format!(r#"k:{{"name":{}}}"#, container["name"]), owned_container(container)))
        .collect();
    let mut spec = owned(
        false,
        [
            "dnsPolicy",
            "enableServiceLinks",
            "restartPolicy",
            "schedulerName",
            "serviceAccount",
            "serviceAccountName",
            "terminationGracePeriodSeconds",
        ],
    );
    spec["f:containers"] = Value::Object(by_name);
    spec["f:imagePullSecrets"] = json!({".": {}, r#"k:{"name":"regcred"}"#: {}});
    spec["f:securityContext"] =
        json!({".": {}, "f:fsGroup": {}, "f:runAsUser": {}, "f:seccompProfile": owned(true, ["type"])});
    spec["f:volumes"] = json!({".": {}, r#"k:{"name":"config"}"#: {".": {}, "f:configMap": owned(true, ["defaultMode", "name"]), "f:name": {}}});
    let conditions: Map<String, Value> = CONDITIONS[..4]
        .iter()
        .map(|kind| {
            (
                format!(r#"k:{{"type":"{kind}"}}"#),
                owned(true, ["lastProbeTime", "lastTransitionTime", "status", "type"]),
            )
        })
        .collect();
    let mut status = owned(false, ["containerStatuses", "hostIP", "hostIPs", "phase", "podIP", "startTime"]);
    status["f:conditions"] = Value::Object(conditions);
    status["f:podIPs"] = json!({".": {}, format!(r#"k:{{"ip":"{ip}"}}"#): owned(true, ["ip"])});
    json!([
        {"manager": "kube-controller-manager", "operation": "Update", "apiVersion": "v1", "time": time,
            "fieldsType": "FieldsV1", "fieldsV1": {
                "f:metadata": {"f:annotations": all(annotations), "f:generateName": {}, "f:labels": all(labels),
                    "f:ownerReferences": {".": {}, format!(r#"k:{{"uid":"{owner}"}}"#): {}}},
                "f:spec": spec}},
        {"manager": "kubelet", "operation": "Update", "apiVersion": "v1", "time": time, "fieldsType": "FieldsV1",
            "fieldsV1": {"f:status": status}, "subresource": "status"},
    ])
}
