//! The messages of the CRI, version `runtime.v1`, with the fields that this crate uses. A reader of protobuf skips unknown fields.

use std::collections::BTreeMap;
use std::fmt;

use prost::Message;

/// A value that may be absent.
#[derive(Clone, Copy, PartialEq, Eq, Message)]
pub(super) struct Int64 {
    #[prost(int64, tag = "1")]
    pub value: i64,
}

#[derive(Clone, PartialEq, Eq, Message)]
pub(super) struct Empty {}

#[derive(Clone, PartialEq, Eq, Message)]
pub(super) struct VersionResponse {
    #[prost(string, tag = "2")]
    pub runtime_name: String,
    #[prost(string, tag = "3")]
    pub runtime_version: String,
}

#[derive(Clone, PartialEq, Eq, Message)]
pub(super) struct StatusResponse {
    #[prost(message, optional, tag = "1")]
    pub status: Option<RuntimeStatus>,
}

#[derive(Clone, PartialEq, Eq, Message)]
pub(super) struct RuntimeStatus {
    #[prost(message, repeated, tag = "1")]
    pub conditions: Vec<RuntimeCondition>,
}

#[derive(Clone, PartialEq, Eq, Message)]
pub(super) struct RuntimeCondition {
    #[prost(string, tag = "1")]
    pub kind: String,
    #[prost(bool, tag = "2")]
    pub status: bool,
    #[prost(string, tag = "4")]
    pub message: String,
}

#[derive(Clone, PartialEq, Eq, Message)]
pub(super) struct SandboxMetadata {
    #[prost(string, tag = "1")]
    pub name: String,
    #[prost(string, tag = "2")]
    pub uid: String,
    #[prost(string, tag = "3")]
    pub namespace: String,
}

#[derive(Clone, PartialEq, Eq, Message)]
pub(super) struct SandboxConfig {
    #[prost(message, optional, tag = "1")]
    pub metadata: Option<SandboxMetadata>,
    #[prost(string, tag = "2")]
    pub hostname: String,
    #[prost(string, tag = "3")]
    pub log_directory: String,
    #[prost(message, optional, tag = "4")]
    pub dns: Option<Dns>,
    #[prost(btree_map = "string, string", tag = "6")]
    pub labels: BTreeMap<String, String>,
    #[prost(message, optional, tag = "8")]
    pub linux: Option<LinuxSandbox>,
}

/// The contents of `/etc/resolv.conf`. Without the message, containers have those of the machine.
#[derive(Clone, PartialEq, Eq, Message)]
pub(super) struct Dns {
    #[prost(string, repeated, tag = "1")]
    pub servers: Vec<String>,
    #[prost(string, repeated, tag = "2")]
    pub searches: Vec<String>,
    #[prost(string, repeated, tag = "3")]
    pub options: Vec<String>,
}

#[derive(Clone, PartialEq, Eq, Message)]
pub(super) struct LinuxSandbox {
    #[prost(message, optional, tag = "2")]
    pub security_context: Option<SandboxSecurity>,
    #[prost(btree_map = "string, string", tag = "3")]
    pub sysctls: BTreeMap<String, String>,
}

#[derive(Clone, PartialEq, Eq, Message)]
pub(super) struct SandboxSecurity {
    #[prost(message, optional, tag = "1")]
    pub namespaces: Option<Namespaces>,
    #[prost(message, optional, tag = "9")]
    pub seccomp: Option<SecurityProfile>,
}

/// The shared namespaces. The numbers are the values of [`NamespaceMode`].
#[derive(Clone, Copy, PartialEq, Eq, Message)]
pub(super) struct Namespaces {
    #[prost(enumeration = "NamespaceMode", tag = "1")]
    pub network: i32,
    #[prost(enumeration = "NamespaceMode", tag = "2")]
    pub pid: i32,
    #[prost(enumeration = "NamespaceMode", tag = "3")]
    pub ipc: i32,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, prost::Enumeration)]
#[repr(i32)]
pub(super) enum NamespaceMode {
    Pod = 0,
    Container = 1,
    Node = 2,
}

/// A profile of seccomp. 0 is the default profile of the container runtime.
#[derive(Clone, Copy, PartialEq, Eq, Message)]
pub(super) struct SecurityProfile {
    #[prost(int32, tag = "1")]
    pub kind: i32,
}

#[derive(Clone, PartialEq, Eq, Message)]
pub(super) struct RunSandboxRequest {
    #[prost(message, optional, tag = "1")]
    pub config: Option<SandboxConfig>,
}

/// The ID of a sandbox or of a container: the first field of many messages.
#[derive(Clone, PartialEq, Eq, Message)]
pub(super) struct Id {
    #[prost(string, tag = "1")]
    pub id: String,
}

/// The ID of a sandbox or of a container, and whether the answer has the details of the container runtime.
#[derive(Clone, PartialEq, Eq, Message)]
pub(super) struct StatusRequest {
    #[prost(string, tag = "1")]
    pub id: String,
    #[prost(bool, tag = "2")]
    pub verbose: bool,
}

/// The details of the container runtime about a sandbox.
#[derive(Clone, PartialEq, Eq, Message)]
pub(super) struct SandboxStatusResponse {
    #[prost(btree_map = "string, string", tag = "2")]
    pub info: BTreeMap<String, String>,
}

/// Asks for the sandboxes or the containers with labels.
#[derive(Clone, PartialEq, Eq, Message)]
pub(super) struct ListRequest {
    #[prost(message, optional, tag = "1")]
    pub filter: Option<Filter>,
}

/// The labels have the same number in both filters of the CRI.
#[derive(Clone, PartialEq, Eq, Message)]
pub(super) struct Filter {
    #[prost(btree_map = "string, string", tag = "3")]
    pub sandbox_labels: BTreeMap<String, String>,
    #[prost(btree_map = "string, string", tag = "4")]
    pub container_labels: BTreeMap<String, String>,
}

#[derive(Clone, PartialEq, Eq, Message)]
pub(super) struct SandboxList {
    #[prost(message, repeated, tag = "1")]
    pub items: Vec<ListedSandbox>,
}

#[derive(Clone, PartialEq, Eq, Message)]
pub(super) struct ListedSandbox {
    #[prost(string, tag = "1")]
    pub id: String,
    #[prost(btree_map = "string, string", tag = "5")]
    pub labels: BTreeMap<String, String>,
}

#[derive(Clone, PartialEq, Eq, Message)]
pub(super) struct ContainerList {
    #[prost(message, repeated, tag = "1")]
    pub containers: Vec<ListedContainer>,
}

#[derive(Clone, PartialEq, Eq, Message)]
pub(super) struct ListedContainer {
    #[prost(string, tag = "1")]
    pub id: String,
    #[prost(enumeration = "ContainerState", tag = "6")]
    pub state: i32,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, prost::Enumeration)]
#[repr(i32)]
pub(super) enum ContainerState {
    Created = 0,
    Running = 1,
    Exited = 2,
    Unknown = 3,
}

#[derive(Clone, PartialEq, Eq, Message)]
pub(super) struct ContainerMetadata {
    #[prost(string, tag = "1")]
    pub name: String,
    #[prost(uint32, tag = "2")]
    pub attempt: u32,
}

#[derive(Clone, PartialEq, Eq, Message)]
pub(super) struct ContainerConfig {
    #[prost(message, optional, tag = "1")]
    pub metadata: Option<ContainerMetadata>,
    #[prost(message, optional, tag = "2")]
    pub image: Option<ImageSpec>,
    #[prost(string, repeated, tag = "3")]
    pub command: Vec<String>,
    #[prost(string, repeated, tag = "4")]
    pub arguments: Vec<String>,
    #[prost(string, tag = "5")]
    pub working_directory: String,
    #[prost(message, repeated, tag = "6")]
    pub environment: Vec<Variable>,
    #[prost(message, repeated, tag = "7")]
    pub mounts: Vec<Mount>,
    #[prost(btree_map = "string, string", tag = "9")]
    pub labels: BTreeMap<String, String>,
    #[prost(string, tag = "11")]
    pub log_path: String,
    #[prost(bool, tag = "12")]
    pub stdin: bool,
    #[prost(bool, tag = "13")]
    pub stdin_once: bool,
    #[prost(bool, tag = "14")]
    pub terminal: bool,
    #[prost(message, optional, tag = "15")]
    pub linux: Option<LinuxContainer>,
}

/// A variable of the environment. `Debug` shows no value, because values may be secret.
#[derive(Clone, PartialEq, Eq, Message)]
#[prost(skip_debug)]
pub(super) struct Variable {
    #[prost(string, tag = "1")]
    pub name: String,
    #[prost(string, tag = "2")]
    pub value: String,
}

impl fmt::Debug for Variable {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Variable").field("name", &self.name).finish_non_exhaustive()
    }
}

#[derive(Clone, PartialEq, Eq, Message)]
pub(super) struct Mount {
    #[prost(string, tag = "1")]
    pub target: String,
    #[prost(string, tag = "2")]
    pub source: String,
    #[prost(bool, tag = "3")]
    pub read_only: bool,
}

#[derive(Clone, PartialEq, Eq, Message)]
pub(super) struct LinuxContainer {
    #[prost(message, optional, tag = "1")]
    pub resources: Option<Resources>,
    #[prost(message, optional, tag = "2")]
    pub security_context: Option<ContainerSecurity>,
}

#[derive(Clone, PartialEq, Eq, Message)]
pub(super) struct Resources {
    #[prost(int64, tag = "1")]
    pub cpu_period: i64,
    #[prost(int64, tag = "2")]
    pub cpu_quota: i64,
    #[prost(int64, tag = "3")]
    pub cpu_shares: i64,
    #[prost(int64, tag = "4")]
    pub memory_limit: i64,
    /// Settings of control groups of version 2.
    #[prost(btree_map = "string, string", tag = "9")]
    pub unified: BTreeMap<String, String>,
}

#[derive(Clone, PartialEq, Eq, Message)]
pub(super) struct ContainerSecurity {
    #[prost(message, optional, tag = "3")]
    pub namespaces: Option<Namespaces>,
    #[prost(message, optional, tag = "5")]
    pub user: Option<Int64>,
    #[prost(message, optional, tag = "12")]
    pub group: Option<Int64>,
    #[prost(string, tag = "6")]
    pub user_name: String,
    #[prost(bool, tag = "7")]
    pub read_only_root: bool,
    #[prost(int64, repeated, tag = "8")]
    pub supplementary_groups: Vec<i64>,
    #[prost(bool, tag = "11")]
    pub no_new_privileges: bool,
    #[prost(string, repeated, tag = "13")]
    pub masked_paths: Vec<String>,
    #[prost(string, repeated, tag = "14")]
    pub read_only_paths: Vec<String>,
    #[prost(message, optional, tag = "15")]
    pub seccomp: Option<SecurityProfile>,
}

#[derive(Clone, PartialEq, Eq, Message)]
pub(super) struct CreateContainerRequest {
    #[prost(string, tag = "1")]
    pub sandbox: String,
    #[prost(message, optional, tag = "2")]
    pub config: Option<ContainerConfig>,
    #[prost(message, optional, tag = "3")]
    pub sandbox_config: Option<SandboxConfig>,
}

#[derive(Clone, PartialEq, Eq, Message)]
pub(super) struct StopContainerRequest {
    #[prost(string, tag = "1")]
    pub id: String,
    /// In seconds, until all processes are killed.
    #[prost(int64, tag = "2")]
    pub timeout: i64,
}

#[derive(Clone, PartialEq, Eq, Message)]
pub(super) struct ContainerStatusResponse {
    #[prost(message, optional, tag = "1")]
    pub status: Option<ContainerStatus>,
    #[prost(btree_map = "string, string", tag = "2")]
    pub info: BTreeMap<String, String>,
}

/// Times are in nanoseconds since 1970.
#[derive(Clone, PartialEq, Eq, Message)]
pub(super) struct ContainerStatus {
    #[prost(enumeration = "ContainerState", tag = "3")]
    pub state: i32,
    #[prost(int64, tag = "5")]
    pub started_at: i64,
    #[prost(int64, tag = "6")]
    pub finished_at: i64,
    #[prost(int32, tag = "7")]
    pub exit_code: i32,
    #[prost(string, tag = "10")]
    pub reason: String,
    #[prost(string, tag = "11")]
    pub message: String,
}

#[derive(Clone, PartialEq, Eq, Message)]
pub(super) struct ExecRequest {
    #[prost(string, tag = "1")]
    pub container: String,
    #[prost(string, repeated, tag = "2")]
    pub command: Vec<String>,
    #[prost(bool, tag = "3")]
    pub terminal: bool,
    #[prost(bool, tag = "4")]
    pub stdin: bool,
    #[prost(bool, tag = "5")]
    pub stdout: bool,
    #[prost(bool, tag = "6")]
    pub stderr: bool,
}

#[derive(Clone, PartialEq, Eq, Message)]
pub(super) struct ExecSyncRequest {
    #[prost(string, tag = "1")]
    pub container: String,
    #[prost(string, repeated, tag = "2")]
    pub command: Vec<String>,
    /// In seconds.
    #[prost(int64, tag = "3")]
    pub timeout: i64,
}

#[derive(Clone, PartialEq, Eq, Message)]
pub(super) struct ExecSyncResponse {
    #[prost(bytes = "vec", tag = "1")]
    pub stdout: Vec<u8>,
    #[prost(bytes = "vec", tag = "2")]
    pub stderr: Vec<u8>,
    #[prost(int32, tag = "3")]
    pub exit_code: i32,
}

#[derive(Clone, PartialEq, Eq, Message)]
pub(super) struct AttachRequest {
    #[prost(string, tag = "1")]
    pub container: String,
    #[prost(bool, tag = "2")]
    pub stdin: bool,
    #[prost(bool, tag = "3")]
    pub terminal: bool,
    #[prost(bool, tag = "4")]
    pub stdout: bool,
    #[prost(bool, tag = "5")]
    pub stderr: bool,
}

/// The answer to a request for streams.
#[derive(Clone, PartialEq, Eq, Message)]
pub(super) struct Url {
    #[prost(string, tag = "1")]
    pub url: String,
}

#[derive(Clone, PartialEq, Eq, Message)]
pub(super) struct ImageSpec {
    #[prost(string, tag = "1")]
    pub image: String,
}

#[derive(Clone, PartialEq, Eq, Message)]
pub(super) struct ImageRequest {
    #[prost(message, optional, tag = "1")]
    pub image: Option<ImageSpec>,
    #[prost(bool, tag = "2")]
    pub verbose: bool,
}

#[derive(Clone, PartialEq, Eq, Message)]
pub(super) struct ImageStatusResponse {
    #[prost(message, optional, tag = "1")]
    pub image: Option<Image>,
    #[prost(btree_map = "string, string", tag = "2")]
    pub info: BTreeMap<String, String>,
}

#[derive(Clone, PartialEq, Eq, Message)]
pub(super) struct Image {
    #[prost(string, tag = "1")]
    pub id: String,
    #[prost(string, repeated, tag = "3")]
    pub digests: Vec<String>,
    #[prost(uint64, tag = "4")]
    pub size: u64,
    #[prost(message, optional, tag = "5")]
    pub user: Option<Int64>,
    #[prost(string, tag = "6")]
    pub user_name: String,
}

#[derive(Clone, PartialEq, Eq, Message)]
pub(super) struct PullImageRequest {
    #[prost(message, optional, tag = "1")]
    pub image: Option<ImageSpec>,
    #[prost(message, optional, tag = "2")]
    pub login: Option<Login>,
}

/// A login to a registry. `Debug` shows nothing.
#[derive(Clone, PartialEq, Eq, Message)]
#[prost(skip_debug)]
pub(super) struct Login {
    #[prost(string, tag = "1")]
    pub user: String,
    #[prost(string, tag = "2")]
    pub password: String,
}

impl fmt::Debug for Login {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Login").finish_non_exhaustive()
    }
}
