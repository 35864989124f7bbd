//! The specifications that the runtime gets: everything resolved.

use std::collections::BTreeMap;
use std::net::IpAddr;
use std::path::{Path, PathBuf};
use std::time::SystemTime;

use k8s_openapi::api::core::v1::{Container, PodSpec, VolumeMount};
use windlass_node::{ContainerSpec, Exit, HostName, Image, Mount, SandboxSpec};

use super::action::StartError;
use super::worker::{Job, name};
use crate::kubelet::dns::resolver;
use crate::kubelet::files;
use crate::kubelet::resolve::{Objects, environment, expand, is_read_only, limits, user};
use crate::kubelet::services::{API_SERVER, HOST_ADDRESS, HOST_NAME, RANGES};

const MESSAGE_PATH: &str = "/dev/termination-log";
/// The longest host name.
const MAX_HOST_NAME: usize = 63;

/// Returns the sandbox of a pod.
pub(super) fn sandbox(job: &Job) -> Result<SandboxSpec, String> {
    let host_network = job.spec.host_network == Some(true);
    let address = if host_network { Some(&job.addresses.host_ip) } else { job.addresses.pod_ip.as_ref() };
    let address = address.ok_or("no address is left in the network of the pods")?;
    let own: String = job.spec.hostname.clone().unwrap_or_else(|| name(job));
    let own: String = own.chars().take(MAX_HOST_NAME).collect();
    let service = ["kubernetes.default.svc.cluster.local", "kubernetes.default.svc", "kubernetes.default"];
    let mut hosts = vec![
        host(API_SERVER, service.iter().map(ToString::to_string)),
        host(HOST_ADDRESS, [HOST_NAME.to_owned()]),
    ];
    for alias in job.spec.host_aliases.iter().flatten() {
        let ip: IpAddr = alias.ip.parse().map_err(|_| format!("invalid host alias {:?}", alias.ip))?;
        hosts.push(host(ip, alias.hostnames.iter().flatten().cloned()));
    }
    Ok(SandboxSpec {
        id: job.sandbox(),
        host_name: own.trim_end_matches(['-', '.']).to_owned(),
        address: address.parse().map_err(|_| format!("invalid address {address:?}"))?,
        host_network,
        hosts,
        ranges: RANGES.map(str::to_owned).to_vec(),
        resolver: resolver(&job.spec, job.key.namespace().unwrap_or_default())?,
    })
}

fn host(address: impl Into<IpAddr>, names: impl IntoIterator<Item = String>) -> HostName {
    HostName { address: address.into(), names: names.into_iter().collect() }
}

/// Returns the file of a container's termination message on this machine.
pub(super) fn message_file(directory: &Path, container: &str, attempt: u32) -> PathBuf {
    directory.join("messages").join(format!("{container}-{attempt}"))
}

/// Resolves a container, and creates the file of the termination message.
pub(super) fn container(
    job: &Job,
    objects: &Objects,
    container: &Container,
    attempt: u32,
    image: Image,
    directory: &Path,
    log: PathBuf,
) -> Result<ContainerSpec, StartError> {
    let config = |message| StartError { reason: "CreateContainerConfigError", message };
    let environment = environment(job.scope(objects), container).map_err(config)?;
    let variables: BTreeMap<&str, &str> =
        environment.iter().map(|(name, value)| (name.as_str(), value.as_str())).collect();
    let value = |name: &str| variables.get(name).copied();
    let words = |words: &Option<Vec<String>>| -> Vec<String> {
        words.iter().flatten().map(|word| expand(word, value)).collect()
    };
    let mut mounts = Vec::new();
    for mount in container.volume_mounts.iter().flatten() {
        let part = mount.sub_path_expr.as_deref().map(|text| expand(text, value));
        let part = part.or_else(|| mount.sub_path.clone()).unwrap_or_default();
        mounts.push(volume_mount(&job.spec, directory, mount, &part).map_err(config)?);
    }
    let message = message_file(directory, &container.name, attempt);
    files::create_message_file(&message).map_err(|error| config(error.to_string()))?;
    let target = container.termination_message_path.as_deref().filter(|path| !path.is_empty());
    let target = PathBuf::from(target.unwrap_or(MESSAGE_PATH));
    mounts.push(Mount { source: message, target, read_only: false });
    let own = container.security_context.as_ref();
    Ok(ContainerSpec {
        name: container.name.clone(),
        attempt,
        image: image.id,
        command: words(&container.command),
        arguments: words(&container.args),
        working_directory: container.working_dir.clone().filter(|path| !path.is_empty()),
        mounts,
        user: user(&job.spec, container, &job.title()).map_err(config)?,
        read_only_root: own.and_then(|own| own.read_only_root_filesystem).unwrap_or(false),
        limits: limits(container.resources.as_ref()),
        log,
        terminal: container.tty == Some(true),
        stdin: container.stdin == Some(true),
        stdin_once: container.stdin_once == Some(true),
        environment,
    })
}

fn volume_mount(spec: &PodSpec, directory: &Path, mount: &VolumeMount, part: &str) -> Result<Mount, String> {
    let volume = directory.join("volumes").join(&mount.name);
    let failed = |error: std::io::Error| {
        format!("failed to prepare subPath for volumeMount {:?}: {error}", mount.name)
    };
    let source =
        if part.is_empty() { volume } else { files::part_of_volume(&volume, part).map_err(failed)? };
    let target = Path::new("/").join(&mount.mount_path);
    let mut volumes = spec.volumes.iter().flatten();
    let is_fixed = volumes.any(|volume| volume.name == mount.name && is_read_only(volume));
    Ok(Mount { source, target, read_only: is_fixed || mount.read_only == Some(true) })
}

/// Returns the exit of a container with an unknown end.
pub(super) fn lost() -> Exit {
    let now = SystemTime::now();
    Exit { code: 137, signal: None, out_of_memory: false, started_at: now, finished_at: now }
}
