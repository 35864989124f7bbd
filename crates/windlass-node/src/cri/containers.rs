//! The containers that have been started, and their ends.

use std::collections::HashMap;
use std::path::PathBuf;
use std::sync::{Arc, Weak};
use std::time::{Duration, Instant, SystemTime};

use parking_lot::Mutex;
use tokio::sync::{Notify, watch};

use super::client::{CallError, Client, NOT_FOUND};
use super::info;
use super::message::{
    ContainerList, ContainerState, ContainerStatus, ContainerStatusResponse, Empty, Filter, Id, ListRequest,
    StatusRequest,
};
use super::owner::Owner;
use crate::log::{LARGEST, rotate};
use crate::{ContainerId, Exit, RuntimeError, SandboxId};

/// The pause between two looks at the states of containers. The event stream of the CRI is missing in containerd 1.6.
const PAUSE: Duration = Duration::from_millis(200);
/// The pause after a failure of the container runtime.
const LONG_PAUSE: Duration = Duration::from_secs(2);
/// The pause between two looks at the sizes of logs.
const LOGS: Duration = Duration::from_secs(10);

/// A container that has been started.
#[derive(Debug)]
pub(super) struct Container {
    pub(super) id: ContainerId,
    pub(super) sandbox: SandboxId,
    pub(super) log: PathBuf,
    pub(super) terminal: bool,
    pub(super) stdin: bool,
    pub(super) stop_signal: i32,
    exit: watch::Sender<Option<Exit>>,
}

/// The settings of a container that matter after its start.
pub(super) struct Started {
    pub(super) id: ContainerId,
    pub(super) sandbox: SandboxId,
    pub(super) log: PathBuf,
    pub(super) terminal: bool,
    pub(super) stdin: bool,
    pub(super) stop_signal: i32,
}

impl Container {
    pub(super) fn has_ended(&self) -> bool {
        self.exit.borrow().is_some()
    }

    /// Waits for the end.
    pub(super) fn wait(&self) -> impl Future<Output = Result<Exit, RuntimeError>> + Send + use<> {
        let mut exit = self.exit.subscribe();
        async move {
            let found = exit.wait_for(Option::is_some).await.ok().and_then(|exit| exit.clone());
            found.ok_or_else(|| RuntimeError::NotFound("the end of the container".into()))
        }
    }

    fn end(&self, exit: Exit) {
        self.exit.send_if_modified(|known| {
            let is_first = known.is_none();
            if is_first {
                *known = Some(exit);
            }
            is_first
        });
    }
}

/// The containers of a runtime.
pub(super) struct Containers {
    client: Arc<Client>,
    owner: Owner,
    known: Mutex<HashMap<ContainerId, Arc<Container>>>,
    added: Notify,
}

impl Containers {
    /// Creates an empty set. A task watches the containers until the set is dropped.
    pub(super) fn new(client: Arc<Client>, owner: Owner) -> Arc<Self> {
        let containers = Arc::new(Self { client, owner, known: Mutex::default(), added: Notify::new() });
        tokio::spawn(watch_ends(Arc::downgrade(&containers)));
        containers
    }

    pub(super) fn get(&self, id: &ContainerId) -> Result<Arc<Container>, RuntimeError> {
        let found = self.known.lock().get(id).cloned();
        found.ok_or_else(|| RuntimeError::NotFound(format!("container {}", id.0)))
    }

    pub(super) fn add(&self, started: Started) {
        let Started { id, sandbox, log, terminal, stdin, stop_signal } = started;
        let exit = watch::Sender::new(None);
        let container = Container { id: id.clone(), sandbox, log, terminal, stdin, stop_signal, exit };
        self.known.lock().insert(id, Arc::new(container));
        self.added.notify_one();
    }

    pub(super) fn forget(&self, id: &ContainerId) {
        self.known.lock().remove(id);
    }

    /// Forgets the containers of a sandbox. A container that is not known to have ended was killed with its sandbox.
    pub(super) fn forget_sandbox(&self, sandbox: &SandboxId) {
        let forgotten: Vec<_> =
            self.known.lock().extract_if(|_, container| container.sandbox == *sandbox).collect();
        forgotten.iter().for_each(|(_, container)| container.end(killed()));
    }

    /// Returns the PID of the first process of a container, as the container runtime has the PID now.
    pub(super) async fn pid(&self, id: &ContainerId) -> Result<Option<u32>, CallError> {
        let response = self.status(id, true).await?;
        let runs = response.status.is_some_and(|status| status.state == ContainerState::Running as i32);
        Ok(info::pid(&response.info).filter(|_| runs))
    }

    async fn status(&self, id: &ContainerId, verbose: bool) -> Result<ContainerStatusResponse, CallError> {
        self.client.runtime("ContainerStatus", &StatusRequest { id: id.0.clone(), verbose }).await
    }

    fn running(&self) -> Vec<Arc<Container>> {
        self.known.lock().values().filter(|container| !container.has_ended()).cloned().collect()
    }

    /// Looks at the states of all running containers.
    pub(super) async fn look(&self) -> Result<(), CallError> {
        // A container that starts during the call is not missing.
        let running = self.running();
        if running.is_empty() {
            return Ok(());
        }
        let filter = Filter { container_labels: self.owner.labels(), ..Filter::default() };
        let list: ContainerList =
            self.client.runtime("ListContainers", &ListRequest { filter: Some(filter) }).await?;
        let states: HashMap<_, _> =
            list.containers.into_iter().map(|listed| (listed.id, listed.state)).collect();
        for container in running {
            match states.get(&container.id.0) {
                // Another program has removed the container.
                None => container.end(killed()),
                Some(state) if *state == ContainerState::Exited as i32 => self.read_end(&container).await?,
                Some(_) => {}
            }
        }
        Ok(())
    }

    async fn read_end(&self, container: &Container) -> Result<(), CallError> {
        match self.status(&container.id, false).await {
            Ok(ContainerStatusResponse { status: Some(status), .. }) => container.end(exit(&status)),
            Ok(_) => container.end(killed()),
            Err(error) if error.code == NOT_FOUND => container.end(killed()),
            Err(error) => return Err(error),
        }
        Ok(())
    }

    /// Renames the logs that are too long, and lets the container runtime write new files.
    async fn rotate_logs(&self) {
        for container in self.running() {
            let log = container.log.clone();
            let rotated = tokio::task::spawn_blocking(move || {
                let is_long = std::fs::metadata(&log).is_ok_and(|file| file.len() > LARGEST);
                if is_long { rotate(&log).map(|()| true) } else { Ok(false) }
            });
            match rotated.await.map_err(std::io::Error::other).flatten() {
                Ok(false) => {}
                Ok(true) => {
                    let request = Id { id: container.id.0.clone() };
                    let opened = self.client.runtime::<_, Empty>("ReopenContainerLog", &request).await;
                    if let Err(error) = opened
                        && !container.has_ended()
                    {
                        tracing::warn!(%error, container = container.id.0, "a log was not rotated");
                    }
                }
                Err(error) => tracing::warn!(%error, container = container.id.0, "a log was not rotated"),
            }
        }
    }
}

/// Looks at the containers until the set is dropped.
async fn watch_ends(containers: Weak<Containers>) {
    let mut pause = PAUSE;
    let mut rotated = Instant::now();
    while let Some(containers) = containers.upgrade() {
        if containers.running().is_empty() {
            let wait = tokio::time::timeout(LONG_PAUSE, containers.added.notified());
            let _ = wait.await;
        }
        match containers.look().await {
            Ok(()) => pause = PAUSE,
            Err(error) if pause == PAUSE => {
                pause = LONG_PAUSE;
                tracing::warn!(%error, "the states of containers are unknown");
            }
            Err(_) => {}
        }
        if rotated.elapsed() >= LOGS {
            containers.rotate_logs().await;
            rotated = Instant::now();
        }
        drop(containers);
        tokio::time::sleep(pause).await;
    }
}

/// Makes the exit of a container. The CRI has no signal: a process that ended by a signal has the code 128 + the signal.
fn exit(status: &ContainerStatus) -> Exit {
    Exit {
        code: status.exit_code,
        signal: None,
        out_of_memory: status.reason == "OOMKilled",
        started_at: time(status.started_at),
        finished_at: time(status.finished_at),
    }
}

/// Returns the exit of a container that was removed before its exit was read.
fn killed() -> Exit {
    let now = SystemTime::now();
    Exit { code: 137, signal: Some(9), out_of_memory: false, started_at: now, finished_at: now }
}

/// Reads nanoseconds since 1970. A time before 1970 is 1970.
fn time(nanoseconds: i64) -> SystemTime {
    SystemTime::UNIX_EPOCH + Duration::from_nanos(u64::try_from(nanoseconds).unwrap_or(0))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_exit_is_that_of_the_status() {
        let status = ContainerStatus {
            exit_code: 137,
            reason: "OOMKilled".into(),
            started_at: 1_000_000_000,
            finished_at: 3_500_000_000,
            ..ContainerStatus::default()
        };
        let exit = exit(&status);
        assert_eq!((exit.code, exit.signal, exit.out_of_memory), (137, None, true));
        let took = exit.finished_at.duration_since(exit.started_at).unwrap();
        assert_eq!(took, Duration::from_millis(2500));
        assert_eq!(time(-1), SystemTime::UNIX_EPOCH);
    }
}
