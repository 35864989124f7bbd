//! The namespaces of a sandbox, as the helper keeps them.

use std::fs::File;
use std::os::fd::{AsFd, OwnedFd};

use nix::sched::{CloneFlags, setns, unshare};
use rustix::net::{AddressFamily, SocketFlags, SocketType, socket_with};
use rustix::system::sethostname;

use super::network::{Attachment, NodeNetwork, ONLY_DEVICE};
use super::protocol::{Doing, Refusal, SandboxSetup, SocketKind};

/// The names of the shared namespaces in `/proc/self/ns`.
const SHARED: [&str; 3] = ["net", "ipc", "uts"];

/// The namespaces that the containers of a pod share.
#[derive(Debug)]
pub(super) struct Namespaces {
    net: OwnedFd,
    ipc: OwnedFd,
    uts: OwnedFd,
    attachment: Option<Attachment>,
}

impl Namespaces {
    /// Opens those of this process.
    pub(super) fn current() -> Result<Self, Refusal> {
        let [net, ipc, uts] = SHARED.map(|name| open(&format!("/proc/self/ns/{name}")));
        Ok(Self { net: net?, ipc: ipc?, uts: uts?, attachment: None })
    }

    /// Creates those of a sandbox. This process is in the new namespaces afterwards. Without `network`, the sandbox uses the network of
    /// the machine.
    pub(super) fn create(
        &self,
        setup: &SandboxSetup,
        network: Option<&mut NodeNetwork>,
    ) -> Result<Self, Refusal> {
        let mut flags = CloneFlags::CLONE_NEWUTS;
        if network.is_some() {
            flags |= CloneFlags::CLONE_NEWIPC | CloneFlags::CLONE_NEWNET;
        }
        unshare(flags).doing("create the namespaces of the sandbox")?;
        sethostname(setup.host_name.as_bytes()).doing("set the host name")?;
        let attachment = match network {
            Some(network) => {
                settings();
                Some(network.attach(&self.net, ONLY_DEVICE, setup.address, &setup.ranges)?)
            }
            None => None,
        };
        Ok(Self { attachment, ..Self::current()? })
    }

    /// Returns the node's side of the sandbox.
    pub(super) fn attachment(&self) -> Option<Attachment> {
        self.attachment
    }

    /// Creates a socket in the network.
    pub(super) fn socket(
        &self,
        kind: SocketKind,
        version_6: bool,
        host_network: bool,
    ) -> Result<OwnedFd, Refusal> {
        if !host_network {
            setns(&self.net, CloneFlags::CLONE_NEWNET).doing("enter the network of the sandbox")?;
        }
        socket(kind, version_6)
    }

    /// Moves this process into the namespaces.
    pub(super) fn enter(&self, host_network: bool) -> Result<(), Refusal> {
        enter(self.all(), host_network)
    }

    /// Returns the namespaces, in the order of [`enter`].
    pub(super) fn all(&self) -> [&OwnedFd; 3] {
        [&self.net, &self.ipc, &self.uts]
    }
}

/// Moves this process into the network, IPC and UTS namespaces.
pub(super) fn enter<F: AsFd>([net, ipc, uts]: [&F; 3], host_network: bool) -> Result<(), Refusal> {
    if !host_network {
        setns(net, CloneFlags::CLONE_NEWNET).doing("enter the network of the sandbox")?;
        setns(ipc, CloneFlags::CLONE_NEWIPC).doing("enter the IPC namespace of the sandbox")?;
    }
    setns(uts, CloneFlags::CLONE_NEWUTS).doing("enter the UTS namespace of the sandbox")
}

/// Creates a socket in the network of this thread.
pub(crate) fn socket(kind: SocketKind, version_6: bool) -> Result<OwnedFd, Refusal> {
    let family = if version_6 { AddressFamily::INET6 } else { AddressFamily::INET };
    let kind = match kind {
        SocketKind::Stream => SocketType::STREAM,
        SocketKind::Datagram => SocketType::DGRAM,
    };
    socket_with(family, kind, SocketFlags::CLOEXEC | SocketFlags::NONBLOCK, None).doing("create a socket")
}

/// Opens a namespace.
pub(crate) fn open(path: &str) -> Result<OwnedFd, Refusal> {
    File::open(path).map(OwnedFd::from).doing(&format!("open {path}"))
}

/// Allows all users to listen on all ports and to send pings, as container runtimes do. Not all kernels have the settings.
fn settings() {
    let _ = std::fs::write("/proc/sys/net/ipv4/ip_unprivileged_port_start", "0");
    let _ = std::fs::write("/proc/sys/net/ipv4/ping_group_range", "0 0");
}
