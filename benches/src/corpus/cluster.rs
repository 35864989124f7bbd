//! The pods of a cluster with many charts: 461 charts, 7,000 workloads and 20,000 pods, in the order of namespaces, and changes of the pods.

use std::collections::HashSet;

use super::chart::Chart;
use super::json::{Json, Object};
use super::pod::HEX;
use super::workload::{Node, Workload, time};
use crate::random::Random;

/// A pod that is not serialized yet.
pub(super) struct Pod {
    metadata: Object,
    spec: Object,
    status: Object,
}

/// The diversity of a corpus.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Diversity {
    pub(crate) workloads: usize,
    /// The number of pods that differ in more than strings, numbers and booleans. Managed fields do not count.
    pub(crate) structures: usize,
}

const CHARTS: usize = 461;
/// The number of pods for each workload and for each namespace.
const PODS_OF_A_WORKLOAD: f64 = 20_000.0 / 7_000.0;
pub(super) const PODS_OF_A_NAMESPACE: usize = 70;

/// The charts of a cluster.
pub(crate) struct Charts(Vec<Chart>);

impl Charts {
    pub(crate) fn new(random: &mut Random) -> Self {
        Self((0..CHARTS).map(|_| Chart::new(random)).collect())
    }

    /// Replaces some charts by other charts.
    pub(crate) fn replace(&mut self, random: &mut Random, count: usize) {
        for _ in 0..count {
            let place = random.below(self.0.len() as u64) as usize;
            self.0[place] = Chart::new(random);
        }
    }
}

/// Returns pods in the order of the namespaces. `first` is the number of the first namespace.
pub(super) fn pods(
    random: &mut Random,
    Charts(charts): &Charts,
    count: usize,
    first: usize,
) -> (Vec<Pod>, Diversity) {
    let nodes: Vec<Node> = (0..(count / 25).max(3)).map(|_| node(random)).collect();
    let mut namespaces: Vec<String> = (first..first + (count / PODS_OF_A_NAMESPACE).max(1))
        .map(|number| {
            format!("team-{:02}-{}-{number}", random.below(40), random.pick(&["prod", "staging", "dev"]))
        })
        .collect();
    namespaces.sort();
    let workloads = (count as f64 / PODS_OF_A_WORKLOAD) as usize;
    let mut all: Vec<Workload> = (0..workloads.max(1))
        .map(|number| {
            // Some charts and some namespaces have many workloads.
            let skewed = |random: &mut Random, length: usize| {
                let (one, other) = (random.below(length as u64), random.below(length as u64));
                one.min(other) as usize
            };
            let chart = skewed(random, CHARTS);
            let namespace = skewed(random, namespaces.len());
            Workload::new(random, &charts[chart], &namespaces[namespace], number)
        })
        .collect();
    all.sort_by(|one, other| (&one.namespace, &one.name).cmp(&(&other.namespace, &other.name)));
    let wanted: usize = all.iter().map(|workload| workload.replicas).sum();
    let mut pods = Vec::with_capacity(count);
    let mut planned = 0;
    for workload in &all {
        // The average is exact at the end.
        let before = planned * count / wanted;
        planned += workload.replicas;
        for ordinal in 0..planned * count / wanted - before {
            let node = random.pick(&nodes);
            pods.push(Pod::new(random, workload, ordinal, node));
        }
    }
    let structures: HashSet<String> = pods.iter().map(Pod::structure).collect();
    (pods, Diversity { workloads: all.len(), structures: structures.len() })
}

fn node(random: &mut Random) -> Node {
    let mut octet = || random.below(256);
    let (a, b, c) = (octet(), octet(), octet());
    Node { name: format!("ip-10-{a}-{b}-{c}.eu-west-1.compute.internal"), ip: format!("10.{a}.{b}.{c}") }
}

impl Pod {
    fn new(random: &mut Random, workload: &Workload, ordinal: usize, node: &Node) -> Self {
        let (metadata, created) = workload.metadata(random, ordinal);
        let spec = workload.spec(random, node);
        let status = status(random, workload, node, created);
        Self { metadata, spec, status }
    }

    fn structure(&self) -> String {
        let mut out = String::new();
        for part in [&self.metadata, &self.spec, &self.status] {
            Json::from(part.clone()).write(&mut out, false);
        }
        out
    }

    /// Changes the pod as a cluster does. In 44 of 100 changes, only the resource version and a time of the managed fields move.
    pub(super) fn change(&mut self, random: &mut Random) {
        let now = time(200 * 86_400 + random.below(86_400));
        match random.below(100) {
            0..44 => {}
            44..70 => self.flip(random, &now),
            70..88 => self.restart(random, &now),
            88..96 => {
                let mut annotations = match self.metadata.get("annotations") {
                    Some(Json::Object(annotations)) => annotations.clone(),
                    _ => Object::new(),
                };
                annotations.set("example.com/last-seen", now);
                self.metadata.set("annotations", annotations);
            }
            _ => {
                if let Some(labels) = self.metadata.get_mut("labels").and_then(Json::as_object_mut) {
                    labels.set("example.com/zone", *random.pick(&["a", "b", "c"]));
                }
            }
        }
    }

    /// Changes whether the pod is ready.
    fn flip(&mut self, random: &mut Random, now: &str) {
        let ready = random.below(2) == 0;
        let conditions = self.status.get_mut("conditions").and_then(Json::as_array_mut);
        for condition in conditions.into_iter().flatten().filter_map(Json::as_object_mut).skip(2).take(2) {
            condition.set("status", if ready { "True" } else { "False" });
            condition.set("lastTransitionTime", now);
        }
        let statuses = self.status.get_mut("containerStatuses").and_then(Json::as_array_mut);
        if let Some(first) = statuses.and_then(|statuses| statuses.first_mut()).and_then(Json::as_object_mut)
        {
            first.set("ready", ready);
        }
    }

    /// Restarts the first container.
    fn restart(&mut self, random: &mut Random, now: &str) {
        let statuses = self.status.get_mut("containerStatuses").and_then(Json::as_array_mut);
        let Some(first) = statuses.and_then(|statuses| statuses.first_mut()).and_then(Json::as_object_mut)
        else {
            return;
        };
        first.set("lastState", terminated(random, 1, now, now));
        first.set("state", Object::new().with("running", Object::new().with("startedAt", now)));
        first.set("restartCount", 1 + random.below(9));
        first.set("containerID", format!("containerd://{}", random.letters(HEX, 64)));
    }

    /// Returns the JSON of the pod.
    pub(super) fn json(&self, revision: u64) -> String {
        let mut metadata = self.metadata.clone();
        metadata.set("resourceVersion", revision.to_string());
        metadata.push("managedFields", self.managed_fields(revision));
        let pod = Object::new()
            .with("kind", "Pod")
            .with("apiVersion", "v1")
            .with("metadata", metadata)
            .with("spec", self.spec.clone())
            .with("status", self.status.clone());
        let mut out = String::new();
        Json::from(pod).write(&mut out, true);
        out
    }

    fn managed_fields(&self, revision: u64) -> Vec<Object> {
        let named = |names: &[&str], from: &Object| {
            names.iter().fold(Object::new(), |fields, name| {
                let value = from.get(name).map(|value| (format!("f:{name}"), value.fields()));
                match value {
                    Some((name, fields_of)) => fields.with(&name, fields_of),
                    None => fields,
                }
            })
        };
        let entry = |manager: &str, seconds: u64, fields: Object| {
            Object::new()
                .with("manager", manager)
                .with("operation", "Update")
                .with("apiVersion", "v1")
                .with("time", time(seconds))
                .with("fieldsType", "FieldsV1")
                .with("fieldsV1", fields)
        };
        let metadata = named(&["annotations", "generateName", "labels", "ownerReferences"], &self.metadata);
        let spec = named(
            &[
                "containers",
                "dnsPolicy",
                "enableServiceLinks",
                "initContainers",
                "restartPolicy",
                "schedulerName",
                "securityContext",
                "serviceAccountName",
                "terminationGracePeriodSeconds",
                "volumes",
            ],
            &self.spec,
        );
        let status = named(&["conditions", "hostIP", "phase", "podIP", "startTime"], &self.status)
            .with("f:containerStatuses", Object::new());
        let created = Object::new().with("f:metadata", metadata).with("f:spec", spec);
        let reported = Object::new().with("f:status", status);
        vec![
            entry("kube-controller-manager", 7_000_000, created),
            entry("kubelet", revision % 17_000_000, reported).with("subresource", "status"),
        ]
    }
}

/// The phase of a pod. The phase decides the structure of the status.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Phase {
    Running,
    Restarted,
    Crashing,
    Pending,
    Succeeded,
}

fn status(random: &mut Random, workload: &Workload, node: &Node, created: u64) -> Object {
    let phase = match random.below(100) {
        _ if workload.is_job() => Phase::Succeeded,
        0..84 => Phase::Running,
        84..94 => Phase::Restarted,
        94..97 => Phase::Crashing,
        _ => Phase::Pending,
    };
    let started = created + 2 + random.below(20);
    let ready = started + random.below(60);
    let condition = |kind: &str, holds: bool, at: u64| {
        let condition = Object::new().with("type", kind).with("observedGeneration", 1_u64);
        let condition = condition.with("status", if holds { "True" } else { "False" });
        let condition = condition.with("lastProbeTime", Json::Literal("null".to_owned()));
        let reason = (!holds).then_some("ContainersNotReady");
        condition.with("lastTransitionTime", time(at)).with_some("reason", reason)
    };
    let up = matches!(phase, Phase::Running | Phase::Restarted);
    let conditions = vec![
        condition("PodReadyToStartContainers", phase != Phase::Succeeded, created + 1),
        condition("Initialized", true, created),
        condition("Ready", up, ready),
        condition("ContainersReady", up, ready),
        condition("PodScheduled", true, created),
    ];
    let ip = format!("10.{}.{}.{}", random.below(256), random.below(256), random.below(254) + 1);
    let ips = |ip: &str| vec![Object::new().with("ip", ip)];
    let name = match phase {
        Phase::Pending => "Pending",
        Phase::Succeeded => "Succeeded",
        _ => "Running",
    };
    let statuses: Vec<Object> = workload
        .containers(false)
        .map(|(name, image, id)| container_status(random, phase, name, image, id, (started, ready)))
        .collect();
    let inits: Vec<Object> = workload
        .containers(true)
        .map(|(name, image, id)| {
            container_status(random, Phase::Succeeded, name, image, id, (created, started))
        })
        .collect();
    let has_address = phase != Phase::Pending;
    Object::new()
        .with("observedGeneration", 1_u64)
        .with("phase", name)
        .with("conditions", conditions)
        .with("hostIP", node.ip.as_str())
        .with("hostIPs", ips(&node.ip))
        .with_some("podIP", has_address.then(|| ip.clone()))
        .with_some("podIPs", has_address.then(|| ips(&ip)))
        .with("startTime", time(created))
        .with_some("initContainerStatuses", Some(inits).filter(|inits| !inits.is_empty()))
        .with("containerStatuses", statuses)
        .with("qosClass", "Burstable")
}

fn container_status(
    random: &mut Random,
    phase: Phase,
    name: &str,
    image: String,
    image_id: String,
    (started, ended): (u64, u64),
) -> Object {
    let (started, ended) = (time(started), time(ended));
    let running = Object::new().with("running", Object::new().with("startedAt", started.as_str()));
    let waiting = |reason: &str| Object::new().with("waiting", Object::new().with("reason", reason));
    let (state, last) = match phase {
        Phase::Running => (running, Object::new()),
        Phase::Restarted => (running, terminated(random, 137, &started, &ended)),
        Phase::Crashing => (waiting("CrashLoopBackOff"), terminated(random, 1, &started, &ended)),
        Phase::Pending => (waiting("ContainerCreating"), Object::new()),
        Phase::Succeeded => (terminated(random, 0, &started, &ended), Object::new()),
    };
    let up = matches!(phase, Phase::Running | Phase::Restarted);
    let restarts = if matches!(phase, Phase::Restarted | Phase::Crashing) { 1 + random.below(20) } else { 0 };
    let id = (phase != Phase::Pending).then(|| format!("containerd://{}", random.letters(HEX, 64)));
    Object::new()
        .with("name", name)
        .with("state", state)
        .with("lastState", last)
        .with("ready", up)
        .with("restartCount", restarts)
        .with("image", image)
        .with("imageID", image_id)
        .with_some("containerID", id)
        .with("started", up)
}

fn terminated(random: &mut Random, code: u64, started: &str, finished: &str) -> Object {
    let reason = match code {
        0 => "Completed",
        137 => "OOMKilled",
        _ => "Error",
    };
    let state = Object::new()
        .with("exitCode", code)
        .with("reason", reason)
        .with("startedAt", started)
        .with("finishedAt", finished)
        .with("containerID", format!("containerd://{}", random.letters(HEX, 64)));
    Object::new().with("terminated", state)
}
