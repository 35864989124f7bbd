//! Pod templates of charts: the fields, and the usual values of the fields.

use super::json::{Json, Object, texts};
use crate::random::Random;

/// The controller that makes the pods of a workload.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Controller {
    ReplicaSet,
    StatefulSet,
    DaemonSet,
    Job,
}

/// A template of workloads.
#[derive(Clone, Debug)]
pub(super) struct Chart {
    pub(super) name: String,
    pub(super) controller: Controller,
    pub(super) label_style: u64,
    /// Labels that the chart adds to the labels of the style.
    pub(super) labels: Vec<(&'static str, String)>,
    pub(super) annotations: Vec<&'static str>,
    pub(super) containers: Vec<Container>,
    pub(super) init_containers: Vec<Container>,
    pub(super) volumes: Vec<(String, Json)>,
    pub(super) token: bool,
    /// The members of the pod's spec that all workloads of the chart share.
    pub(super) spec: Object,
    pub(super) tolerations: Vec<Json>,
}

/// A container of a template.
#[derive(Clone, Debug)]
pub(super) struct Container {
    pub(super) name: String,
    pub(super) image: String,
    pub(super) command: Vec<String>,
    pub(super) args: Vec<String>,
    pub(super) env: Vec<Json>,
    /// `ports` and `envFrom`.
    pub(super) inputs: Object,
    pub(super) resources: u64,
    pub(super) mounts: Vec<Json>,
    /// Probes and hooks.
    pub(super) probes: Object,
    pub(super) security: Option<Object>,
}

const WORDS: [&str; 48] = [
    "amber", "atlas", "beacon", "birch", "bridge", "canvas", "cedar", "cinder", "clover", "comet", "copper",
    "coral", "crane", "delta", "drift", "ember", "falcon", "fern", "flint", "forge", "garnet", "glacier",
    "harbor", "hazel", "heron", "indigo", "iris", "jasper", "kestrel", "lantern", "larch", "ledger",
    "linden", "maple", "marble", "meadow", "nimbus", "onyx", "orchid", "otter", "pebble", "quartz", "raven",
    "saffron", "sparrow", "thistle", "tundra", "willow",
];
const ROLES: [&str; 16] = [
    "api",
    "worker",
    "controller",
    "web",
    "cache",
    "exporter",
    "gateway",
    "operator",
    "db",
    "queue",
    "agent",
    "proxy",
    "scheduler",
    "ui",
    "sync",
    "collector",
];
const SETTINGS: [&str; 40] = [
    "LOG_LEVEL",
    "LOG_FORMAT",
    "HTTP_PORT",
    "GRPC_PORT",
    "METRICS_ADDR",
    "DATABASE_HOST",
    "DATABASE_NAME",
    "DATABASE_USER",
    "REDIS_URL",
    "KAFKA_BROKERS",
    "OTEL_EXPORTER_OTLP_ENDPOINT",
    "OTEL_SERVICE_NAME",
    "OTEL_RESOURCE_ATTRIBUTES",
    "GOMAXPROCS",
    "GOMEMLIMIT",
    "JAVA_TOOL_OPTIONS",
    "NODE_ENV",
    "TZ",
    "FEATURE_FLAGS",
    "S3_BUCKET",
    "S3_ENDPOINT",
    "AWS_REGION",
    "CLUSTER_NAME",
    "ENVIRONMENT",
    "BASE_URL",
    "PUBLIC_URL",
    "SMTP_HOST",
    "CACHE_TTL",
    "MAX_CONNECTIONS",
    "REQUEST_TIMEOUT",
    "SHUTDOWN_DELAY",
    "LEADER_ELECTION",
    "WATCH_NAMESPACE",
    "CONFIG_PATH",
    "DATA_DIR",
    "TLS_CERT_FILE",
    "TLS_KEY_FILE",
    "OIDC_ISSUER",
    "SESSION_STORE",
    "RATE_LIMIT",
];
const ANNOTATIONS: [&str; 12] = [
    "checksum/config",
    "checksum/secret",
    "prometheus.io/scrape",
    "prometheus.io/port",
    "prometheus.io/path",
    "kubectl.kubernetes.io/restartedAt",
    "kubectl.kubernetes.io/default-container",
    "cluster-autoscaler.kubernetes.io/safe-to-evict",
    "sidecar.istio.io/inject",
    "linkerd.io/inject",
    "seccomp.security.alpha.kubernetes.io/pod",
    "k8s.v1.cni.cncf.io/network-status",
];

impl Chart {
    pub(super) fn new(random: &mut Random) -> Self {
        let name = format!("{}-{}", random.pick(&WORDS), random.pick(&ROLES));
        let controller = match random.below(100) {
            0..62 => Controller::ReplicaSet,
            62..76 => Controller::StatefulSet,
            76..86 => Controller::DaemonSet,
            _ => Controller::Job,
        };
        let volumes = volumes(random, &name);
        let (count, inits) = (1 + rising(random, 24, 3), rising(random, 18, 2));
        let containers = (0..count).map(|number| container(random, &name, number, &volumes, false)).collect();
        let init_containers =
            (0..inits).map(|number| container(random, &name, number, &volumes, true)).collect();
        let labels = [
            ("team", "platform"),
            ("tier", "backend"),
            ("env", "prod"),
            ("component", "server"),
            ("version", "v1"),
            ("owner", "sre"),
        ];
        let labels = labels.iter().filter(|_| random.below(100) < 22);
        let labels = labels.map(|&(key, value)| (key, value.to_owned())).collect();
        Self {
            controller,
            label_style: random.below(5),
            labels,
            annotations: ANNOTATIONS.into_iter().filter(|_| random.below(100) < 24).collect(),
            containers,
            init_containers,
            volumes,
            token: random.below(100) < 85,
            spec: spec(random, &name),
            tolerations: tolerations(random),
            name,
        }
    }
}

/// Returns a number up to `most`: each increment has the probability `percent`.
pub(super) fn rising(random: &mut Random, percent: u64, most: usize) -> usize {
    (0..most).take_while(|_| random.below(100) < percent).count()
}

fn volumes(random: &mut Random, name: &str) -> Vec<(String, Json)> {
    let count = rising(random, 52, 6);
    (0..count)
        .map(|number| {
            let volume = |what: &str| format!("{what}-{number}");
            match random.below(7) {
                0 | 1 => (
                    volume("config"),
                    Object::new()
                        .with(
                            "configMap",
                            Object::new()
                                .with("name", format!("{name}-config-{number}"))
                                .with("defaultMode", 420_u64),
                        )
                        .into(),
                ),
                2 => (
                    volume("secrets"),
                    Object::new()
                        .with(
                            "secret",
                            Object::new()
                                .with("secretName", format!("{name}-secret-{number}"))
                                .with("defaultMode", 420_u64),
                        )
                        .into(),
                ),
                3 => (volume("tmp"), Object::new().with("emptyDir", Object::new()).into()),
                4 => (
                    volume("shared"),
                    Object::new()
                        .with("emptyDir", Object::new().with("medium", "Memory").with("sizeLimit", "256Mi"))
                        .into(),
                ),
                5 => (
                    volume("data"),
                    Object::new()
                        .with(
                            "persistentVolumeClaim",
                            Object::new().with("claimName", format!("{name}-data-{number}")),
                        )
                        .into(),
                ),
                _ => (
                    volume("host"),
                    Object::new()
                        .with(
                            "hostPath",
                            Object::new()
                                .with("path", format!("/var/lib/{name}"))
                                .with("type", "DirectoryOrCreate"),
                        )
                        .into(),
                ),
            }
        })
        .collect()
}

fn container(
    random: &mut Random,
    chart: &str,
    number: usize,
    volumes: &[(String, Json)],
    init: bool,
) -> Container {
    let name = match (init, number) {
        (true, 0) => "init".to_owned(),
        (true, _) => format!("migrate-{number}"),
        (false, 0) => chart.to_owned(),
        (false, _) => format!("{}-{number}", random.pick(&ROLES)),
    };
    let registry = random.pick(&["registry.example.com", "ghcr.io", "quay.io", "docker.io"]);
    let mut mounts = Vec::new();
    for (at, (volume, _)) in volumes.iter().enumerate() {
        if random.below(100) < 70 {
            mounts.push(mount(random, volume, at));
        }
    }
    let settings = if init { rising(random, 40, 6) } else { rising(random, 74, 24) };
    let first = random.below(SETTINGS.len() as u64) as usize;
    let env =
        (0..settings).map(|at| variable(random, chart, SETTINGS[(first + at) % SETTINGS.len()])).collect();
    let words = |random: &mut Random, percent, most| -> Vec<String> {
        let count = rising(random, percent, most);
        (0..count)
            .map(|_| {
                format!(
                    "--{}={}",
                    random.pick(&SETTINGS).to_lowercase().replace('_', "-"),
                    random.pick(&WORDS)
                )
            })
            .collect()
    };
    let mut inputs = Object::new();
    let ports = if init { 0 } else { rising(random, 72, 4) };
    if ports > 0 {
        let names = ["http", "metrics", "grpc", "health"];
        let port = |at: usize| {
            Object::new()
                .with("name", names[at])
                .with("containerPort", 8000 + 91 * at as u64)
                .with("protocol", "TCP")
        };
        inputs.push("ports", (0..ports).map(port).collect::<Vec<_>>());
    }
    if random.below(100) < 15 {
        let source = Object::new().with("configMapRef", Object::new().with("name", format!("{chart}-env")));
        inputs.push("envFrom", vec![source]);
    }
    Container {
        image: format!("{registry}/{chart}/{name}"),
        command: if random.below(100) < 35 {
            vec!["/bin/sh".into(), "-c".into(), format!("exec /usr/local/bin/{name} \"$@\"")]
        } else {
            Vec::new()
        },
        args: words(random, 68, 12),
        env,
        inputs,
        resources: random.below(6),
        mounts,
        probes: if init { Object::new() } else { probes(random, chart) },
        security: security(random),
        name,
    }
}

fn mount(random: &mut Random, volume: &str, at: usize) -> Json {
    let mount = Object::new().with("name", volume);
    let mount = if random.below(2) == 0 { mount.with("readOnly", true) } else { mount };
    let mount = mount.with("mountPath", format!("/etc/{volume}/{at}"));
    let path = (random.below(100) < 18).then(|| format!("{volume}.yaml"));
    mount.with_some("subPath", path).into()
}

fn variable(random: &mut Random, chart: &str, name: &str) -> Json {
    let variable = Object::new().with("name", name);
    let from = |source: &str, value: Object| {
        variable.clone().with("valueFrom", Object::new().with(source, value)).into()
    };
    match random.below(10) {
        0 => from(
            "fieldRef",
            Object::new().with("apiVersion", "v1").with(
                "fieldPath",
                *random.pick(&["metadata.name", "metadata.namespace", "status.podIP", "spec.nodeName"]),
            ),
        ),
        1 => from(
            "secretKeyRef",
            Object::new().with("name", format!("{chart}-secret")).with("key", name.to_lowercase()),
        ),
        2 => from(
            "configMapKeyRef",
            Object::new().with("name", format!("{chart}-config")).with("key", name.to_lowercase()),
        ),
        3 => from("resourceFieldRef", Object::new().with("resource", "limits.memory").with("divisor", "0")),
        // The value is per workload.
        _ => variable.with("value", "").into(),
    }
}

fn probes(random: &mut Random, chart: &str) -> Object {
    let mut probes = Object::new();
    for (name, percent) in [("livenessProbe", 70), ("readinessProbe", 75), ("startupProbe", 15)] {
        if random.below(100) >= percent {
            continue;
        }
        let probe = match random.below(6) {
            0..4 => Object::new().with(
                "httpGet",
                Object::new()
                    .with("path", *random.pick(&["/healthz", "/ready", "/live", "/-/healthy"]))
                    .with("port", "http")
                    .with("scheme", "HTTP"),
            ),
            4 => Object::new().with("tcpSocket", Object::new().with("port", 8000_u64)),
            _ => Object::new().with(
                "exec",
                Object::new()
                    .with("command", vec!["/bin/sh".to_owned(), "-c".to_owned(), format!("{chart} --check")]),
            ),
        };
        let probe = if random.below(2) == 0 {
            probe.with("initialDelaySeconds", 5 + random.below(6) * 5)
        } else {
            probe
        };
        let probe = probe
            .with("timeoutSeconds", 1 + random.below(5))
            .with("periodSeconds", 10_u64)
            .with("successThreshold", 1_u64);
        probes.push(name, probe.with("failureThreshold", 3 + random.below(3)));
    }
    if random.below(100) < 12 {
        let sleep = Object::new().with("exec", Object::new().with("command", vec!["sleep", "10"]));
        probes.push("lifecycle", Object::new().with("preStop", sleep));
    }
    probes
}

fn security(random: &mut Random) -> Option<Object> {
    let drop = |capabilities: Vec<&str>| Object::new().with("drop", capabilities);
    match random.below(5) {
        0 => None,
        1 => Some(
            Object::new()
                .with("capabilities", drop(vec!["ALL"]))
                .with("readOnlyRootFilesystem", true)
                .with("allowPrivilegeEscalation", false),
        ),
        2 => Some(Object::new().with("runAsUser", 1000 + random.below(4)).with("runAsNonRoot", true)),
        3 => Some(
            Object::new()
                .with("capabilities", drop(vec!["ALL"]).with("add", vec!["NET_BIND_SERVICE"]))
                .with("runAsUser", 101_u64)
                .with("allowPrivilegeEscalation", true),
        ),
        _ => Some(
            Object::new()
                .with("allowPrivilegeEscalation", false)
                .with("seccompProfile", Object::new().with("type", "RuntimeDefault")),
        ),
    }
}

fn spec(random: &mut Random, name: &str) -> Object {
    let mut spec = Object::new();
    if random.below(100) < 20 {
        spec.push("nodeSelector", texts([("kubernetes.io/os", "linux")]));
    }
    if random.below(100) < 10 {
        spec.push("hostNetwork", true);
    }
    let security = match random.below(4) {
        0 => Object::new(),
        1 => Object::new().with("fsGroup", 1000_u64),
        2 => Object::new()
            .with("runAsUser", 1000_u64)
            .with("runAsGroup", 1000_u64)
            .with("runAsNonRoot", true)
            .with("fsGroup", 1000_u64),
        _ => Object::new()
            .with("runAsNonRoot", true)
            .with("seccompProfile", Object::new().with("type", "RuntimeDefault")),
    };
    spec.push("securityContext", security);
    if random.below(100) < 30 {
        spec.push("imagePullSecrets", vec![texts([("name", "registry-credentials")])]);
    }
    let selector = Object::new().with("matchLabels", texts([("app.kubernetes.io/name", name)]));
    if random.below(100) < 30 {
        let term = Object::new()
            .with("labelSelector", selector.clone())
            .with("topologyKey", "kubernetes.io/hostname");
        let preferred = Object::new().with("weight", 100_u64).with("podAffinityTerm", term.clone());
        let anti = match random.below(2) {
            0 => Object::new().with("preferredDuringSchedulingIgnoredDuringExecution", vec![preferred]),
            _ => Object::new().with("requiredDuringSchedulingIgnoredDuringExecution", vec![term]),
        };
        spec.push("affinity", Object::new().with("podAntiAffinity", anti));
    }
    if random.below(100) < 18 {
        let constraint =
            Object::new().with("maxSkew", 1_u64).with("topologyKey", "topology.kubernetes.io/zone");
        spec.push(
            "topologySpreadConstraints",
            vec![constraint.with("whenUnsatisfiable", "ScheduleAnyway").with("labelSelector", selector)],
        );
    }
    if random.below(100) < 16 {
        spec.push("priorityClassName", "business-critical");
    }
    spec
}

fn tolerations(random: &mut Random) -> Vec<Json> {
    let count = rising(random, 20, 3);
    (0..count)
        .map(|number| {
            let key = ["dedicated", "node.kubernetes.io/unschedulable", "spot"][number];
            Object::new().with("key", key).with("operator", "Exists").with("effect", "NoSchedule").into()
        })
        .collect()
}
