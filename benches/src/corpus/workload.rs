//! Workloads: a chart with the values of an installation, and the pods of the workload.

use super::chart::{Chart, Container, Controller, rising};
use super::json::{Json, Object, texts};
use super::pod::{HEX, SUFFIX};
use crate::random::Random;

/// A workload, with values that all pods share.
pub(super) struct Workload {
    chart: Chart,
    pub(super) name: String,
    pub(super) namespace: String,
    /// The hash of the pod template.
    hash: String,
    owner: String,
    /// The tag and the digest of each container's image.
    images: Vec<(String, String)>,
    labels: Object,
    annotations: Object,
    service_account: String,
    /// The time of the last rollout in seconds.
    rollout: u64,
    pub(super) replicas: usize,
}

/// A node. All pods on the node mention the node.
pub(super) struct Node {
    pub(super) name: String,
    pub(super) ip: String,
}

impl Workload {
    pub(super) fn new(random: &mut Random, chart: &Chart, namespace: &str, number: usize) -> Self {
        let mut chart = chart.clone();
        let name = match random.below(3) {
            0 => chart.name.clone(),
            1 => format!("{}-{}", namespace.split('-').next().unwrap_or_default(), chart.name),
            _ => format!("{}-{}", chart.name, ["blue", "green", "eu", "us", "canary"][number % 5]),
        };
        let name = format!("{name}-{:x}", number % 4096);
        adapt(random, &mut chart, &name, namespace);
        let all = chart.containers.len() + chart.init_containers.len();
        let version = format!("v{}.{}.{}", 1 + random.below(4), random.below(30), random.below(12));
        let images = (0..all).map(|_| (version.clone(), random.letters(HEX, 64))).collect();
        let hash = random.letters(SUFFIX, 10);
        let mut workload = Self {
            labels: labels(&chart, &name, &version),
            annotations: annotations(random, &chart, &name),
            service_account: if random.below(100) < 60 { name.clone() } else { "default".to_owned() },
            namespace: namespace.to_owned(),
            owner: random.uid(),
            rollout: random.below(200 * 86_400),
            replicas: replicas(random),
            images,
            hash,
            name,
            chart,
        };
        let hash = workload.hash.clone();
        match workload.chart.controller {
            Controller::ReplicaSet => workload.labels.push("pod-template-hash", hash),
            Controller::StatefulSet => {
                workload.labels.push("controller-revision-hash", format!("{}-{hash}", workload.name));
            }
            Controller::DaemonSet => {
                workload.labels.push("controller-revision-hash", hash);
                workload.labels.push("pod-template-generation", "3");
            }
            Controller::Job => {
                let uid = workload.owner.clone();
                workload.labels.push("batch.kubernetes.io/controller-uid", uid);
                workload.labels.push("batch.kubernetes.io/job-name", workload.name.clone());
            }
        }
        workload
    }

    pub(super) fn is_job(&self) -> bool {
        self.chart.controller == Controller::Job
    }

    fn owner(&self) -> (&'static str, &'static str, String) {
        match self.chart.controller {
            Controller::ReplicaSet => ("apps/v1", "ReplicaSet", format!("{}-{}", self.name, self.hash)),
            Controller::StatefulSet => ("apps/v1", "StatefulSet", self.name.clone()),
            Controller::DaemonSet => ("apps/v1", "DaemonSet", self.name.clone()),
            Controller::Job => ("batch/v1", "Job", self.name.clone()),
        }
    }

    /// Returns the metadata of a pod, without resource version and managed fields, and the time of the creation.
    pub(super) fn metadata(&self, random: &mut Random, ordinal: usize) -> (Object, u64) {
        let (api_version, kind, owner) = self.owner();
        let mut labels = self.labels.clone();
        let name = match self.chart.controller {
            Controller::StatefulSet => {
                labels.push("apps.kubernetes.io/pod-index", ordinal.to_string());
                labels.push("statefulset.kubernetes.io/pod-name", format!("{owner}-{ordinal}"));
                format!("{owner}-{ordinal}")
            }
            _ => format!("{owner}-{}", random.letters(SUFFIX, 5)),
        };
        let within = if random.below(3) == 0 { 900_000 } else { 90 };
        let created = self.rollout + random.below(within);
        let reference =
            texts([("apiVersion", api_version), ("kind", kind), ("name", &owner), ("uid", &self.owner)]);
        let metadata = Object::new()
            .with("name", name)
            .with("generateName", format!("{owner}-"))
            .with("namespace", self.namespace.as_str())
            .with("uid", random.uid())
            .with("resourceVersion", "")
            .with("generation", 1_u64)
            .with("creationTimestamp", time(created))
            .with("labels", labels)
            .with_some("annotations", Some(self.annotations.clone()).filter(|all| !all.is_empty()))
            .with(
                "ownerReferences",
                vec![reference.with("controller", true).with("blockOwnerDeletion", true)],
            );
        (metadata, created)
    }

    /// Returns the spec of a pod.
    pub(super) fn spec(&self, random: &mut Random, node: &Node) -> Object {
        let token = self.chart.token.then(|| format!("kube-api-access-{}", random.letters(SUFFIX, 5)));
        let mut volumes: Vec<Json> = self
            .chart
            .volumes
            .iter()
            .map(|(name, source)| match source {
                Json::Object(source) => {
                    let mut volume = Object::new().with("name", name.as_str());
                    volume.extend(source);
                    volume.into()
                }
                other => other.clone(),
            })
            .collect();
        volumes.extend(token.as_deref().map(token_volume));
        let mut images = self.images.iter();
        let mut container = |container: &Container| container_of(container, images.next(), token.as_deref());
        let containers: Vec<Json> = self.chart.containers.iter().map(&mut container).collect();
        let inits: Vec<Json> = self.chart.init_containers.iter().map(&mut container).collect();
        let restart = if self.is_job() { "Never" } else { "Always" };
        let mut spec = Object::new()
            .with_some("volumes", Some(volumes).filter(|volumes| !volumes.is_empty()))
            .with_some("initContainers", Some(inits).filter(|inits| !inits.is_empty()))
            .with("containers", containers)
            .with("restartPolicy", restart)
            .with("terminationGracePeriodSeconds", 30_u64)
            .with("dnsPolicy", "ClusterFirst")
            .with("serviceAccountName", self.service_account.as_str())
            .with("serviceAccount", self.service_account.as_str())
            .with("nodeName", node.name.as_str());
        spec.extend(&self.chart.spec);
        let mut tolerations = self.chart.tolerations.clone();
        tolerations.extend(["not-ready", "unreachable"].map(|condition| {
            texts([
                ("key", &*format!("node.kubernetes.io/{condition}")),
                ("operator", "Exists"),
                ("effect", "NoExecute"),
            ])
            .with("tolerationSeconds", 300_u64)
            .into()
        }));
        spec.with("schedulerName", "default-scheduler")
            .with("tolerations", Json::Array(tolerations))
            .with("priority", 0_u64)
            .with("enableServiceLinks", true)
            .with("preemptionPolicy", "PreemptLowerPriority")
    }

    /// Returns the names, images and digests of the containers, or of the init containers.
    pub(super) fn containers(&self, init: bool) -> impl Iterator<Item = (&str, String, String)> {
        let chart = &self.chart;
        let (containers, skipped) =
            if init { (&chart.init_containers, chart.containers.len()) } else { (&chart.containers, 0) };
        containers.iter().zip(&self.images[skipped..]).map(|(container, (tag, digest))| {
            (
                &*container.name,
                format!("{}:{tag}", container.image),
                format!("{}@sha256:{digest}", container.image),
            )
        })
    }
}

fn container_of(container: &Container, image: Option<&(String, String)>, token: Option<&str>) -> Json {
    let (tag, _) = image.expect("each container has an image");
    let list = |texts: &[String]| Some(texts.to_vec()).filter(|texts| !texts.is_empty());
    let mut mounts = container.mounts.clone();
    let access = "/var/run/secrets/kubernetes.io/serviceaccount";
    mounts.extend(token.map(|token| {
        Object::new().with("name", token).with("readOnly", true).with("mountPath", access).into()
    }));
    let mut all = Object::new()
        .with("name", container.name.as_str())
        .with("image", format!("{}:{tag}", container.image))
        .with_some("command", list(&container.command))
        .with_some("args", list(&container.args));
    all.extend(&container.inputs);
    let mut all = all
        .with_some("env", Some(container.env.clone()).filter(|env| !env.is_empty()))
        .with("resources", resources(container.resources))
        .with_some("volumeMounts", Some(mounts).filter(|mounts| !mounts.is_empty()));
    all.extend(&container.probes);
    all.with("terminationMessagePath", "/dev/termination-log")
        .with("terminationMessagePolicy", "File")
        .with("imagePullPolicy", "IfNotPresent")
        .with_some("securityContext", container.security.clone())
        .into()
}

/// Changes a chart as the values of an installation do.
fn adapt(random: &mut Random, chart: &mut Chart, name: &str, namespace: &str) {
    for container in chart.containers.iter_mut().chain(&mut chart.init_containers) {
        for variable in &mut container.env {
            if let Some(Json::Text(value)) =
                variable.as_object_mut().and_then(|variable| variable.get_mut("value"))
            {
                *value = match random.below(6) {
                    0 => "true".to_owned(),
                    1 => random.below(10_000).to_string(),
                    2 => format!(
                        "http://{name}.{namespace}.svc.cluster.local:8080/api/v1?timeout=30s&retries=3"
                    ),
                    3 => format!(
                        "postgres://{name}@{name}-db.{namespace}.svc.cluster.local:5432/{name}?sslmode=verify-full"
                    ),
                    4 => format!(
                        "-XX:MaxRAMPercentage=75 -XX:+UseG1GC -Dservice.name={name} -Duser.timezone=UTC"
                    ),
                    _ => format!("/var/lib/{name}/{}", random.letters(SUFFIX, 6)),
                };
            }
        }
        if random.below(100) < 12 {
            container.resources = random.below(6);
        }
    }
    let added = rising(random, 12, 4);
    let extra = (0..added).map(|number| {
        let (setting, value) = (format!("EXTRA_SETTING_{number}"), random.letters(SUFFIX, 8));
        Json::from(texts([("name", &*setting), ("value", &*value)]))
    });
    let extra: Vec<_> = extra.collect();
    chart.containers[0].env.extend(extra);
    if random.below(100) < 8 {
        let sidecar = chart.containers[0].clone();
        let inputs = Object::new();
        let probes = Object::new();
        let (name, image) = ("mesh-proxy".to_owned(), "registry.example.com/mesh/proxy".to_owned());
        chart.containers.push(Container { name, image, inputs, probes, command: Vec::new(), ..sidecar });
    }
    if random.below(100) < 10 {
        chart.spec.set("nodeSelector", texts([("pool", "general")]));
    }
    if random.below(100) < 4 {
        chart.labels.push(("cost-center", random.below(900).to_string()));
    }
}

fn labels(chart: &Chart, name: &str, version: &str) -> Object {
    let app = &*chart.name;
    let recommended = |more: &[(&str, &str)]| {
        let first = texts([("app.kubernetes.io/instance", name), ("app.kubernetes.io/name", app)]);
        more.iter().fold(first, |labels, (key, value)| labels.with(key, *value))
    };
    let labels = match chart.label_style {
        0 => recommended(&[("app.kubernetes.io/managed-by", "Helm"), ("app.kubernetes.io/version", version)]),
        1 => recommended(&[
            ("app.kubernetes.io/component", "server"),
            ("app.kubernetes.io/part-of", "platform"),
        ]),
        2 => texts([("app", app), ("chart", app), ("heritage", "Helm"), ("release", name)]),
        3 => texts([("k8s-app", app), ("app.kubernetes.io/name", app)]),
        _ => texts([("app", app), ("app.kubernetes.io/name", app)]),
    };
    chart.labels.iter().fold(labels, |labels, (key, value)| labels.with(key, value.as_str()))
}

fn annotations(random: &mut Random, chart: &Chart, name: &str) -> Object {
    chart.annotations.iter().fold(Object::new(), |annotations, &key| {
        let value = match key {
            "checksum/config" | "checksum/secret" => random.letters(HEX, 64),
            "prometheus.io/port" => "9090".to_owned(),
            "prometheus.io/path" => "/metrics".to_owned(),
            "kubectl.kubernetes.io/restartedAt" => time(random.below(200 * 86_400)),
            "kubectl.kubernetes.io/default-container" => name.to_owned(),
            "k8s.v1.cni.cncf.io/network-status" => format!("[{{\n    \"name\": \"{name}\",\n    \"interface\": \"eth0\",\n    \"ips\": [],\n    \"default\": true,\n    \"dns\": {{}}\n}}]"),
            _ => "true".to_owned(),
        };
        annotations.with(key, value)
    })
}

/// Returns the number of pods: 2.9 on average.
fn replicas(random: &mut Random) -> usize {
    match random.below(1000) {
        0..420 => 1,
        420..650 => 2,
        650..830 => 3,
        830..950 => 4 + random.below(3) as usize,
        950..992 => 7 + random.below(8) as usize,
        _ => 20 + random.below(30) as usize,
    }
}

fn resources(size: u64) -> Object {
    let limits = |cpu: &str, memory: &str| texts([("cpu", cpu), ("memory", memory)]);
    let requests = Object::new().with("requests", limits("100m", "128Mi"));
    match size {
        0 => Object::new(),
        1 => requests,
        2 => Object::new().with("limits", limits("1", "1Gi")).with("requests", limits("250m", "512Mi")),
        3 => Object::new().with("limits", limits("500m", "256Mi")).with("requests", limits("500m", "256Mi")),
        4 => Object::new().with("limits", texts([("memory", "2Gi")])).with("requests", limits("10m", "64Mi")),
        _ => Object::new()
            .with("limits", limits("4", "8Gi").with("ephemeral-storage", "10Gi"))
            .with("requests", limits("1", "4Gi")),
    }
}

fn token_volume(name: &str) -> Json {
    let token = Object::new().with("expirationSeconds", 3607_u64).with("path", "token");
    let item = texts([("key", "ca.crt"), ("path", "ca.crt")]);
    let root = Object::new().with("name", "kube-root-ca.crt").with("items", vec![item]);
    let field = texts([("apiVersion", "v1"), ("fieldPath", "metadata.namespace")]);
    let item = Object::new().with("path", "namespace").with("fieldRef", field);
    let sources = vec![
        Object::new().with("serviceAccountToken", token),
        Object::new().with("configMap", root),
        Object::new().with("downwardAPI", Object::new().with("items", vec![item])),
    ];
    let projected = Object::new().with("sources", sources).with("defaultMode", 420_u64);
    Object::new().with("name", name).with("projected", projected).into()
}

/// Returns a time of the year 2026 as text.
pub(super) fn time(seconds: u64) -> String {
    let (days, seconds) = (seconds / 86_400, seconds % 86_400);
    format!(
        "2026-{:02}-{:02}T{:02}:{:02}:{:02}Z",
        1 + days / 28 % 12,
        1 + days % 28,
        seconds / 3600,
        seconds / 60 % 60,
        seconds % 60
    )
}
