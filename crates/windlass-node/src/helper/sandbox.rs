//! The namespaces of a sandbox, as the helper keeps them.

use std::fs::File;
use std::os::fd::{AsFd, OwnedFd};

use nix::sched::{CloneFlags, setns, unshare};
use rustix::net::{AddressFamily, SocketFlags, SocketType, socket_with};
use rustix::system::sethostname;

use super::network;
use super::protocol::{Doing, Refusal, SandboxSetup};

/// The names of the shared namespaces in `/proc/self/ns`.
const SHARED: [&str; 3] = ["net", "ipc", "uts"];

/// The namespaces that the containers of a pod share.
#[derive(Debug)]
pub(super) struct Namespaces {
    net: OwnedFd,
    ipc: OwnedFd,
    uts: OwnedFd,
}

impl Namespaces {
    /// Opens those of this process.
    pub(super) fn current() -> Result<Self, Refusal> {
        let [net, ipc, uts] = SHARED.map(|name| open(&format!("/proc/self/ns/{name}")));
        Ok(Self { net: net?, ipc: ipc?, uts: uts? })
    }

    /// Creates those of a sandbox. This process is in the new namespaces afterwards.
    pub(super) fn create(setup: &SandboxSetup, host_network: bool) -> Result<Self, Refusal> {
        let mut flags = CloneFlags::CLONE_NEWUTS;
        if !host_network {
            flags |= CloneFlags::CLONE_NEWIPC | CloneFlags::CLONE_NEWNET;
        }
        unshare(flags).doing("create the namespaces of the sandbox")?;
        sethostname(setup.host_name.as_bytes()).doing("set the host name")?;
        if !host_network {
            network::configure(setup.address, &setup.ranges)?;
            settings();
        }
        Self::current()
    }

    /// Creates a TCP socket in the network.
    pub(super) fn socket(&self, version_6: bool, host_network: bool) -> Result<OwnedFd, Refusal> {
        if !host_network {
            setns(&self.net, CloneFlags::CLONE_NEWNET).doing("enter the network of the sandbox")?;
        }
        let family = if version_6 { AddressFamily::INET6 } else { AddressFamily::INET };
        socket_with(family, SocketType::STREAM, SocketFlags::CLOEXEC | SocketFlags::NONBLOCK, None)
            .doing("create a socket")
    }

    /// Moves this process into the namespaces.
    pub(super) fn enter(&self, host_network: bool) -> Result<(), Refusal> {
        enter(self.all(), host_network)
    }

    /// The namespaces, in the order of [`enter`].
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

/// Opens a namespace.
pub(super) fn open(path: &str) -> Result<OwnedFd, Refusal> {
    File::open(path).map(OwnedFd::from).doing(&format!("open {path}"))
}

/// Allows all users to listen on all ports and to send pings, as container runtimes do. Not all kernels have the settings.
fn settings() {
    let _ = std::fs::write("/proc/sys/net/ipv4/ip_unprivileged_port_start", "0");
    let _ = std::fs::write("/proc/sys/net/ipv4/ping_group_range", "0 0");
}
