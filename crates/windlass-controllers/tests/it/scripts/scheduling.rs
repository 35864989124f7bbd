//! The scheduler: the nodes that pods get, and the messages about pods without a node.

use serde_json::{Value, json};

use super::stage::Stage;

const HOST: &str = "kubernetes.io/hostname";
const ZONE: &str = "topology.kubernetes.io/zone";
const CLAIMS: &str = "v1/persistentvolumeclaims";
const CLASSES: &str = "/apis/scheduling.k8s.io/v1/priorityclasses";
const STORAGE_CLASSES: &str = "/apis/storage.k8s.io/v1/storageclasses";
const VOLUMES: &str = "/api/v1/persistentvolumes";

/// Creates a pod with the label `app: APP`, and with the fields of `spec`.
async fn pod(stage: &Stage, name: &str, app: &str, spec: Value) {
    let mut pod = json!({
        "metadata": {"name": name, "labels": {"app": app}},
        "spec": {"containers": [{"name": "c", "image": "i"}], "automountServiceAccountToken": false},
    });
    for (field, value) in spec.as_object().unwrap() {
        pod["spec"][field] = value.clone();
    }
    stage.create("v1/pods", pod).await;
}

/// Returns the spec of a pod that requests resources.
fn requesting(requests: Value) -> Value {
    json!({"containers": [{"name": "c", "image": "i", "resources": {"requests": requests, "limits": requests}}]})
}

fn with(mut spec: Value, field: &str, value: Value) -> Value {
    spec[field] = value;
    spec
}

fn on(label: &str, value: &str) -> Value {
    json!({"nodeSelector": {label: value}})
}

/// Returns a rule about pods of an app.
fn pods_of(app: &str, key: &str) -> Value {
    json!([{"labelSelector": {"matchLabels": {"app": app}}, "topologyKey": key}])
}

fn near(app: &str, key: &str) -> Value {
    json!({"affinity": {"podAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": pods_of(app, key)}}})
}

fn apart(app: &str, key: &str) -> Value {
    json!({"affinity": {"podAntiAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": pods_of(app, key)}}})
}

fn using(claim: &str) -> Value {
    json!({"volumes": [{"name": "v", "persistentVolumeClaim": {"claimName": claim}}]})
}

fn amounts(cpu: &str, pods: &str) -> Value {
    json!({"cpu": cpu, "memory": "4Gi", "ephemeral-storage": "10Gi", "pods": pods})
}

async fn end(stage: Stage, nodes: &[String], others: &[String]) {
    let nodes = nodes.iter().map(|node| format!("/api/v1/nodes/{node}"));
    let paths: Vec<String> = nodes.chain(others.iter().cloned()).collect();
    stage.finish_with(&paths).await;
}

#[tokio::test]
async fn pods_wait_for_a_node_that_can_take_the_pod() {
    let mut stage = Stage::open_with_scheduler("scheduler_nodes", &["v1/pods"]).await;
    pod(&stage, "early", "early", json!({})).await;
    stage.settle("no node").await;
    stage.delete("v1/pods/early").await;
    stage.gone("v1/pods/early").await;
    let fast = stage.node_with("fast", json!({"disk": "ssd"}), &amounts("2", "10")).await;
    let tainted = stage.node_with("tainted", json!({"disk": "none"}), &amounts("2", "10")).await;
    let cordoned = stage.node_with("cordoned", json!({"disk": "old"}), &amounts("2", "10")).await;
    let tiny = stage.node_with("tiny", json!({"disk": "tiny"}), &amounts("100m", "1")).await;
    let taint = json!([{"key": "dedicated", "value": "x", "effect": "NoSchedule"}]);
    stage.patch_node(&tainted, json!({"spec": {"taints": taint}})).await;
    stage.patch_node(&cordoned, json!({"spec": {"unschedulable": true}})).await;
    stage.settle("four nodes").await;
    pod(&stage, "large", "large", requesting(json!({"cpu": "100"}))).await;
    let every = json!({"cpu": "100", "memory": "100Gi", "ephemeral-storage": "1Ti", "example.com/gpu": "1"});
    pod(&stage, "larger", "larger", requesting(every)).await;
    pod(&stage, "elsewhere", "elsewhere", on("disk", "hdd")).await;
    let dedicated = json!([{"key": "dedicated", "operator": "Equal", "value": "x", "effect": "NoSchedule"}]);
    pod(&stage, "tolerant", "tolerant", with(on("disk", "none"), "tolerations", dedicated)).await;
    let cordon =
        json!([{"key": "node.kubernetes.io/unschedulable", "operator": "Exists", "effect": "NoSchedule"}]);
    pod(&stage, "stubborn", "stubborn", with(on("disk", "old"), "tolerations", cordon)).await;
    pod(&stage, "gated", "gated", json!({"schedulingGates": [{"name": "example.com/gate"}]})).await;
    pod(&stage, "only", "only", on("disk", "tiny")).await;
    let port = json!([{"name": "c", "image": "i", "ports": [{"containerPort": 80, "hostPort": 8080}]}]);
    pod(&stage, "port-1", "port", with(on("disk", "ssd"), "containers", port.clone())).await;
    stage.settle("placed and waiting").await;
    pod(&stage, "port-2", "port", with(on("disk", "ssd"), "containers", port)).await;
    pod(&stage, "second", "second", on("disk", "tiny")).await;
    stage.settle("ports and numbers of pods").await;
    stage
        .patch("v1/pods/gated", json!({"spec": {"schedulingGates": [], "nodeSelector": {"disk": "hdd"}}}))
        .await;
    stage.settle("without the gate").await;
    end(stage, &[fast, tainted, cordoned, tiny], &[]).await;
}

#[tokio::test]
async fn pods_keep_together_and_apart() {
    let mut stage = Stage::open_with_scheduler("scheduler_affinity", &["v1/pods"]).await;
    let a = stage.node_with("a", json!({HOST: "a", ZONE: "a"}), &amounts("2", "50")).await;
    let b = stage.node_with("b", json!({HOST: "b", ZONE: "b"}), &amounts("2", "50")).await;
    let c = stage.node_with("c", json!({HOST: "c"}), &amounts("2", "50")).await;
    pod(&stage, "anchor", "anchor", on(HOST, "a")).await;
    pod(
        &stage,
        "guard",
        "guard",
        with(on(HOST, "b"), "affinity", apart("intruder", ZONE)["affinity"].clone()),
    )
    .await;
    stage.settle("placed").await;
    pod(&stage, "intruder", "intruder", on(HOST, "b")).await;
    pod(&stage, "away", "away", with(on(HOST, "a"), "affinity", apart("anchor", HOST)["affinity"].clone()))
        .await;
    pod(&stage, "near", "near", with(on(HOST, "c"), "affinity", near("anchor", ZONE)["affinity"].clone()))
        .await;
    pod(&stage, "nowhere", "nowhere", near("nobody", ZONE)).await;
    pod(&stage, "self", "self", with(on(HOST, "b"), "affinity", near("self", ZONE)["affinity"].clone()))
        .await;
    stage.settle("affinity").await;
    let constraint = |app: &str, more: Value| {
        let mut constraint = json!({
            "maxSkew": 1, "topologyKey": ZONE, "whenUnsatisfiable": "DoNotSchedule",
            "labelSelector": {"matchLabels": {"app": app}},
        });
        for (field, value) in more.as_object().unwrap() {
            constraint[field] = value.clone();
        }
        json!([constraint])
    };
    let spread = |spec: Value, constraint: Value| with(spec, "topologySpreadConstraints", constraint);
    let ignore = constraint("anchor", json!({"nodeAffinityPolicy": "Ignore"}));
    pod(&stage, "skewed", "anchor", spread(on(HOST, "a"), ignore.clone())).await;
    pod(&stage, "unlabelled", "anchor", spread(on(HOST, "c"), ignore)).await;
    let domains = || constraint("domains", json!({"minDomains": 3}));
    pod(&stage, "domains-1", "domains", spread(on(HOST, "a"), domains())).await;
    pod(&stage, "domains-2", "domains", spread(on(HOST, "b"), domains())).await;
    stage.settle("spread").await;
    pod(&stage, "domains-3", "domains", spread(json!({}), domains())).await;
    stage.settle("too few domains").await;
    stage.delete("v1/pods/guard").await;
    stage.remove("guard").await;
    stage.settle("without the guard").await;
    end(stage, &[a, b, c], &[]).await;
}

/// Returns a volume for a claim, usable on one host.
fn volume(stage: &Stage, name: &str, claim: Option<&str>, mode: &str, class: &str, host: &str) -> Value {
    let in_host = json!([{"key": HOST, "operator": "In", "values": [host]}]);
    let claim = claim.map(|name| json!({"namespace": stage.namespace(), "name": name}));
    json!({
        "metadata": {"name": format!("{name}-{}", stage.namespace())},
        "spec": {
            "capacity": {"storage": "1Gi"}, "accessModes": [mode], "storageClassName": class, "claimRef": claim,
            "hostPath": {"path": "/data"}, "persistentVolumeReclaimPolicy": "Retain",
            "nodeAffinity": {"required": {"nodeSelectorTerms": [{"matchExpressions": in_host}]}},
        },
    })
}

async fn claim(stage: &Stage, name: &str, class: &str, mode: &str, volume: Option<&str>) {
    let volume = volume.map(|name| format!("{name}-{}", stage.namespace()));
    let spec = json!({
        "accessModes": [mode], "storageClassName": class, "volumeName": volume,
        "resources": {"requests": {"storage": "1Gi"}},
    });
    stage.create(CLAIMS, json!({"metadata": {"name": name}, "spec": spec})).await;
}

#[tokio::test]
async fn pods_wait_for_volumes() {
    let mut stage = Stage::open_with_scheduler("scheduler_volumes", &["v1/pods"]).await;
    let a = stage.node_with("a", json!({HOST: "a"}), &amounts("2", "50")).await;
    let b = stage.node_with("b", json!({HOST: "b"}), &amounts("2", "50")).await;
    let (slow, late) = (format!("slow-{}", stage.namespace()), format!("late-{}", stage.namespace()));
    for (class, mode) in [(&slow, "Immediate"), (&late, "WaitForFirstConsumer")] {
        let provisioner = "kubernetes.io/no-provisioner";
        let class =
            json!({"metadata": {"name": class}, "provisioner": provisioner, "volumeBindingMode": mode});
        stage.create(STORAGE_CLASSES, class).await;
    }
    let (once, once_pod) = ("ReadWriteOnce", "ReadWriteOncePod");
    stage.create(VOLUMES, volume(&stage, "there", Some("there"), once, "", "b")).await;
    stage.create(VOLUMES, volume(&stage, "alone", Some("alone"), once_pod, "", "a")).await;
    claim(&stage, "there", "", once, Some("there")).await;
    claim(&stage, "alone", "", once_pod, Some("alone")).await;
    for name in ["there", "alone"] {
        stage.bound(name).await;
    }
    claim(&stage, "slow", &slow, once, None).await;
    claim(&stage, "late", &late, once, None).await;
    pod(&stage, "absent", "absent", using("absent")).await;
    pod(&stage, "unbound", "unbound", using("slow")).await;
    pod(&stage, "late", "late", using("late")).await;
    pod(&stage, "elsewhere", "elsewhere", with(using("there"), "nodeSelector", json!({HOST: "a"}))).await;
    pod(&stage, "there", "there", using("there")).await;
    pod(&stage, "alone-1", "alone", using("alone")).await;
    stage.settle("placed and waiting").await;
    pod(&stage, "alone-2", "alone", using("alone")).await;
    stage.settle("a volume in use").await;
    stage.create(VOLUMES, volume(&stage, "late", None, once, &late, "b")).await;
    stage.settle("a volume for the first consumer").await;
    let volumes = ["there", "alone", "late"].map(|name| format!("{VOLUMES}/{name}-{}", stage.namespace()));
    let classes = [slow, late].map(|name| format!("{STORAGE_CLASSES}/{name}"));
    end(stage, &[a, b], &[&volumes[..], &classes[..]].concat()).await;
}

#[tokio::test]
async fn important_pods_take_the_place_of_other_pods() {
    let mut stage = Stage::open_with_scheduler("scheduler_preemption", &["v1/pods"]).await;
    let node = stage.node_with("a", json!({HOST: "a"}), &amounts("1", "50")).await;
    let (high, never) = (format!("high-{}", stage.namespace()), format!("never-{}", stage.namespace()));
    for (class, policy) in [(&high, "PreemptLowerPriority"), (&never, "Never")] {
        let class = json!({"metadata": {"name": class}, "value": 1000, "preemptionPolicy": policy});
        stage.create(CLASSES, class).await;
    }
    let cpu = |cpu: &str| requesting(json!({ "cpu": cpu }));
    pod(&stage, "small", "small", cpu("300m")).await;
    pod(&stage, "large", "large", cpu("600m")).await;
    stage.settle("a full node").await;
    pod(&stage, "equal", "equal", cpu("500m")).await;
    pod(&stage, "polite", "polite", with(cpu("500m"), "priorityClassName", json!(never))).await;
    pod(&stage, "huge", "huge", with(cpu("5"), "priorityClassName", json!(high))).await;
    stage.settle("pods that end no other pod").await;
    pod(&stage, "important", "important", with(cpu("600m"), "priorityClassName", json!(high))).await;
    stage.settle("a victim").await;
    stage.remove("large").await;
    stage.settle("the place of the victim").await;
    end(stage, &[node], &[high, never].map(|name| format!("{CLASSES}/{name}"))).await;
}
