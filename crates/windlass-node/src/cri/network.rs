//! The network of the pods: a network namespace of this process for the node, and the network namespaces of the sandboxes.

use std::net::IpAddr;
use std::os::fd::OwnedFd;
use std::sync::Arc;
use std::thread;

use nix::sched::{CloneFlags, setns, unshare};
use parking_lot::Mutex;
use tokio::sync::oneshot;

use crate::RuntimeError;
use crate::helper::netlink::Device;
use crate::helper::network::{Attachment, NodeNetwork};
use crate::helper::protocol::{Doing, Refusal, SocketKind};
use crate::helper::sandbox::{open, socket};

/// The device of a sandbox beside the devices of the network plugin. Devices of the machine, whose indexes count up from 1, keep their
/// indexes in a sandbox.
const SECOND_DEVICE: Device<'static> = Device { index: 1 << 30, name: "cluster0" };

/// The network of a sandbox, or of the node.
#[derive(Clone, Debug)]
pub(super) enum Network {
    /// The network of this machine.
    Host,
    /// A network namespace.
    Namespace(Arc<OwnedFd>),
}

impl Network {
    /// Opens the network of a process: the first process of a sandbox.
    pub(super) fn of_process(pid: u32) -> Result<Self, RuntimeError> {
        Ok(Self::Namespace(Arc::new(open(&format!("/proc/{pid}/ns/net"))?)))
    }

    /// Creates a socket for the family of `address`.
    pub(super) async fn socket(&self, kind: SocketKind, address: IpAddr) -> Result<OwnedFd, RuntimeError> {
        let version_6 = address.is_ipv6();
        Ok(self.inside(move || socket(kind, version_6)).await?)
    }

    /// Runs `work` on a thread inside the network.
    async fn inside<T: Send + 'static>(
        &self,
        work: impl FnOnce() -> Result<T, Refusal> + Send + 'static,
    ) -> Result<T, Refusal> {
        let namespace = match self {
            Self::Host => return work(),
            Self::Namespace(namespace) => Arc::clone(namespace),
        };
        on_thread(move || {
            setns(&*namespace, CloneFlags::CLONE_NEWNET).doing("enter the network of the sandbox")?;
            work()
        })
        .await
    }
}

/// The network that all pods share. Ends with this process, because nothing else keeps the network.
pub(super) struct PodNetwork {
    node: Arc<Mutex<NodeNetwork>>,
    namespace: Arc<OwnedFd>,
}

impl PodNetwork {
    /// Creates the network of the node.
    pub(super) async fn new() -> Result<Self, RuntimeError> {
        let created = on_thread(|| {
            unshare(CloneFlags::CLONE_NEWNET).doing("create the network of the node")?;
            Ok((NodeNetwork::new()?, open("/proc/thread-self/ns/net")?))
        });
        let (node, namespace) = created.await.map_err(|refusal| RuntimeError::Unsupported(refusal.text))?;
        Ok(Self { node: Arc::new(Mutex::new(node)), namespace: Arc::new(namespace) })
    }

    /// Returns the network of the node.
    pub(super) fn node(&self) -> Network {
        Network::Namespace(Arc::clone(&self.namespace))
    }

    /// Connects the network of a sandbox to the network of the node. Returns the node's side.
    pub(super) async fn attach(
        &self,
        sandbox: &Network,
        address: IpAddr,
        ranges: Vec<(IpAddr, u8)>,
    ) -> Result<Attachment, RuntimeError> {
        let (node, namespace) = (Arc::clone(&self.node), Arc::clone(&self.namespace));
        let attach = move || node.lock().attach(&*namespace, SECOND_DEVICE, address, &ranges);
        Ok(sandbox.inside(attach).await?)
    }

    /// Forgets the address of a sandbox.
    pub(super) fn detach(&self, attachment: Attachment) {
        self.node.lock().detach(attachment);
    }
}

/// Runs `work` on a thread of its own. The thread ends with the work, because a thread stays in the network that the thread entered.
async fn on_thread<T: Send + 'static>(
    work: impl FnOnce() -> Result<T, Refusal> + Send + 'static,
) -> Result<T, Refusal> {
    let (sender, result) = oneshot::channel();
    thread::Builder::new()
        .name("pod-network".into())
        .spawn(move || drop(sender.send(work())))
        .doing("start a thread")?;
    result.await.unwrap_or_else(|_| Err(Refusal::start("the work in the network of a pod ended early")))
}
