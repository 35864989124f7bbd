//! The messages between a runtime, the helper, and the processes that become containers.

use std::net::IpAddr;
use std::path::PathBuf;

use serde::{Deserialize, Serialize};

/// How user IDs of the helper's user namespace are mapped.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) enum Mapping {
    /// Only user 0, which is the user that runs this process.
    Single,
    /// Ranges of IDs, each mapped to itself: the first ID and the count, of users and of groups.
    Ranges { users: Vec<(u32, u32)>, groups: Vec<(u32, u32)> },
}

/// The settings of a helper.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub(crate) struct HelperSetup {
    /// True if the sandboxes use the network of the machine.
    pub host_network: bool,
    /// A directory of the helper's own.
    pub directory: PathBuf,
    /// The mapping of IDs.
    pub mapping: Mapping,
}

/// A request to the helper.
#[derive(Debug, Serialize, Deserialize)]
pub(crate) struct Request {
    /// The number that the reply repeats.
    pub id: u64,
    /// The operation.
    pub operation: Operation,
}

/// An operation of the helper.
#[derive(Debug, Serialize, Deserialize)]
pub(crate) enum Operation {
    /// Creates the namespaces of a sandbox.
    CreateSandbox(SandboxSetup),
    /// Forgets the namespaces of a sandbox, and ends its processes.
    RemoveSandbox { sandbox: String },
    /// Creates a socket in the network of a sandbox, or in the network of the node.
    Socket { sandbox: Option<String>, kind: SocketKind, version_6: bool },
    /// Starts a container. The file descriptors are standard input, output and error, except with a terminal.
    Start { key: String, sandbox: String, cgroups: Vec<PathBuf>, setup: Box<ContainerSetup> },
    /// Starts a command in a container.
    Exec { key: String, container: String, cgroups: Vec<PathBuf>, setup: Box<ProgramSetup> },
    /// Sends a signal to a process.
    Signal { key: String, signal: i32 },
}

/// The protocol of a socket.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) enum SocketKind {
    /// TCP.
    Stream,
    /// UDP.
    Datagram,
}

/// A message of the helper.
#[derive(Debug, Serialize, Deserialize)]
pub(crate) enum Message {
    /// The user namespace is there, and its maps can be written.
    Unshared,
    /// The helper is ready.
    Ready { overlay: bool },
    /// The answer to a request. With a terminal or a socket, the file descriptor comes along.
    Reply { id: u64, result: Result<(), Refusal> },
    /// A process has ended.
    Exited { key: String, code: i32, signal: Option<i32> },
    /// The helper cannot work.
    Failed(Refusal),
}

/// Why an operation failed.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct Refusal {
    /// The kind of failure.
    pub kind: RefusalKind,
    /// The text.
    pub text: String,
}

/// The kind of a failure.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) enum RefusalKind {
    /// The specification cannot be met.
    Config,
    /// The container cannot be created from its image.
    Create,
    /// The process could not be started.
    Start,
    /// The program does not exist: exit code 127.
    ProgramNotFound,
    /// The program cannot be executed: exit code 126.
    NotExecutable,
    /// There is no such sandbox or container.
    NotFound,
    /// The kernel or its settings do not allow an operation.
    Unsupported,
}

impl Refusal {
    /// Refuses a process that could not be started.
    pub(crate) fn start(text: impl Into<String>) -> Self {
        Self { kind: RefusalKind::Start, text: text.into() }
    }

    /// Refuses an image from which no container can be created.
    pub(crate) fn create(text: impl Into<String>) -> Self {
        Self { kind: RefusalKind::Create, text: text.into() }
    }

    /// Refuses a specification that cannot be met.
    pub(crate) fn config(text: impl Into<String>) -> Self {
        Self { kind: RefusalKind::Config, text: text.into() }
    }
}

/// Adds the operation to an error of the operating system.
pub(crate) trait Doing<T> {
    /// Adds `text`, such as `mount /proc`.
    fn doing(self, text: &str) -> Result<T, Refusal>;
}

impl<T, E: Into<std::io::Error>> Doing<T> for Result<T, E> {
    fn doing(self, text: &str) -> Result<T, Refusal> {
        self.map_err(|error| Refusal::start(format!("{text}: {}", error.into())))
    }
}

/// A sandbox to create.
#[derive(Debug, Serialize, Deserialize)]
pub(crate) struct SandboxSetup {
    /// The ID.
    pub sandbox: String,
    /// The host name.
    pub host_name: String,
    /// The address of the pod.
    pub address: IpAddr,
    /// The ranges of addresses that the sandbox reaches: an address and the length of the prefix.
    pub ranges: Vec<(IpAddr, u8)>,
}

/// A container to start.
#[derive(Debug, Serialize, Deserialize)]
pub(crate) struct ContainerSetup {
    /// The root of the file system.
    pub root: RootSetup,
    /// The mounts in the root.
    pub mounts: Vec<MountSetup>,
    /// True if the root cannot be written.
    pub read_only: bool,
    /// The program.
    pub program: ProgramSetup,
}

/// The root of a container's file system.
#[derive(Debug, Serialize, Deserialize)]
pub(crate) enum RootSetup {
    /// A shared directory with a layer of the container's own.
    Overlay { lower: PathBuf, upper: PathBuf, work: PathBuf, merged: PathBuf },
    /// A directory of the container's own.
    Directory(PathBuf),
}

/// A mount of a container.
#[derive(Debug, Serialize, Deserialize)]
pub(crate) struct MountSetup {
    /// A path on the machine, without symbolic links.
    pub source: PathBuf,
    /// An absolute path in the container.
    pub target: PathBuf,
    /// True if the container cannot write.
    pub read_only: bool,
}

/// A program to execute.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub(crate) struct ProgramSetup {
    /// The program and its arguments.
    pub words: Vec<String>,
    /// The whole environment.
    pub environment: Vec<(String, String)>,
    /// The working directory; created if it does not exist, as runc does.
    pub directory: String,
    /// The user.
    pub user: UserSetup,
    /// True if the sandbox uses the network of the machine.
    pub host_network: bool,
    /// The size of the terminal, columns and rows, if there is a terminal.
    pub terminal: Option<(u16, u16)>,
    /// The mapping of IDs.
    pub mapping: Mapping,
}

/// The user of a program.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub(crate) enum UserSetup {
    /// Names or numbers, to be looked up in the container: `USER[:GROUP]` of the image, and numbers that replace its parts.
    LookUp { image: String, user: Option<u32>, group: Option<u32>, groups: Vec<u32> },
    /// An identity that has been looked up.
    Known(Identity),
}

/// The numbers of a user.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct Identity {
    /// The user.
    pub user: u32,
    /// The first group.
    pub group: u32,
    /// The other groups.
    pub groups: Vec<u32>,
    /// The home directory.
    pub home: String,
}

/// A message from the helper to a starting process.
#[derive(Debug, Serialize, Deserialize)]
pub(crate) enum ToProcess {
    /// A container: the file descriptors are standard streams (none with a terminal), then namespaces.
    Container(Box<ContainerSetup>),
    /// A command: standard streams (none with a terminal), then the mount and user namespaces, then the sandbox's.
    Command(Box<ProgramSetup>),
    /// The maps have been written.
    Mapped,
}

/// A message from a starting process to the helper.
#[derive(Debug, Serialize, Deserialize)]
pub(crate) enum FromProcess {
    /// The process waits for the mappings of user and group IDs. With a terminal, the process also sends the
    /// master.
    Entered { identity: Identity },
    /// The process could not execute its program.
    Failed(Refusal),
}
