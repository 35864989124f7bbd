//! The requests of the CRI for a sandbox and a container.

use std::collections::BTreeMap;
use std::path::Path;

use super::message::{
    ContainerConfig, ContainerMetadata, ContainerSecurity, CreateContainerRequest, Dns, ImageSpec, Int64,
    LinuxContainer, LinuxSandbox, Mount, NamespaceMode, Namespaces, Resources, SandboxConfig,
    SandboxMetadata, SandboxSecurity, SecurityProfile, Variable,
};
use crate::{ContainerSpec, ImageConfig, Limits, Resolver, RuntimeError, SandboxSpec, User, program};

/// The namespace of all sandboxes in the lists of the container runtime.
const NAMESPACE: &str = "windlass";

/// The period in which CPU time is counted, in microseconds: that of kubelets.
const PERIOD: u64 = 100_000;
/// The smallest quota of a period, in microseconds, as the kernel has it.
const SMALLEST_QUOTA: u64 = 1000;
/// The CPU shares of a core.
const SHARES: u64 = 1024;

/// The path of `/etc/hosts` in a container.
const HOSTS: &str = "/etc/hosts";

/// Files of the kernel that containers do not see: those of kubelets.
const MASKED: [&str; 12] = [
    "/proc/asound",
    "/proc/acpi",
    "/proc/interrupts",
    "/proc/kcore",
    "/proc/keys",
    "/proc/latency_stats",
    "/proc/timer_list",
    "/proc/timer_stats",
    "/proc/sched_debug",
    "/proc/scsi",
    "/sys/firmware",
    "/sys/devices/virtual/powercap",
];
/// Files of the kernel that containers cannot write.
const READ_ONLY: [&str; 5] = ["/proc/bus", "/proc/fs", "/proc/irq", "/proc/sys", "/proc/sysrq-trigger"];

/// The user of an image: a number or a name. Root if the image names no user.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum ImageUser {
    Number(i64),
    Name(String),
}

/// Returns the configuration of a sandbox.
pub(super) fn sandbox(spec: &SandboxSpec, labels: BTreeMap<String, String>) -> SandboxConfig {
    let metadata =
        SandboxMetadata { name: spec.host_name.clone(), uid: spec.id.0.clone(), namespace: NAMESPACE.into() };
    let security = SandboxSecurity {
        namespaces: Some(namespaces(spec.host_network)),
        seccomp: Some(SecurityProfile::default()),
    };
    // The network of the machine keeps the machine's settings.
    let settings =
        [("net.ipv4.ip_unprivileged_port_start", "0"), ("net.ipv4.ping_group_range", "0 2147483647")];
    let settings = settings.iter().filter(|_| !spec.host_network);
    let sysctls = settings.map(|(name, value)| ((*name).to_owned(), (*value).to_owned())).collect();
    SandboxConfig {
        metadata: Some(metadata),
        hostname: if spec.host_network { String::new() } else { spec.host_name.clone() },
        // The paths of logs are below the root.
        log_directory: "/".into(),
        dns: spec.resolver.as_ref().map(dns),
        labels,
        linux: Some(LinuxSandbox { security_context: Some(security), sysctls }),
    }
}

fn dns(resolver: &Resolver) -> Dns {
    Dns {
        servers: resolver.servers.iter().map(ToString::to_string).collect(),
        searches: resolver.searches.clone(),
        options: resolver.options.clone(),
    }
}

/// Returns the namespaces of a pod: shared for network and IPC, separate for the processes of each container.
fn namespaces(host_network: bool) -> Namespaces {
    let shared = if host_network { NamespaceMode::Node } else { NamespaceMode::Pod };
    Namespaces {
        network: shared as i32,
        pid: NamespaceMode::Container as i32,
        ipc: NamespaceMode::Pod as i32,
    }
}

/// The input of a container's creation, beside the specification.
pub(super) struct Surroundings<'a> {
    /// The ID of the sandbox in the container runtime.
    pub(super) sandbox: &'a str,
    pub(super) sandbox_config: &'a SandboxConfig,
    /// The user of the image.
    pub(super) user: &'a ImageUser,
    /// The file for [`HOSTS`].
    pub(super) hosts: &'a Path,
    pub(super) host_network: bool,
}

/// Returns the request that creates a container.
pub(super) fn container(
    spec: &ContainerSpec,
    surroundings: &Surroundings<'_>,
) -> Result<CreateContainerRequest, RuntimeError> {
    check(spec, surroundings.user)?;
    let variable = |(name, value): &(String, String)| Variable { name: name.clone(), value: value.clone() };
    let security = security(spec, surroundings);
    let linux = LinuxContainer { resources: resources(spec.limits), security_context: Some(security) };
    let config = ContainerConfig {
        metadata: Some(ContainerMetadata { name: spec.name.clone(), attempt: spec.attempt }),
        image: Some(ImageSpec { image: spec.image.clone() }),
        command: spec.command.clone(),
        arguments: spec.arguments.clone(),
        working_directory: spec.working_directory.clone().unwrap_or_default(),
        environment: spec.environment.iter().map(variable).collect(),
        mounts: mounts(spec, surroundings.hosts)?,
        labels: surroundings.sandbox_config.labels.clone(),
        log_path: text(spec.log.strip_prefix("/").unwrap_or(&spec.log))?,
        stdin: spec.stdin,
        stdin_once: spec.stdin_once,
        terminal: spec.terminal,
        linux: Some(linux),
    };
    Ok(CreateContainerRequest {
        sandbox: surroundings.sandbox.to_owned(),
        config: Some(config),
        sandbox_config: Some(surroundings.sandbox_config.clone()),
    })
}

/// Refuses root if the specification says so, and words that are no arguments of a program.
fn check(spec: &ContainerSpec, user: &ImageUser) -> Result<(), RuntimeError> {
    let user = match user {
        ImageUser::Number(number) => number.to_string(),
        ImageUser::Name(name) => name.clone(),
    };
    program::check_user(spec, &ImageConfig { user, ..ImageConfig::default() })?;
    let words = spec.command.iter().chain(&spec.arguments);
    if words.chain(spec.environment.iter().map(|(_, value)| value)).any(|word| word.contains('\0')) {
        return Err(RuntimeError::Config(
            "a word of the command or the environment contains a NUL byte".into(),
        ));
    }
    Ok(())
}

fn mounts(spec: &ContainerSpec, hosts: &Path) -> Result<Vec<Mount>, RuntimeError> {
    let mut mounts = Vec::new();
    for mount in &spec.mounts {
        if !mount.target.is_absolute() {
            return Err(RuntimeError::Config(format!(
                "the mount path {} is not absolute",
                mount.target.display()
            )));
        }
        let (target, source) = (text(&mount.target)?, text(&mount.source)?);
        mounts.push(Mount { target, source, read_only: mount.read_only });
    }
    if !mounts.iter().any(|mount| mount.target == HOSTS) {
        let (target, source) = (HOSTS.to_owned(), text(hosts)?);
        mounts.push(Mount { target, source, read_only: spec.read_only_root });
    }
    // A mount hides the mounts below, unless the mounts below come later.
    mounts.sort_by(|a, b| a.target.cmp(&b.target));
    Ok(mounts)
}

/// Returns a path as text: messages have no other paths.
fn text(path: &Path) -> Result<String, RuntimeError> {
    let text = path.to_str().map(str::to_owned);
    text.ok_or_else(|| RuntimeError::Config(format!("the path {} is not UTF-8", path.display())))
}

fn security(spec: &ContainerSpec, surroundings: &Surroundings<'_>) -> ContainerSecurity {
    let User { user, group, supplementary_groups, .. } = &spec.user;
    let (number, name) = match (user, surroundings.user) {
        (Some(user), _) => (Some(i64::from(*user)), String::new()),
        // A group without a user is refused by the container runtime.
        (None, ImageUser::Number(number)) => (group.map(|_| *number), String::new()),
        (None, ImageUser::Name(name)) => (None, if group.is_some() { name.clone() } else { String::new() }),
    };
    let owned = |paths: &[&str]| paths.iter().map(|path| (*path).to_owned()).collect();
    ContainerSecurity {
        namespaces: Some(namespaces(surroundings.host_network)),
        user: number.map(|value| Int64 { value }),
        group: group.map(|group| Int64 { value: group.into() }),
        user_name: name,
        read_only_root: spec.read_only_root,
        supplementary_groups: supplementary_groups.iter().copied().map(i64::from).collect(),
        no_new_privileges: true,
        masked_paths: owned(&MASKED),
        read_only_paths: owned(&READ_ONLY),
        seccomp: Some(SecurityProfile::default()),
    }
}

/// Returns the limits, if there are limits.
fn resources(limits: Limits) -> Option<Resources> {
    if limits == Limits::default() {
        return None;
    }
    let mut resources = Resources::default();
    if let Some(cpu) = limits.cpu {
        resources.cpu_period = PERIOD as i64;
        resources.cpu_quota = signed(cpu.saturating_mul(PERIOD / 1000).max(SMALLEST_QUOTA));
        resources.cpu_shares = signed((cpu.saturating_mul(SHARES) / 1000).max(2));
    }
    resources.memory_limit = limits.memory.map_or(0, signed);
    if let Some(processes) = limits.processes {
        resources.unified.insert("pids.max".into(), processes.to_string());
    }
    Some(resources)
}

fn signed(number: u64) -> i64 {
    i64::try_from(number).unwrap_or(i64::MAX)
}

#[cfg(test)]
mod tests;
