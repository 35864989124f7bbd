//! A namespace on a cluster without nodes, for a script.

use std::env;
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use http::{Method, Request};
use k8s_openapi::jiff::Timestamp;
use kube_client::config::{KubeConfigOptions, Kubeconfig};
use kube_client::{Client, Config};
use serde_json::{Value, json};
use tokio::time::{Instant, sleep};
use windlass_controllers::{Controllers, SigningAuthority};
use windlass_test::{RunningManager, TestCluster, eventually, stretched};

use super::metrics_server::MetricsServer;
use super::normal::Names;
use super::recording::{KUBECONFIG, Recording};

/// How long a recorded cluster must not change until a step is done.
const QUIET: Duration = Duration::from_millis(2500);
const POLL: Duration = Duration::from_millis(30);
/// How long a step may take on an idle machine.
pub(super) const LIMIT: Duration = Duration::from_secs(45);
/// As [`LIMIT`], until an object is gone: longer than the quarantine of a node that is missing.
const GONE: Duration = Duration::from_secs(120);

/// A script's view of the cluster.
pub(super) struct Stage {
    client: Client,
    namespace: String,
    recording: Recording,
    names: Names,
    /// The resources that a step shows: as paths below the namespace, `apps/v1/statefulsets`, or as whole
    /// paths. Of a whole path, only objects with the namespace in the name belong to the script.
    shown: Vec<&'static str>,
    cluster: Option<(TestCluster, RunningManager)>,
}

impl Stage {
    /// Opens a namespace for `script`. Each step shows the resources `shown`.
    pub(super) async fn open(script: &str, shown: &[&'static str]) -> Self {
        Self::begin(script, shown, Controllers::without_nodes).await
    }

    /// As [`open`](Self::open), with a scheduler. The nodes of the cluster are the nodes of the script: on a real server, the scripts
    /// with a scheduler run one after another.
    pub(super) async fn open_with_scheduler(script: &str, shown: &[&'static str]) -> Self {
        Self::begin(script, shown, Controllers::without_kubelets).await
    }

    async fn begin(script: &str, shown: &[&'static str], configure: fn(Controllers) -> Controllers) -> Self {
        let (client, cluster) = if let Some(path) = env::var_os(KUBECONFIG) {
            (real(path.as_ref()).await, None)
        } else {
            let cluster = TestCluster::start().await;
            let controllers = Controllers::new(cluster.client()).sign_certificates(authority());
            let manager = configure(controllers).manager();
            let running = cluster.run(manager);
            (cluster.client(), Some((cluster, running)))
        };
        let nanos = SystemTime::now().duration_since(UNIX_EPOCH).map_or(0, |time| time.subsec_nanos());
        let namespace = format!("script-{}-{nanos}", script.replace('_', "-"));
        let stage = Self {
            client,
            names: Names::new(&namespace),
            namespace,
            recording: Recording::open(script),
            shown: shown.to_vec(),
            cluster,
        };
        let body = json!({"metadata": {"name": stage.namespace}});
        stage.send(Method::POST, "/api/v1/namespaces", Some(&body)).await;
        let account = stage.path("v1/serviceaccounts/default");
        eventually(LIMIT, || async { stage.try_get(&account).await.ok_or("no service account") }).await;
        stage
    }

    pub(super) fn namespace(&self) -> &str {
        &self.namespace
    }

    /// Creates a node for this script, with the label `pool: NAMESPACE`. Returns the name.
    pub(super) async fn node(&self, name: &str) -> String {
        self.node_with(name, json!({}), &json!({})).await
    }

    /// As [`node`](Self::node), with more labels and with the amounts of resources that pods may request.
    pub(super) async fn node_with(&self, name: &str, labels: Value, amounts: &Value) -> String {
        let name = format!("{name}-{}", self.namespace);
        let mut metadata = json!({"name": name, "labels": labels});
        metadata["labels"]["pool"] = json!(self.namespace);
        let ready = json!([{"type": "Ready", "status": "True"}]);
        let status = json!({"conditions": ready, "capacity": amounts, "allocatable": amounts});
        let node = json!({"metadata": metadata, "status": status});
        self.send(Method::POST, "/api/v1/nodes", Some(&node)).await;
        let path = format!("/api/v1/nodes/{name}/status");
        self.send(Method::PATCH, &path, Some(&json!({ "status": status }))).await;
        // A new node has a taint until the conditions were seen.
        let taints = json!({"spec": {"taints": null}});
        self.patch_node(&name, taints).await;
        name
    }

    pub(super) async fn patch_node(&self, node: &str, patch: Value) {
        self.send(Method::PATCH, &format!("/api/v1/nodes/{node}"), Some(&patch)).await;
    }

    pub(super) async fn delete_node(&self, node: &str) {
        self.send(Method::DELETE, &format!("/api/v1/nodes/{node}"), Some(&json!({}))).await;
    }

    /// Creates an object in the namespace.
    pub(super) async fn create(&self, resource: &str, object: Value) -> Value {
        self.send(Method::POST, &self.path(resource), Some(&object)).await
    }

    /// Creates an object as another user. The user is in one group besides the groups of all users.
    pub(super) async fn create_as(&self, user: &str, group: &str, resource: &str, object: &Value) {
        let request = Request::post(self.path(resource))
            .header("content-type", "application/json")
            .header("impersonate-user", user)
            .header("impersonate-group", group);
        let created =
            self.client.request::<Value>(request.body(serde_json::to_vec(object).unwrap()).unwrap());
        created.await.unwrap_or_else(|error| panic!("{resource} as {user}: {error}"));
    }

    /// Waits until there is no such object.
    pub(super) async fn gone(&self, resource: &str) {
        let begin = Instant::now();
        while self.try_get(&self.path(resource)).await.is_some() {
            assert!(begin.elapsed() < stretched(GONE), "{resource} is still there");
            sleep(POLL).await;
        }
    }

    /// Changes an object by a merge patch.
    pub(super) async fn patch(&self, resource: &str, patch: Value) -> Value {
        self.send(Method::PATCH, &self.path(resource), Some(&patch)).await
    }

    /// Deletes an object, in the background.
    pub(super) async fn delete(&self, resource: &str) {
        let options = json!({"propagationPolicy": "Background"});
        self.send(Method::DELETE, &self.path(resource), Some(&options)).await;
    }

    /// Returns the objects of a resource, sorted by text.
    pub(super) async fn list(&self, resource: &str) -> Vec<Value> {
        let list = self.send(Method::GET, &self.path(resource), None).await;
        let mut items = list["items"].as_array().cloned().unwrap_or_default();
        items.retain(|item| {
            let name = item["metadata"]["name"].as_str().unwrap_or_default();
            !resource.starts_with('/') || name.contains(&self.namespace)
        });
        items
    }

    /// Returns the names of the pods that neither have ended nor are being deleted, by completion index.
    pub(super) async fn active(&self) -> Vec<String> {
        let mut pods = self.list("v1/pods").await;
        pods.retain(|pod| {
            let ended = matches!(pod["status"]["phase"].as_str(), Some("Succeeded" | "Failed"));
            pod["metadata"]["deletionTimestamp"].is_null() && !ended
        });
        let text = |value: &Value| value.as_str().unwrap_or_default().to_owned();
        let index = "batch.kubernetes.io/job-completion-index";
        pods.sort_by_key(|pod| (text(&pod["metadata"]["labels"][index]), text(&pod["metadata"]["name"])));
        pods.iter().map(|pod| text(&pod["metadata"]["name"])).collect()
    }

    /// Reports a pod as running, ready or not.
    pub(super) async fn run(&self, pod: &str, ready: bool) {
        let now = Timestamp::now().to_string();
        let status = if ready { "True" } else { "False" };
        let condition = json!({"type": "Ready", "status": status, "lastTransitionTime": seconds(&now)});
        self.report(pod, json!({"phase": "Running", "conditions": [condition]})).await;
    }

    /// Reports a pod as ended, with the exit code of the container.
    pub(super) async fn end(&self, pod: &str, exit_code: i32) {
        let now = seconds(&Timestamp::now().to_string());
        let terminated =
            json!({"exitCode": exit_code, "startedAt": now, "finishedAt": now, "reason": "Ended"});
        let phase = if exit_code == 0 { "Succeeded" } else { "Failed" };
        let container = json!({
            "name": "c", "image": "i", "imageID": "", "ready": false, "restartCount": 0,
            "state": {"terminated": terminated},
        });
        self.report(pod, json!({"phase": phase, "containerStatuses": [container]})).await;
    }

    /// Writes the status of a pod, like a kubelet.
    pub(super) async fn report(&self, pod: &str, status: Value) {
        self.patch(&format!("v1/pods/{pod}/status"), json!({ "status": status })).await;
    }

    /// Binds a pod to a node, so that its deletion waits for the kubelet.
    pub(super) async fn bind(&self, pod: &str, node: &str) {
        let binding = json!({"metadata": {"name": pod}, "target": {"kind": "Node", "name": node}});
        self.create(&format!("v1/pods/{pod}/binding"), binding).await;
    }

    /// Starts the metrics API of a recorded server.
    pub(super) async fn metrics_server(&self) -> Option<MetricsServer> {
        if self.cluster.is_some() {
            None
        } else {
            Some(MetricsServer::start(&self.client, &self.namespace).await)
        }
    }

    /// Waits until the namespace has so many active pods.
    pub(super) async fn pods(&self, count: usize) {
        eventually(LIMIT, || async {
            let active = self.active().await.len();
            if active == count { Ok(()) } else { Err(format!("{active} pods of {count}")) }
        })
        .await;
    }

    /// Waits until a condition of an object has a status.
    pub(super) async fn has_condition(&self, resource: &str, kind: &str, status: &str) {
        let path = self.path(resource);
        eventually(LIMIT, || async {
            let object = self.try_get(&path).await.unwrap_or_default();
            let mut conditions = object["status"]["conditions"].as_array().into_iter().flatten();
            let is_there =
                conditions.any(|condition| condition["type"] == kind && condition["status"] == status);
            if is_there { Ok(()) } else { Err(object.to_string()) }
        })
        .await;
    }

    /// Waits until a claim is bound to a volume.
    pub(super) async fn bound(&self, claim: &str) {
        let path = self.path(&format!("v1/persistentvolumeclaims/{claim}"));
        eventually(LIMIT, || async {
            let claim = self.try_get(&path).await.unwrap_or_default();
            if claim["status"]["phase"] == "Bound" { Ok(()) } else { Err(claim.to_string()) }
        })
        .await;
    }

    /// Removes a terminating pod, like a kubelet.
    pub(super) async fn remove(&self, pod: &str) {
        let path = self.path(&format!("v1/pods/{pod}"));
        self.send(Method::DELETE, &path, Some(&json!({"gracePeriodSeconds": 0}))).await;
    }

    /// Waits until a pod is being deleted.
    pub(super) async fn terminating(&self) {
        let begin = Instant::now();
        let leaves = |pod: &Value| !pod["metadata"]["deletionTimestamp"].is_null();
        while !self.list("v1/pods").await.iter().any(leaves) {
            assert!(begin.elapsed() < stretched(LIMIT), "no pod is being deleted");
            sleep(POLL).await;
        }
    }

    /// Waits until the cluster agrees with the recording, or records the quiet cluster.
    pub(super) async fn settle(&mut self, title: &str) {
        if self.recording.records {
            let shown = self.quiet().await;
            self.recording.add(title, &shown);
        } else {
            let expected = self.recording.expect(title);
            let mut shown = String::new();
            self.until(
                title,
                &expected,
                async |stage, last: &mut String| *last = stage.show().await,
                &mut shown,
            )
            .await;
        }
    }

    /// Compares the events of the script, and deletes the namespace.
    pub(super) async fn finish(self) {
        self.finish_with(&[]).await;
    }

    /// As [`finish`](Self::finish), and deletes the objects with these paths, which are not in the namespace.
    pub(super) async fn finish_with(mut self, outside: &[String]) {
        let title = "events";
        if self.recording.records {
            let shown = self.events().await;
            self.recording.add(title, &shown);
        } else {
            let expected = self.recording.expect(title);
            let mut shown = String::new();
            self.until(
                title,
                &expected,
                async |stage, last: &mut String| *last = stage.events().await,
                &mut shown,
            )
            .await;
        }
        self.recording.close();
        let namespace = format!("/api/v1/namespaces/{}", self.namespace);
        for path in outside.iter().chain([&namespace]) {
            self.send(Method::DELETE, path, Some(&json!({}))).await;
        }
    }

    async fn until(
        &mut self,
        title: &str,
        expected: &str,
        look: impl AsyncFn(&mut Self, &mut String),
        shown: &mut String,
    ) {
        let begin = Instant::now();
        loop {
            look(self, shown).await;
            if shown == expected {
                return;
            }
            assert!(begin.elapsed() < stretched(LIMIT), "{title}:\n{}", difference(expected, shown));
            sleep(POLL).await;
        }
    }

    /// Waits until no object has changed for a while.
    async fn quiet(&mut self) -> String {
        let mut shown = self.show().await;
        let mut since = Instant::now();
        while since.elapsed() < QUIET {
            sleep(POLL * 5).await;
            let now = self.show().await;
            if now != shown {
                (shown, since) = (now, Instant::now());
            }
        }
        shown
    }

    async fn show(&mut self) -> String {
        self.learn().await;
        let mut lines = Vec::new();
        for resource in self.shown.clone() {
            let objects = self.list(resource).await;
            objects.iter().for_each(|object| self.names.learn(object));
            let plural = resource.rsplit('/').next().unwrap_or_default();
            let mut of_kind: Vec<String> =
                objects.iter().map(|object| format!("{plural} {}", self.names.line(object))).collect();
            of_kind.sort();
            lines.extend(of_kind);
        }
        lines.into_iter().map(|line| line + "\n").collect()
    }

    /// Learns the names of objects that other objects and events name.
    async fn learn(&mut self) {
        for resource in ["apps/v1/replicasets", "v1/pods"] {
            let objects = self.list(resource).await;
            objects.iter().for_each(|object| self.names.learn(object));
        }
    }

    async fn events(&mut self) -> String {
        self.learn().await;
        let events = self.list("v1/events").await;
        events.iter().for_each(|event| self.names.learn_event(event));
        // Which events the controller of volumes records depends on the time of the controller's passes, and a conflict depends on the time
        // of the writes.
        let compared = |event: &&Value| {
            event["source"]["component"] != "persistentvolume-controller"
                && event["reason"] != "FailedUpdateStatus"
        };
        let mut lines: Vec<String> =
            events.iter().filter(compared).map(|event| self.names.replace(&event_line(event))).collect();
        lines.sort();
        lines.dedup();
        lines.into_iter().map(|line| line + "\n").collect()
    }

    fn path(&self, resource: &str) -> String {
        if resource.starts_with('/') {
            return resource.to_owned();
        }
        if let Some(rest) = resource.strip_prefix("v1/") {
            return format!("/api/v1/namespaces/{}/{rest}", self.namespace);
        }
        let mut parts = resource.splitn(3, '/');
        let mut part = || parts.next().unwrap();
        let (group, version) = (part(), part());
        format!("/apis/{group}/{version}/namespaces/{}/{}", self.namespace, part())
    }

    async fn try_get(&self, path: &str) -> Option<Value> {
        let request = Request::get(path).body(Vec::new()).unwrap();
        self.client.request(request).await.ok()
    }

    async fn send(&self, method: Method, path: &str, body: Option<&Value>) -> Value {
        let kind = if method == Method::PATCH { "application/merge-patch+json" } else { "application/json" };
        let body = body.map(|body| serde_json::to_vec(body).unwrap()).unwrap_or_default();
        let request = Request::builder().method(&method).uri(path).header("content-type", kind);
        let reply = self.client.request(request.body(body).unwrap()).await;
        reply.unwrap_or_else(|error| panic!("{method} {path}: {error}"))
    }
}

/// Creates an object.
pub(super) async fn send(client: &Client, path: &str, object: &Value) {
    let request = Request::post(path).header("content-type", "application/json");
    let created = client.request::<Value>(request.body(serde_json::to_vec(object).unwrap()).unwrap()).await;
    created.unwrap_or_else(|error| panic!("{path}: {error}"));
}

async fn real(kubeconfig: &std::path::Path) -> Client {
    let kubeconfig = Kubeconfig::read_from(kubeconfig).unwrap();
    let config = Config::from_custom_kubeconfig(kubeconfig, &KubeConfigOptions::default()).await.unwrap();
    Client::try_from(config).unwrap()
}

/// Returns a new authority that signs certificates.
fn authority() -> SigningAuthority {
    let key = rcgen::KeyPair::generate().unwrap();
    let mut params = rcgen::CertificateParams::default();
    params.is_ca = rcgen::IsCa::Ca(rcgen::BasicConstraints::Unconstrained);
    let certificate = params.self_signed(&key).unwrap().pem();
    SigningAuthority::from_pem(&certificate, &key.serialize_pem()).unwrap()
}

fn seconds(time: &str) -> String {
    format!("{}Z", &time[..19])
}

fn event_line(event: &Value) -> String {
    let text = |pointer: &str| event.pointer(pointer).and_then(Value::as_str).unwrap_or_default().to_owned();
    let reporter = Some(text("/source/component")).filter(|component| !component.is_empty());
    format!(
        "{} {} {}/{} by {}: {}",
        text("/type"),
        text("/reason"),
        text("/involvedObject/kind"),
        text("/involvedObject/name"),
        reporter.unwrap_or_else(|| text("/reportingComponent")),
        text("/message"),
    )
}

/// Returns the lines that only one text has.
fn difference(expected: &str, shown: &str) -> String {
    let only = |a: &str, b: &str, mark: &str| -> String {
        let lines = a.lines().filter(|line| !b.lines().any(|other| other == *line));
        lines.flat_map(|line| [mark, line, "\n"]).collect()
    };
    only(expected, shown, "- ") + &only(shown, expected, "+ ")
}
