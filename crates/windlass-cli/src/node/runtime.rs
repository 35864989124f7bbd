//! How the programs of pods run.

use std::sync::Arc;

use clap::ValueEnum;
use windlass_node::{Plain, Runtime, StoreImages};

use super::directory::NodeDirectory;
use crate::error::Result;
use crate::output::Output;

/// How programs run.
#[derive(ValueEnum, Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum RuntimeKind {
    /// In namespaces where this machine allows it. Otherwise all pods are simulated, and the reason is printed
    Auto,
    /// In Linux namespaces. Without namespaces, the command fails
    Namespaces,
    /// As processes, with the files and ports of this machine: one replica for each port
    Plain,
    /// In containers of containerd or another container runtime of this machine, by its CRI socket
    Cri,
}

impl RuntimeKind {
    /// Starts the runtime.
    pub(super) async fn start(
        self,
        images: Arc<StoreImages>,
        endpoint: Option<String>,
        directory: &NodeDirectory,
        out: &mut Output,
    ) -> Result<Arc<dyn Runtime>> {
        match self {
            Self::Cri => in_containers(images, endpoint, directory).await,
            Self::Auto | Self::Namespaces => in_namespaces(images, directory, out).await,
            Self::Plain => {
                out.line(format_args!(
                    "programs of pods run as processes of this machine: a pod proves the manifests and the rights, not the image"
                ));
                Ok(Arc::new(Plain::new(images, directory.kubeconfigs())))
            }
        }
    }
}

#[cfg(target_os = "linux")]
async fn in_namespaces(
    images: Arc<StoreImages>,
    directory: &NodeDirectory,
    out: &mut Output,
) -> Result<Arc<dyn Runtime>> {
    use windlass_node::{Namespaces, NamespacesConfig};

    let launcher = std::env::current_exe()?;
    let config = NamespacesConfig { launcher, state_dir: directory.runtimes(), images };
    let runtime = Namespaces::new(config).await?;
    if let Some(why) = runtime.limits_missing() {
        out.line(format_args!("limits of memory and CPU have no effect on pods: {why}"));
    }
    Ok(Arc::new(runtime))
}

#[cfg(not(target_os = "linux"))]
#[expect(clippy::unused_async, reason = "as on Linux")]
async fn in_namespaces(_: Arc<StoreImages>, _: &NodeDirectory, _: &mut Output) -> Result<Arc<dyn Runtime>> {
    Err("only Linux has namespaces; `--runtime plain` runs the programs of pods as processes".into())
}

/// The socket of containerd.
#[cfg(all(target_os = "linux", feature = "cri"))]
const CONTAINERD: &str = "unix:///run/containerd/containerd.sock";

#[cfg(all(target_os = "linux", feature = "cri"))]
async fn in_containers(
    images: Arc<StoreImages>,
    endpoint: Option<String>,
    directory: &NodeDirectory,
) -> Result<Arc<dyn Runtime>> {
    use windlass_node::{Cri, CriConfig};

    let config = CriConfig {
        endpoint: endpoint.unwrap_or_else(|| CONTAINERD.to_owned()),
        directory: directory.sandboxes(),
        store: crate::image::open_of_user()?,
        images: StoreImages::clone(&images),
    };
    Ok(Arc::new(Cri::new(config).await?))
}

#[cfg(not(all(target_os = "linux", feature = "cri")))]
#[expect(clippy::unused_async, reason = "as with the feature")]
async fn in_containers(
    _: Arc<StoreImages>,
    _: Option<String>,
    _: &NodeDirectory,
) -> Result<Arc<dyn Runtime>> {
    Err(crate::error::Advice::new(
        "this windlass cannot use a container runtime",
        "on Linux, install windlass with `cargo install windlass-cli --features cri`",
    ))
}
