//! Performs the actions of the state machine, each in a task of its own, and collects the observations.

use std::collections::BTreeMap;
use std::fmt::Debug;
use std::future::Future;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use k8s_openapi::NamespaceResourceScope;
use k8s_openapi::api::core::v1::{Container, Pod, PodSpec, Secret, Service};
use k8s_openapi::jiff::Timestamp;
use kube_client::Client;
use kube_client::api::Api;
use kube_core::{Resource, ResourceExt};
use serde::de::DeserializeOwned;
use tokio::task::spawn_blocking;
use tokio::time::timeout;
use windlass_node::probe::CheckResult;
use windlass_node::{ContainerId, Image, PullError, RuntimeError, SandboxId};
use windlass_runtime::env::Env;
use windlass_runtime::source::EventSender;
use windlass_runtime::{Error, ObjectKey};

use super::action::{Action, FoundImage, Observation, StartError};
use super::check::Target;
use super::message::termination_message;
use super::probe::ProbeKind;
use super::roles::find_container;
use super::token::Tokens;
use crate::kubelet::files;
use crate::kubelet::lifecycle::PodAddresses;
use crate::kubelet::resolve::{
    MountError, Objects, References, Scope, VolumeContent, content, credentials, file_group,
};
use crate::kubelet::running_pods::RunningPods;
use crate::kubelet::services::ServiceProxy;

/// The longest time that the runtime may take to create a sandbox or to start a container.
const RUNTIME_LIMIT: Duration = Duration::from_mins(2);
/// How often the removal of the sandbox of a pod that is gone is tried, and the pause between.
const REMOVALS: u32 = 5;
const REMOVE_AGAIN: Duration = Duration::from_secs(1);

/// Performs actions. Shared by all pods.
pub(crate) struct Worker {
    pub pods: RunningPods,
    pub services: Arc<ServiceProxy>,
    /// Wakes the reconciler of a pod.
    wake: EventSender<ObjectKey>,
    /// The observations of each pod, by uid.
    inbox: Mutex<BTreeMap<String, Vec<Observation>>>,
    tokens: Tokens,
    /// True if every image may be pulled.
    may_pull_all: bool,
}

/// A pod as it was when an action was asked for.
pub(crate) struct Job {
    pub key: ObjectKey,
    pub uid: String,
    pub pod: Arc<Pod>,
    pub spec: PodSpec,
    pub addresses: PodAddresses,
    pub client: Client,
    pub env: Env,
    pub services: Vec<Arc<Service>>,
}

impl Job {
    pub(super) fn sandbox(&self) -> SandboxId {
        SandboxId(self.uid.clone())
    }

    pub(super) fn namespace(&self) -> &str {
        self.key.namespace().unwrap_or_default()
    }

    /// Returns `NAME_NAMESPACE(UID)`.
    pub(super) fn title(&self) -> String {
        format!("{}_{}({})", self.key.name(), self.namespace(), self.uid)
    }

    pub(super) fn scope<'a>(&'a self, objects: &'a Objects) -> Scope<'a> {
        Scope { pod: &self.pod, spec: &self.spec, addresses: &self.addresses, objects }
    }

    fn address(&self) -> &str {
        let own = self.addresses.pod_ip.as_deref().filter(|_| self.spec.host_network != Some(true));
        own.unwrap_or(&self.addresses.host_ip)
    }

    /// Reads the objects that are referred to. Objects that do not exist are left out.
    pub(super) async fn read(&self, references: References) -> Result<Objects, String> {
        let mut objects = Objects { services: self.services.clone(), ..Objects::default() };
        for name in references.config_maps {
            if let Some(map) = self.read_one(&name, "configmap").await? {
                objects.config_maps.insert(name, map);
            }
        }
        for name in references.secrets {
            if let Some(secret) = self.read_one::<Secret>(&name, "secret").await? {
                objects.secrets.insert(name, secret);
            }
        }
        Ok(objects)
    }

    async fn read_one<K>(&self, name: &str, kind: &str) -> Result<Option<K>, String>
    where
        K: Resource<DynamicType = (), Scope = NamespaceResourceScope> + DeserializeOwned + Clone + Debug,
    {
        let api: Api<K> = Api::namespaced(self.client.clone(), self.namespace());
        api.get_opt(name).await.map_err(|error| format!("failed to get {kind} {name:?}: {error}"))
    }
}

impl Worker {
    pub(crate) fn new(
        pods: RunningPods,
        services: Arc<ServiceProxy>,
        wake: EventSender<ObjectKey>,
        may_pull_all: bool,
    ) -> Self {
        let (inbox, tokens) = (Mutex::default(), Tokens::default());
        Self { pods, services, wake, inbox, tokens, may_pull_all }
    }

    fn inbox(&self) -> MutexGuard<'_, BTreeMap<String, Vec<Observation>>> {
        self.inbox.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Returns the observations of a pod since the last call.
    pub(crate) fn take(&self, uid: &str) -> Vec<Observation> {
        self.inbox().get_mut(uid).map(std::mem::take).unwrap_or_default()
    }

    /// Adds an observation without waking the reconciler. The observations of unknown pods are dropped.
    pub(crate) fn put(&self, uid: &str, observation: Observation) {
        if self.pods.contains(uid) {
            self.inbox().entry(uid.to_owned()).or_default().push(observation);
        }
    }

    async fn report(&self, job: &Job, observation: Observation) {
        self.put(&job.uid, observation);
        // The controller has ended: nothing is left to do.
        let _ = self.wake.send(job.key.clone()).await;
    }

    /// Forgets a pod that is gone, ends the pod's programs, and removes the pod's files.
    pub(crate) fn discard(self: &Arc<Self>, uid: &str) {
        self.inbox().remove(uid);
        let Some(key) = self.pods.remove(uid) else { return };
        let (worker, uid) = (Arc::clone(self), uid.to_owned());
        tokio::spawn(async move { worker.clear(&key, &uid).await });
    }

    /// Removes the tokens, the sandbox, the files and the logs of a pod that is gone.
    async fn clear(&self, key: &ObjectKey, uid: &str) {
        self.tokens.forget(uid);
        for attempt in 1..=REMOVALS {
            match self.remove(uid).await {
                Ok(()) => break,
                Err(error) => tracing::warn!(pod = uid, %error, attempt, "a sandbox was not removed"),
            }
            tokio::time::sleep(REMOVE_AGAIN).await;
        }
        // Secrets go, also if the sandbox stays.
        let _ = tokio::fs::remove_dir_all(self.pods.pod_directory(uid)).await;
        let logs = self.pods.log_directory(key, uid);
        let _ = tokio::fs::remove_dir_all(logs).await;
    }

    /// Performs an action in the background.
    pub(crate) fn spawn(self: &Arc<Self>, job: Arc<Job>, action: Action) {
        let worker = Arc::clone(self);
        tokio::spawn(async move { worker.perform(job, action).await });
    }

    async fn perform(self: Arc<Self>, job: Arc<Job>, action: Action) {
        let runtime = self.pods.runtime();
        let makes = matches!(action, Action::PrepareVolumes | Action::CreateSandbox | Action::Start { .. });
        let observation = match action {
            Action::PrepareVolumes => Observation::Volumes(self.prepare_volumes(&job).await),
            Action::CreateSandbox => Observation::Sandbox(self.create_sandbox(&job).await),
            Action::RemoveSandbox => {
                let removed = self.remove(&job.uid).await;
                Observation::SandboxRemoved(removed.map_err(|error| error.to_string()))
            }
            Action::FindImage { container } => {
                let outcome = self.find_image(&job, &container).await;
                Observation::Found { container, outcome }
            }
            Action::Pull { container } => {
                let begun = Instant::now();
                let outcome = self.pull(&job, &container).await;
                Observation::Pulled { container, outcome, took: begun.elapsed() }
            }
            Action::Start { container, attempt, image } => {
                let outcome = self.start(&job, &container, attempt, image).await;
                match outcome {
                    Ok(Some(id)) => {
                        self.watch(&job, &container, attempt, id.clone());
                        Observation::Started { container, outcome: Ok(id) }
                    }
                    Ok(None) => Observation::SandboxEnded { container },
                    Err(error) => Observation::Started { container, outcome: Err(error) },
                }
            }
            Action::PostStart { container, id } => {
                let outcome = self.hook(&job, &container, &id, false).await;
                Observation::PostStarted { id, outcome }
            }
            Action::PreStop { container, id } => {
                let outcome = self.hook(&job, &container, &id, true).await;
                Observation::PreStopped { id, outcome }
            }
            Action::Check { container, id, kind } => {
                let outcome = self.check(&job, &container, &id, kind).await;
                Observation::Checked { id, kind, outcome }
            }
            Action::Signal { id, signal } => {
                let signal = signal.unwrap_or_else(|| runtime.stop_signal(&id));
                if let Err(error) = runtime.signal(&id, signal).await {
                    tracing::warn!(pod = job.title(), %error, signal, "a container was not signalled");
                }
                return;
            }
            Action::Forget { id } => {
                if let Err(error) = runtime.remove(&id).await {
                    tracing::debug!(pod = job.title(), %error, "a container was not removed");
                }
                return;
            }
        };
        // A pod that was discarded during the action has been removed before the end of the action.
        if makes && !self.pods.contains(&job.uid) {
            self.clear(&job.key, &job.uid).await;
        }
        self.report(&job, observation).await;
    }

    /// Removes the sandbox of a pod, then the pod's files except logs.
    async fn remove(&self, uid: &str) -> Result<(), RuntimeError> {
        self.pods.set_sandbox(uid, false);
        self.pods.runtime().remove_sandbox(&SandboxId(uid.to_owned())).await?;
        let _ = tokio::fs::remove_dir_all(self.pods.pod_directory(uid)).await;
        Ok(())
    }

    /// Writes the files of all volumes. Returns when a token has to be renewed.
    async fn prepare_volumes(&self, job: &Job) -> Result<Option<Timestamp>, MountError> {
        let volumes = job.spec.volumes.clone().unwrap_or_default();
        let first = volumes.first().map(|volume| volume.name.clone()).unwrap_or_default();
        let all = |message| MountError { volume: first, message };
        let mut objects = match job.read(References::of_volumes(&job.spec)).await {
            Ok(objects) => objects,
            Err(message) => return Err(all(message)),
        };
        let renew_at = match self.tokens.issue(job, &mut objects).await {
            Ok(renew_at) => renew_at,
            Err(message) => return Err(all(message)),
        };
        let directory = self.pods.pod_directory(&job.uid).join("volumes");
        let group = file_group(&job.spec);
        let mut contents = Vec::new();
        for volume in volumes {
            let failed = |message| MountError { volume: volume.name.clone(), message };
            let content = content(job.scope(&objects), &volume).map_err(failed)?;
            contents.push((volume.name, content));
        }
        let top = self.pods.directory().to_owned();
        let written = spawn_blocking(move || -> Result<(), MountError> {
            for (volume, content) in contents {
                let path = directory.join(&volume);
                let written = files::create_private_directory(&top).and_then(|()| match &content {
                    VolumeContent::Empty if path.exists() => Ok(()),
                    VolumeContent::Empty => files::create_empty_directory(&path, group),
                    VolumeContent::Files(payload) => payload.write(&path, group).map(drop),
                });
                let message = |error| format!("failed to write the files of the volume: {error}");
                written.map_err(|error| MountError { volume, message: message(error) })?;
            }
            Ok(())
        });
        let lost = |error: tokio::task::JoinError| {
            Err(MountError { volume: String::new(), message: error.to_string() })
        };
        written.await.unwrap_or_else(lost)?;
        Ok(renew_at)
    }

    async fn create_sandbox(&self, job: &Job) -> Result<(), String> {
        let sandbox = job.sandbox();
        let spec = super::spec::sandbox(job)?;
        if matches!(self.pods.sandbox(&job.uid), Some(Ok(_))) {
            let removed = self.pods.runtime().remove_sandbox(&sandbox).await;
            removed.map_err(|error| format!("remove the sandbox that has ended: {error}"))?;
            self.pods.set_sandbox(&job.uid, false);
        }
        within(self.pods.runtime().create_sandbox(spec)).await.map_err(|error| error.to_string())?;
        self.pods.set_sandbox(&job.uid, true);
        if job.spec.host_network == Some(true) {
            return Ok(());
        }
        let opened = self.services.open().await;
        if opened.is_err() {
            self.pods.set_sandbox(&job.uid, false);
            let _ = self.pods.runtime().remove_sandbox(&sandbox).await;
        }
        opened.map_err(|error| error.to_string())
    }

    async fn find_image(&self, job: &Job, container: &str) -> Result<FoundImage, PullError> {
        let image = image_of(job, container);
        let runtime = self.pods.runtime();
        let found = runtime.image(&image).await;
        let image_found = found.map_err(|error| PullError::Storage(error.to_string()))?;
        let may_pull = self.may_pull_all || image_found.is_none() || runtime.may_pull(&image);
        Ok(FoundImage { image: image_found, may_pull })
    }

    async fn pull(&self, job: &Job, container: &str) -> Result<Image, PullError> {
        let image = image_of(job, container);
        let secrets = job.spec.image_pull_secrets.iter().flatten().map(|secret| secret.name.clone());
        let references = References { secrets: secrets.collect(), ..References::default() };
        let objects = job.read(references).await.map_err(PullError::Unavailable)?;
        let credentials = credentials(&job.spec, &image, &objects);
        self.pods.runtime().pull(&image, &credentials).await
    }

    /// Starts a container. Returns `None` if the sandbox has ended by itself.
    async fn start(
        &self,
        job: &Job,
        name: &str,
        attempt: u32,
        image: Image,
    ) -> Result<Option<ContainerId>, StartError> {
        let config = |message| StartError { reason: "CreateContainerConfigError", message };
        let missing = || config(format!("the pod has no container {name:?}"));
        let container = find_container(&job.spec, name).ok_or_else(missing)?;
        let objects = job.read(References::of_environment(&container)).await.map_err(config)?;
        let directory = self.pods.pod_directory(&job.uid);
        let log = self.pods.log_file(&job.key, &job.uid, name, attempt);
        let spec = super::spec::container(job, &objects, &container, attempt, image, &directory, log)?;
        match within(self.pods.runtime().start(&job.sandbox(), spec)).await {
            Ok(id) => {
                self.pods.set_started(&job.uid, name, id.clone(), attempt);
                if let Some(old) = attempt.checked_sub(2) {
                    self.remove_files(job, name, old).await;
                }
                Ok(Some(id))
            }
            Err(RuntimeError::SandboxEnded(_)) => Ok(None),
            Err(error) => Err(start_error(&error)),
        }
    }

    /// Removes the log and the termination message of a start that no client can ask for any more.
    async fn remove_files(&self, job: &Job, container: &str, attempt: u32) {
        let log = self.pods.log_file(&job.key, &job.uid, container, attempt);
        let message = super::spec::message_file(&self.pods.pod_directory(&job.uid), container, attempt);
        let removal = move || {
            let _ = windlass_node::log::remove(&log);
            let _ = std::fs::remove_file(message);
        };
        let _ = spawn_blocking(removal).await;
    }

    /// Waits for the end of a container in the background.
    fn watch(self: &Arc<Self>, job: &Arc<Job>, container: &str, attempt: u32, id: ContainerId) {
        let (worker, job, name) = (Arc::clone(self), Arc::clone(job), container.to_owned());
        tokio::spawn(async move {
            let exit = worker.pods.runtime().wait(&id).await.unwrap_or_else(|error| {
                tracing::warn!(pod = job.title(), container = name, %error, "the end of a container is unknown");
                super::spec::lost()
            });
            worker.pods.set_ended(&job.uid, &id);
            let file = super::spec::message_file(&worker.pods.pod_directory(&job.uid), &name, attempt);
            let log = worker.pods.log_file(&job.key, &job.uid, &name, attempt);
            let policy = find_container(&job.spec, &name).and_then(|found| found.termination_message_policy);
            let falls_back = policy.as_deref() == Some("FallbackToLogsOnError") && exit.code != 0;
            let read = move || termination_message(&file, falls_back.then_some(log.as_path()));
            let message = spawn_blocking(read).await.unwrap_or_default();
            worker.report(&job, Observation::Exited { id, exit, message }).await;
        });
    }

    async fn hook(&self, job: &Job, name: &str, id: &ContainerId, before_stop: bool) -> Result<(), String> {
        let Some(container) = find_container(&job.spec, name) else { return Ok(()) };
        let lifecycle = container.lifecycle.clone().unwrap_or_default();
        let hook = if before_stop { lifecycle.pre_stop } else { lifecycle.post_start };
        let Some(hook) = hook else { return Ok(()) };
        self.target(job, &container, id, &job.sandbox()).hook(&hook).await
    }

    async fn check(&self, job: &Job, name: &str, id: &ContainerId, kind: ProbeKind) -> CheckResult {
        let Some(container) = find_container(&job.spec, name) else { return CheckResult::Success };
        let Some(probe) = kind.of(&container) else { return CheckResult::Success };
        self.target(job, &container, id, &job.sandbox()).probe(probe).await
    }

    fn target<'a>(
        &'a self,
        job: &'a Job,
        container: &'a Container,
        id: &'a ContainerId,
        sandbox: &'a SandboxId,
    ) -> Target<'a> {
        Target { runtime: &**self.pods.runtime(), sandbox, id, container, address: job.address() }
    }
}

fn image_of(job: &Job, container: &str) -> String {
    find_container(&job.spec, container).and_then(|container| container.image).unwrap_or_default()
}

/// Returns the failure of a start, with the reason that a kubelet shows.
fn start_error(error: &RuntimeError) -> StartError {
    let reason = match error {
        RuntimeError::Config(_) => "CreateContainerConfigError",
        RuntimeError::Start(_) => "RunContainerError",
        _ => "CreateContainerError",
    };
    StartError { reason, message: error.to_string() }
}

async fn within<T>(work: impl Future<Output = Result<T, RuntimeError>>) -> Result<T, RuntimeError> {
    let late = || RuntimeError::Unsupported(format!("the runtime has not answered within {RUNTIME_LIMIT:?}"));
    timeout(RUNTIME_LIMIT, work).await.unwrap_or_else(|_| Err(late()))
}

/// Returns the text of an error of the API server.
pub(super) fn text(error: kube_client::Error) -> String {
    Error::from(error).to_string()
}

/// Returns the name of the service account of a pod.
pub(super) fn account(job: &Job) -> String {
    let account = job.spec.service_account_name.clone().filter(|name| !name.is_empty());
    account.unwrap_or_else(|| "default".to_owned())
}

/// Returns the name of a pod.
pub(super) fn name(job: &Job) -> String {
    job.pod.name_any()
}
