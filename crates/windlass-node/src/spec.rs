//! The messages between a kubelet and a [`Runtime`](crate::Runtime).

use std::fmt;
use std::net::IpAddr;
use std::path::PathBuf;
use std::time::SystemTime;

/// The ID of a sandbox: the uid of its pod.
#[derive(Clone, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct SandboxId(pub String);

/// The ID of a container, without the scheme: 64 hexadecimal digits.
#[derive(Clone, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct ContainerId(pub String);

/// An image on this machine.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Image {
    /// The digest of the image's configuration: `sha256:…`.
    pub id: String,
    /// The name with the digest of the manifest, `NAME@sha256:…`, as `status.containerStatuses[].imageID` shows it.
    pub digested: String,
    /// The size of the image's layers, compressed, in bytes.
    pub size: u64,
}

/// A name and a password for a registry.
#[derive(Clone, PartialEq, Eq)]
pub struct Credential {
    /// The name.
    pub user: String,
    /// The password, or the identity token.
    pub password: String,
}

impl fmt::Debug for Credential {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Credential").field("user", &self.user).finish_non_exhaustive()
    }
}

/// The shared surroundings of a pod's containers.
#[derive(Clone, Debug)]
pub struct SandboxSpec {
    /// The uid of the pod.
    pub id: SandboxId,
    /// The host name, also the value of `HOSTNAME`.
    pub host_name: String,
    /// The address of the pod. Programs may listen on it.
    pub address: IpAddr,
    /// True if the pod uses the network of the machine.
    pub host_network: bool,
    /// The lines of `/etc/hosts` beside those of `localhost` and of the pod.
    pub hosts: Vec<HostName>,
    /// The ranges of addresses that the pod reaches, such as `10.0.0.0/16`: the addresses of other pods, and the addresses that
    /// [`listen`](crate::Runtime::listen) answers. All other addresses of a range refuse connections.
    pub ranges: Vec<String>,
    /// The name servers. `None` takes the `/etc/resolv.conf` of the machine.
    pub resolver: Option<Resolver>,
}

/// The contents of `/etc/resolv.conf`.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Resolver {
    /// The addresses of the name servers.
    pub servers: Vec<IpAddr>,
    /// The domains in which a name with few dots is looked up.
    pub searches: Vec<String>,
    /// The options, such as `ndots:5`.
    pub options: Vec<String>,
}

/// A line of `/etc/hosts`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct HostName {
    /// The address.
    pub address: IpAddr,
    /// The names of the address, the canonical name first.
    pub names: Vec<String>,
}

/// A container to start. Everything is resolved: no field refers to an object of the cluster.
#[derive(Clone, Debug)]
pub struct ContainerSpec {
    /// The name of the container in its pod.
    pub name: String,
    /// How often the container has been started before.
    pub attempt: u32,
    /// The [`id`](Image::id) of the image.
    pub image: String,
    /// Replaces the image's entry point and its arguments, unless empty.
    pub command: Vec<String>,
    /// Replaces the image's arguments, unless empty.
    pub arguments: Vec<String>,
    /// Replaces the image's working directory.
    pub working_directory: Option<String>,
    /// The environment, added to that of the image. Later entries replace earlier entries of the same name.
    pub environment: Vec<(String, String)>,
    /// The volumes, in any order.
    pub mounts: Vec<Mount>,
    /// The user of the first process.
    pub user: User,
    /// True if the root of the file system cannot be written.
    pub read_only_root: bool,
    /// The most that the container may use.
    pub limits: Limits,
    /// The file of the container's log, in the format of the CRI. Parent directories are created.
    pub log: PathBuf,
    /// True if the first process has a terminal.
    pub terminal: bool,
    /// True if the first process has a standard input that clients can attach to.
    pub stdin: bool,
    /// True if the standard input is closed when the first client has detached.
    pub stdin_once: bool,
}

/// The user of a container. `None` takes the image's user.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct User {
    /// `runAsUser`.
    pub user: Option<u32>,
    /// `runAsGroup`.
    pub group: Option<u32>,
    /// `supplementalGroups` and `fsGroup`.
    pub supplementary_groups: Vec<u32>,
    /// Refuse a container whose user is, or may be, root.
    pub must_not_be_root: bool,
}

/// A directory or file of the machine that a container sees.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Mount {
    /// A path on the machine.
    pub source: PathBuf,
    /// An absolute path in the container.
    pub target: PathBuf,
    /// True if the container cannot write to it.
    pub read_only: bool,
}

/// The most that a container may use. `None` is no limit.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Limits {
    /// In bytes.
    pub memory: Option<u64>,
    /// In thousandths of a core.
    pub cpu: Option<u64>,
    /// The number of processes and threads.
    pub processes: Option<u64>,
}

/// A command to run in a container.
#[derive(Clone, Debug)]
pub struct Command {
    /// The program and its arguments. A program without a slash is looked up in the container's `PATH`.
    pub words: Vec<String>,
    /// The size of the terminal, for a command with a terminal.
    pub terminal: Option<TerminalSize>,
    /// True if the command has a standard input.
    pub stdin: bool,
}

/// The end of a command without a terminal.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct CommandOutput {
    /// The exit code: 128 + the signal's number after a signal.
    pub code: i32,
    /// The begin of the standard output, then the begin of the error output: at most 10 KiB each.
    pub text: Vec<u8>,
}

/// How a container or a command ended.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Exit {
    /// The exit code: 128 + the signal's number after a signal.
    pub code: i32,
    /// The signal that ended the first process.
    pub signal: Option<i32>,
    /// True if the memory limit ended it.
    pub out_of_memory: bool,
    /// When the first process started.
    pub started_at: SystemTime,
    /// When the first process ended.
    pub finished_at: SystemTime,
}

/// The size of a terminal, in characters.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct TerminalSize {
    /// Columns.
    pub width: u16,
    /// Rows.
    pub height: u16,
}
