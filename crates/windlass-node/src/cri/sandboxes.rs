//! The sandboxes in the container runtime, and their removal.

use std::collections::{BTreeMap, HashMap};
use std::net::IpAddr;
use std::path::PathBuf;
use std::sync::Arc;

use futures::{StreamExt, stream};
use parking_lot::Mutex;

use super::client::{CallError, Client, NOT_FOUND};
use super::info;
use super::message::{
    Empty, Filter, Id, ListRequest, ListedSandbox, RunSandboxRequest, SandboxConfig, SandboxList,
    SandboxStatusResponse, StatusRequest,
};
use super::network::{Network, PodNetwork};
use super::owner::{self, Owner};
use super::request;
use crate::helper::network::Attachment;
use crate::namespaces::{check_id, hosts, range};
use crate::{RuntimeError, SandboxId, SandboxSpec};

/// The label with the uid of the pod.
const POD: &str = "windlass.dev/pod";

/// The sandboxes that are removed at the same time.
const AT_ONCE: usize = 8;

/// A sandbox of the container runtime.
#[derive(Debug)]
pub(super) struct Sandbox {
    /// The ID in the container runtime.
    pub(super) id: String,
    pub(super) config: SandboxConfig,
    pub(super) spec: SandboxSpec,
    pub(super) network: Network,
    /// The node's side of a network of its own.
    attachment: Option<Attachment>,
    /// The file for `/etc/hosts`.
    pub(super) hosts: PathBuf,
}

/// The sandboxes of a runtime.
pub(super) struct Sandboxes {
    client: Arc<Client>,
    owner: Owner,
    /// A directory for the files of sandboxes.
    directory: PathBuf,
    pods: PodNetwork,
    known: Mutex<HashMap<SandboxId, Arc<Sandbox>>>,
}

impl Sandboxes {
    pub(super) fn new(client: Arc<Client>, owner: Owner, directory: PathBuf, pods: PodNetwork) -> Self {
        Self { client, owner, directory, pods, known: Mutex::default() }
    }

    /// Returns the network that all sandboxes share.
    pub(super) fn node(&self) -> Network {
        self.pods.node()
    }

    pub(super) fn get(&self, id: &SandboxId) -> Result<Arc<Sandbox>, RuntimeError> {
        let found = self.known.lock().get(id).cloned();
        found.ok_or_else(|| RuntimeError::NotFound(format!("sandbox {}", id.0)))
    }

    /// Creates a sandbox, and gives the sandbox its address in the cluster.
    pub(super) async fn create(&self, spec: SandboxSpec) -> Result<(), RuntimeError> {
        check_id(&spec.id)?;
        let ranges = spec.ranges.iter().map(|text| range(text)).collect::<Result<Vec<_>, _>>()?;
        if self.known.lock().contains_key(&spec.id) {
            return Err(RuntimeError::Start(format!("sandbox {} exists", spec.id.0)));
        }
        // An earlier request that was given up may have succeeded.
        self.stop_and_remove(self.list(self.labels(&spec.id)).await?).await?;
        let file = self.directory.join(format!("{}.hosts", spec.id.0));
        std::fs::create_dir_all(&self.directory)
            .and_then(|()| std::fs::write(&file, hosts(&spec)))
            .map_err(|error| RuntimeError::Io { doing: format!("write {}", file.display()), error })?;
        let config = request::sandbox(&spec, self.labels(&spec.id));
        let request = RunSandboxRequest { config: Some(config.clone()) };
        let created: Id = self.client.runtime("RunPodSandbox", &request).await?;
        match self.network(&created.id, &spec, ranges).await {
            Ok((network, attachment)) => {
                let sandbox = Sandbox { id: created.id, config, spec, network, attachment, hosts: file };
                self.known.lock().insert(sandbox.spec.id.clone(), Arc::new(sandbox));
                Ok(())
            }
            Err(error) => {
                let listed = ListedSandbox { id: created.id, ..ListedSandbox::default() };
                let _ = self.stop_and_remove(vec![listed]).await;
                Err(error)
            }
        }
    }

    /// Connects a new sandbox to the network of the node.
    async fn network(
        &self,
        id: &str,
        spec: &SandboxSpec,
        ranges: Vec<(IpAddr, u8)>,
    ) -> Result<(Network, Option<Attachment>), RuntimeError> {
        if spec.host_network {
            return Ok((Network::Host, None));
        }
        let request = StatusRequest { id: id.to_owned(), verbose: true };
        let status: SandboxStatusResponse = self.client.runtime("PodSandboxStatus", &request).await?;
        let pid = info::pid(&status.info).ok_or_else(|| {
            RuntimeError::Unsupported(format!("the container runtime tells no PID of sandbox {id}"))
        })?;
        let network = Network::of_process(pid)?;
        let attachment = self.pods.attach(&network, spec.address, ranges).await?;
        Ok((network, Some(attachment)))
    }

    fn labels(&self, id: &SandboxId) -> BTreeMap<String, String> {
        let mut labels = self.owner.labels();
        labels.insert(POD.to_owned(), id.0.clone());
        labels
    }

    /// Stops the containers of a sandbox. The container runtime still knows their ends.
    pub(super) async fn stop(&self, id: &SandboxId) -> Result<(), CallError> {
        for sandbox in self.list(self.labels(id)).await? {
            self.end("StopPodSandbox", sandbox.id).await?;
        }
        Ok(())
    }

    /// Removes a sandbox with all of its containers.
    pub(super) async fn remove(&self, id: &SandboxId) -> Result<(), CallError> {
        self.stop_and_remove(self.list(self.labels(id)).await?).await?;
        let removed = self.known.lock().remove(id);
        removed.iter().for_each(|sandbox| self.forget(sandbox));
        Ok(())
    }

    /// Removes the address and the file of a sandbox that has been removed.
    fn forget(&self, sandbox: &Sandbox) {
        if let Some(attachment) = sandbox.attachment {
            self.pods.detach(attachment);
        }
        let _ = std::fs::remove_file(&sandbox.hosts);
    }

    /// Removes all sandboxes of this runtime. Returns how many sandboxes there were.
    pub(super) async fn remove_all(&self) -> Result<usize, CallError> {
        let sandboxes = self.list(self.owner.labels()).await?;
        let count = sandboxes.len();
        self.stop_and_remove(sandboxes).await?;
        let removed: Vec<_> = self.known.lock().drain().collect();
        removed.iter().for_each(|(_, sandbox)| self.forget(sandbox));
        Ok(count)
    }

    /// Removes the sandboxes that killed processes have left over. Returns how many sandboxes there were.
    pub(super) async fn remove_left_over(&self) -> Result<usize, CallError> {
        let mut sandboxes = self.list(owner::any_labels()).await?;
        sandboxes.retain(|sandbox| owner::is_left_over(&sandbox.labels));
        let count = sandboxes.len();
        self.stop_and_remove(sandboxes).await?;
        Ok(count)
    }

    async fn list(&self, labels: BTreeMap<String, String>) -> Result<Vec<ListedSandbox>, CallError> {
        let filter = Filter { sandbox_labels: labels, ..Filter::default() };
        let list: SandboxList =
            self.client.runtime("ListPodSandbox", &ListRequest { filter: Some(filter) }).await?;
        Ok(list.items)
    }

    /// Removes sandboxes, also after a failure of one of them. Returns the first failure.
    async fn stop_and_remove(&self, sandboxes: Vec<ListedSandbox>) -> Result<(), CallError> {
        let remove = async |sandbox: ListedSandbox| {
            self.end("StopPodSandbox", sandbox.id.clone()).await?;
            self.end("RemovePodSandbox", sandbox.id).await
        };
        let removed: Vec<_> = stream::iter(sandboxes).map(remove).buffer_unordered(AT_ONCE).collect().await;
        removed.into_iter().collect()
    }

    /// Stops or removes a sandbox. A sandbox that does not exist is no error.
    async fn end(&self, method: &'static str, id: String) -> Result<(), CallError> {
        match self.client.runtime::<_, Empty>(method, &Id { id }).await {
            Err(error) if error.code != NOT_FOUND => Err(error),
            _ => Ok(()),
        }
    }
}
