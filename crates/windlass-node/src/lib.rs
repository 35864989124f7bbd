//! Runs the programs of pods on this machine.
//!
//! [`Runtime`] is the interface between a kubelet and the programs: the kubelet decides what runs, a `Runtime` runs it. A `Runtime`
//! knows no Kubernetes object: the kubelet resolves environment variables, volumes and users first.
#![forbid(unsafe_code)]

// From the surface down: a module uses only modules further down.
#[cfg(all(target_os = "linux", feature = "cri"))]
mod cri;
pub mod probe;

#[cfg(unix)]
mod plain;
#[cfg(unix)]
pub mod volume;

#[cfg(target_os = "linux")]
mod namespaces;

#[cfg(target_os = "linux")]
mod helper;

#[cfg(target_os = "linux")]
mod cgroup;

#[cfg(unix)]
mod output;
mod program;
mod runtime;
#[cfg(target_os = "linux")]
mod sockets;

mod images;
#[cfg(unix)]
pub mod log;

mod session;
mod spec;

mod error;

#[cfg(all(target_os = "linux", feature = "cri"))]
pub use self::cri::{Cri, CriConfig};
pub use self::error::{PullError, RuntimeError};
#[cfg(target_os = "linux")]
pub use self::helper::launch;
pub use self::images::{DirectoryImages, ImageConfig, Images, StoreImages, Unpacked};
#[cfg(target_os = "linux")]
pub use self::namespaces::{Namespaces, NamespacesConfig};
#[cfg(unix)]
pub use self::plain::Plain;
pub use self::runtime::Runtime;
pub use self::session::Session;
pub use self::spec::{
    Command, CommandOutput, ContainerId, ContainerSpec, Credential, Exit, HostName, Image, Limits, Mount,
    Resolver, SandboxId, SandboxSpec, TerminalSize, User,
};

/// Makes 64 hexadecimal digits: the ID of a container.
fn random_id() -> std::io::Result<String> {
    let mut bytes = [0_u8; 32];
    getrandom::fill(&mut bytes).map_err(std::io::Error::other)?;
    Ok(bytes.iter().fold(String::new(), |text, byte| format!("{text}{byte:02x}")))
}
