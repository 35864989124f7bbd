//! The files that the containers of a sandbox share, and the roots of containers.

use std::fmt::Write;
use std::fs;
use std::io;
use std::path::{Path, PathBuf};

use crate::helper::protocol::{MountSetup, RootSetup};
use crate::{ContainerSpec, Resolver, RuntimeError, SandboxSpec};

/// The shared files, and their paths in a container.
const SHARED: [(&str, &str); 3] =
    [("hosts", "/etc/hosts"), ("hostname", "/etc/hostname"), ("resolv.conf", "/etc/resolv.conf")];

/// Creates the shared files of a sandbox.
pub(super) fn create(directory: &Path, spec: &SandboxSpec) -> Result<(), RuntimeError> {
    let io = |error| RuntimeError::Io { doing: format!("create {}", directory.display()), error };
    fs::create_dir_all(directory.parent().unwrap_or(directory))
        .and_then(|()| fs::create_dir(directory))
        .map_err(io)?;
    let resolver = match &spec.resolver {
        Some(resolver) => resolv_conf(resolver),
        None => fs::read_to_string("/etc/resolv.conf").unwrap_or_default(),
    };
    fs::write(directory.join("hosts"), hosts(spec)).map_err(io)?;
    fs::write(directory.join("hostname"), format!("{}\n", spec.host_name)).map_err(io)?;
    fs::write(directory.join("resolv.conf"), resolver).map_err(io)
}

/// Returns the text of `/etc/hosts`.
pub(crate) fn hosts(spec: &SandboxSpec) -> String {
    let mut text =
        "# Kubernetes-managed hosts file.\n127.0.0.1\tlocalhost\n::1\tlocalhost ip6-localhost ip6-loopback\n"
            .to_owned();
    let _ = writeln!(text, "{}\t{}", spec.address, spec.host_name);
    for host in &spec.hosts {
        let _ = writeln!(text, "{}\t{}", host.address, host.names.join("\t"));
    }
    text
}

fn resolv_conf(resolver: &Resolver) -> String {
    let mut text = String::new();
    for server in &resolver.servers {
        let _ = writeln!(text, "nameserver {server}");
    }
    for (keyword, words) in [("search", &resolver.searches), ("options", &resolver.options)] {
        if !words.is_empty() {
            let _ = writeln!(text, "{keyword} {}", words.join(" "));
        }
    }
    text
}

/// Returns the mounts of a container: those of the specification, and the shared files unless the specification has others.
pub(super) fn mounts(shared: &Path, spec: &ContainerSpec) -> Result<Vec<MountSetup>, RuntimeError> {
    let mut mounts = Vec::new();
    for mount in &spec.mounts {
        if !mount.target.is_absolute() {
            return Err(RuntimeError::Config(format!(
                "the mount path {} is not absolute",
                mount.target.display()
            )));
        }
        let (source, target) = (mount.source.clone(), mount.target.clone());
        mounts.push(MountSetup { source, target, read_only: mount.read_only });
    }
    for (name, target) in SHARED {
        let target = PathBuf::from(target);
        if !mounts.iter().any(|mount| mount.target == target) {
            mounts.push(MountSetup { source: shared.join(name), target, read_only: spec.read_only_root });
        }
    }
    Ok(mounts)
}

/// Prepares the root of a container: an overlay, or a copy where overlays do not work.
pub(super) fn root(image: &Path, directory: &Path, overlay: bool) -> io::Result<RootSetup> {
    fs::create_dir_all(directory)?;
    let [upper, work, merged] = ["upper", "work", "merged"].map(|name| directory.join(name));
    let readable = |path: &Path| !path.to_string_lossy().contains([',', ':', '\\']);
    if overlay && readable(image) && readable(directory) {
        for path in [&upper, &work, &merged] {
            fs::create_dir(path)?;
        }
        return Ok(RootSetup::Overlay { lower: image.to_owned(), upper, work, merged });
    }
    fs::create_dir(&merged)?;
    copy(image, &merged)?;
    Ok(RootSetup::Directory(merged))
}

/// Copies directories, files and links. Other files are left out.
fn copy(from: &Path, to: &Path) -> io::Result<()> {
    let mut pending = vec![(from.to_owned(), to.to_owned())];
    while let Some((from, to)) = pending.pop() {
        for entry in fs::read_dir(&from)? {
            let entry = entry?;
            let (kind, target) = (entry.file_type()?, to.join(entry.file_name()));
            if kind.is_dir() {
                fs::create_dir(&target)?;
                fs::set_permissions(&target, entry.metadata()?.permissions())?;
                pending.push((entry.path(), target));
            } else if kind.is_symlink() {
                std::os::unix::fs::symlink(fs::read_link(entry.path())?, &target)?;
            } else if kind.is_file() {
                fs::copy(entry.path(), &target)?;
            }
        }
    }
    Ok(())
}
