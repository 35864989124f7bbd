//! The node of a control plane: the choice of pods whose programs run, and the runtime.

mod directory;
mod images;
mod open_files;
mod runtime;
mod simulated;

use std::time::Duration;

use clap::{Args, ValueEnum};
use windlass_controllers::{PodMode, RunningPods};
use windlass_dev::PodRunner;

use self::directory::NodeDirectory;
use self::runtime::RuntimeKind;
pub(crate) use self::simulated::SimulatedNodeArgs;
use crate::error::{Advice, Result};
use crate::output::Output;

/// The longest time until the programs of all pods have ended.
const STOP: Duration = Duration::from_secs(30);

/// The flags of the node.
#[derive(Args, Debug)]
#[command(next_help_heading = "Pods")]
pub(crate) struct NodeArgs {
    /// Pods that run programs; all others are simulated
    #[arg(long, value_enum, default_value_t = Pods::Local)]
    pods: Pods,

    /// How programs run
    #[arg(long, value_enum, default_value_t = RuntimeKind::Auto)]
    runtime: RuntimeKind,

    /// The socket of the container runtime, for --runtime cri [default: unix:///run/containerd/containerd.sock]
    #[arg(long, value_name = "ENDPOINT")]
    runtime_endpoint: Option<String>,

    /// Let pods reach this port of 127.0.0.1, at host.windlass.internal. May be repeated
    #[arg(long, value_name = "PORT")]
    expose_host: Vec<u16>,

    /// Pull images from this registry, too; by plain HTTP if HTTPS fails. Registries on loopback addresses need no flag. May be
    /// repeated
    #[arg(long, value_name = "HOST[:PORT]")]
    registry: Vec<String>,

    /// The largest size of an image without compression, in GiB. A larger image is ErrImagePull
    #[arg(long, value_name = "GIB", default_value_t = 16, value_parser = clap::value_parser!(u64).range(1..=1 << 20))]
    image_limit: u64,
}

/// The choice of the pods that run programs.
#[derive(ValueEnum, Clone, Copy, Debug, PartialEq, Eq)]
enum Pods {
    /// Pods whose images are in the local store, or in a registry on a loopback address
    Local,
    /// None
    Simulate,
    /// All. An image that cannot be pulled is ErrImagePull
    All,
}

/// The node that runs the programs of pods. Dropping the node removes the volumes and logs of the pods.
pub(crate) struct Node {
    pub(crate) runner: PodRunner,
    _directory: NodeDirectory,
}

impl Node {
    /// Ends the programs of all pods, and removes the files of containers.
    pub(crate) async fn stop(self, out: &mut Output) {
        let ended = tokio::time::timeout(STOP, self.runner.pods.runtime().shut_down()).await;
        if ended.is_err() {
            out.line(format_args!(
                "the pods were not removed within {STOP:?}; the next cluster removes the rest"
            ));
        }
    }
}

impl NodeArgs {
    /// Starts the runtime. Returns `None` if all pods are simulated.
    ///
    /// # Errors
    /// This machine cannot run programs as the flags ask for.
    pub(crate) async fn start(self, out: &mut Output) -> Result<Option<Node>> {
        let mode = match self.pods {
            Pods::Local => PodMode::Local,
            Pods::All => PodMode::All,
            Pods::Simulate => return Ok(None),
        };
        if self.runtime_endpoint.is_some() && self.runtime != RuntimeKind::Cri {
            return Err(Advice::new(
                "--runtime-endpoint has an effect with --runtime cri only",
                "add --runtime cri",
            ));
        }
        let must_run = self.runtime != RuntimeKind::Auto || self.pods == Pods::All;
        match self.open(mode, out).await {
            Ok(node) => Ok(Some(node)),
            Err(error) if must_run => Err(error),
            Err(error) => {
                out.line(format_args!("all pods are simulated, no program runs: {error}"));
                out.line(format_args!("`--runtime plain` runs programs without namespaces"));
                Ok(None)
            }
        }
    }

    async fn open(self, mode: PodMode, out: &mut Output) -> Result<Node> {
        open_files::raise();
        let directory = NodeDirectory::create()?;
        let images = images::images(self.registry, self.image_limit << 30)?;
        let runtime = self.runtime.start(images, self.runtime_endpoint, &directory, out).await?;
        let pods = RunningPods::new(runtime, directory.pods());
        let runner = PodRunner { pods, mode, host_ports: self.expose_host };
        Ok(Node { runner, _directory: directory })
    }
}
