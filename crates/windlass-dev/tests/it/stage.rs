//! A control plane with a scripted runtime, and functions that wait for objects.

use std::fmt::Debug;
use std::future::Future;
use std::sync::Arc;
use std::time::{Duration, Instant};

use k8s_openapi::NamespaceResourceScope;
use k8s_openapi::api::core::v1::{ContainerStatus, Event, Pod};
use kube_client::Client;
use kube_client::api::{Api, ListParams, PostParams};
use kube_core::Resource;
use serde::Serialize;
use serde::de::DeserializeOwned;
use serde_json::{Value, json};
use tempfile::TempDir;
use windlass_controllers::{PodMode, RunningPods};
use windlass_dev::{ControlPlane, PodRunner};
use windlass_patience::stretched;

use crate::fake_runtime::FakeRuntime;

pub(crate) const IMAGE: &str = "app:v1";

pub(crate) struct Stage {
    pub(crate) runtime: Arc<FakeRuntime>,
    pub(crate) pods: RunningPods,
    pub(crate) plane: ControlPlane,
    pub(crate) client: Client,
    _directory: TempDir,
}

impl Stage {
    pub(crate) async fn new(mode: PodMode) -> Self {
        Self::with_host_ports(mode, Vec::new()).await
    }

    pub(crate) async fn with_host_ports(mode: PodMode, host_ports: Vec<u16>) -> Self {
        let directory = tempfile::tempdir().unwrap();
        let runtime = FakeRuntime::new(&[IMAGE]);
        let pods = RunningPods::new(Arc::clone(&runtime) as Arc<_>, directory.path().join("node"));
        let runner = PodRunner { pods: pods.clone(), mode, host_ports };
        let mut plane = ControlPlane::start_with_pods(0, runner).await.unwrap();
        plane.start_controllers();
        plane.wait_until_ready().await.unwrap();
        let client = plane.client();
        Self { runtime, pods, plane, client, _directory: directory }
    }

    pub(crate) fn api<K>(&self) -> Api<K>
    where
        K: Resource<DynamicType = (), Scope = NamespaceResourceScope>,
    {
        Api::namespaced(self.client.clone(), "default")
    }

    pub(crate) async fn create<K>(&self, object: Value) -> K
    where
        K: Resource<DynamicType = (), Scope = NamespaceResourceScope>
            + Serialize
            + DeserializeOwned
            + Clone
            + Debug,
    {
        let object: K = serde_json::from_value(object).unwrap();
        self.api::<K>().create(&PostParams::default(), &object).await.unwrap()
    }

    /// Waits until the pod satisfies the condition.
    pub(crate) async fn becomes(&self, name: &str, is: impl Fn(&Pod) -> bool) -> Pod {
        eventually(|| async {
            let pod = self.api::<Pod>().get(name).await.map_err(|error| error.to_string())?;
            if is(&pod) { Ok(pod) } else { Err(serde_json::to_string(&pod.status).unwrap()) }
        })
        .await
    }

    /// Waits until the pod is gone.
    pub(crate) async fn gone(&self, name: &str) {
        eventually(|| async {
            let pod = self.api::<Pod>().get_opt(name).await.map_err(|error| error.to_string())?;
            pod.map_or(Ok(()), |pod| Err(serde_json::to_string(&pod).unwrap()))
        })
        .await;
    }

    /// Waits for an Event about a pod with this reason, and returns the message.
    pub(crate) async fn event(&self, pod: &str, reason: &str) -> String {
        eventually(|| async {
            let all =
                self.api::<Event>().list(&ListParams::default()).await.map_err(|error| error.to_string())?;
            let said: Vec<(Option<String>, Option<String>)> = all
                .items
                .into_iter()
                .filter(|event| event.involved_object.name.as_deref() == Some(pod))
                .map(|event| (event.reason, event.message))
                .collect();
            let found = said.iter().find(|(known, _)| known.as_deref() == Some(reason));
            found.and_then(|(_, message)| message.clone()).ok_or_else(|| format!("{said:?}"))
        })
        .await
    }
}

pub(crate) fn pod(name: &str, container: &Value) -> Value {
    let mut all = json!({"name": "c", "image": IMAGE});
    for (key, value) in container.as_object().unwrap() {
        all[key] = value.clone();
    }
    json!({"metadata": {"name": name}, "spec": {"containers": [all]}})
}

pub(crate) fn phase(pod: &Pod) -> &str {
    pod.status.as_ref().and_then(|status| status.phase.as_deref()).unwrap_or_default()
}

pub(crate) fn status(pod: &Pod) -> Option<ContainerStatus> {
    pod.status.as_ref()?.container_statuses.as_ref()?.first().cloned()
}

pub(crate) fn waiting(pod: &Pod) -> Option<String> {
    status(pod)?.state?.waiting?.reason
}

pub(crate) fn is_ready(pod: &Pod) -> bool {
    let conditions = pod.status.as_ref().and_then(|status| status.conditions.as_ref());
    conditions.into_iter().flatten().any(|condition| condition.type_ == "Ready" && condition.status == "True")
}

/// Repeats until there is an answer, for at most 30 s.
pub(crate) async fn eventually<T, F>(attempt: impl Fn() -> F) -> T
where
    F: Future<Output = Result<T, String>>,
{
    let begun = Instant::now();
    let limit = stretched(Duration::from_secs(30));
    loop {
        match attempt().await {
            Ok(answer) => return answer,
            Err(last) => assert!(begun.elapsed() < limit, "not within {limit:?}: {last}"),
        }
        tokio::time::sleep(Duration::from_millis(5)).await;
    }
}
