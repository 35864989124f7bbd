//! The node of a control plane: which pods run their programs, and how.

mod directory;
#[cfg(target_os = "linux")]
mod namespaces;

use clap::{Args, ValueEnum};
use windlass_controllers::PodMode;
use windlass_dev::PodRunner;

use self::directory::NodeDirectory;
use crate::error::Result;
use crate::output::Output;

/// The flags of the node.
#[derive(Args, Debug)]
#[command(next_help_heading = "Pods")]
pub(crate) struct NodeArgs {
    /// Which pods run their programs; all others are simulated
    #[arg(long, value_enum, default_value_t = Pods::Local)]
    pods: Pods,

    /// How programs run
    #[arg(long, value_enum, default_value_t = RuntimeKind::Auto)]
    runtime: RuntimeKind,

    /// Let pods reach this port of 127.0.0.1, at host.windlass.internal. May be repeated
    #[arg(long, value_name = "PORT")]
    expose_host: Vec<u16>,

    /// Pull images from this registry, too; by plain HTTP if HTTPS fails. Registries on loopback addresses need no flag. May be
    /// repeated
    #[arg(long, value_name = "HOST[:PORT]")]
    registry: Vec<String>,
}

/// Which pods run their programs.
#[derive(ValueEnum, Clone, Copy, Debug, PartialEq, Eq)]
enum Pods {
    /// Pods whose images are in the local store, or in a registry on a loopback address
    Local,
    /// None
    Simulate,
    /// All. An image that cannot be pulled is ErrImagePull
    All,
}

/// How programs run.
#[derive(ValueEnum, Clone, Copy, Debug, PartialEq, Eq)]
enum RuntimeKind {
    /// In namespaces where this machine allows it. Otherwise all pods are simulated, and the reason is printed
    Auto,
    /// In Linux namespaces. Without them, the command fails
    Namespaces,
}

/// What runs the programs of pods. Dropping it removes the files of the pods.
pub(crate) struct Node {
    pub(crate) runner: PodRunner,
    _directory: NodeDirectory,
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
        let must_run = self.runtime == RuntimeKind::Namespaces || self.pods == Pods::All;
        match self.open(mode, out).await {
            Ok(node) => Ok(Some(node)),
            Err(error) if must_run => Err(error),
            Err(error) => {
                out.line(format_args!("all pods are simulated, no program runs: {error}"));
                Ok(None)
            }
        }
    }

    #[cfg(target_os = "linux")]
    async fn open(self, mode: PodMode, out: &mut Output) -> Result<Node> {
        use std::sync::Arc;

        use windlass_controllers::RunningPods;

        let directory = NodeDirectory::create()?;
        let runtime = namespaces::start(directory.runtimes(), self.registry).await?;
        if let Some(why) = runtime.limits_missing() {
            out.line(format_args!("limits of memory and CPU have no effect on pods: {why}"));
        }
        let pods = RunningPods::new(Arc::new(runtime), directory.pods());
        let runner = PodRunner { pods, mode, host_ports: self.expose_host };
        Ok(Node { runner, _directory: directory })
    }

    #[cfg(not(target_os = "linux"))]
    #[expect(clippy::unused_async, reason = "as on Linux")]
    async fn open(self, _: PodMode, _: &mut Output) -> Result<Node> {
        Err("programs of pods run on Linux only".into())
    }
}
