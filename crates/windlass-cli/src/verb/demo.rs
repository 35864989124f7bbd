//! `windlass demo`

use std::path::PathBuf;
use std::time::Duration;

use clap::Args;

use crate::demo;
use crate::error::Result;
use crate::output::Output;
use crate::project::local_kubeconfig;
use crate::signals::ShutdownSignal;

/// Run an example operator on an embedded control plane, and print the operator's changes.
///
/// Runs the CustomPod operator, creates a CustomPod with one replica, and prints each change of CustomPods
/// and pods until Ctrl-C. The demo also prints kubectl commands to try in another terminal.
#[derive(Args)]
#[command(after_help = "\
Examples:
  windlass demo
  windlass demo --tour")]
pub(crate) struct Demo {
    /// Go through all steps and end: 1 pod, 3 pods, 1 pod, a pod deleted by hand, the CustomPod deleted. Fails if a step has not the
    /// expected result.
    #[arg(long)]
    tour: bool,

    /// Listen on this port of 127.0.0.1. 0 chooses a free port.
    #[arg(long, default_value_t = 0)]
    port: u16,

    /// Write the kubeconfig to this file, with mode 0600. Default: .windlass/kubeconfig in the folder of the project, or outside of a project
    /// in the current folder; with --tour, none is written.
    #[arg(long, value_name = "FILE")]
    kubeconfig: Option<PathBuf>,

    /// How long each step of the tour may take, in seconds.
    #[arg(long, value_name = "SECONDS", default_value_t = 30, requires = "tour")]
    step_timeout: u64,
}

impl Demo {
    pub(crate) async fn run(self, out: &mut Output) -> Result<()> {
        let shutdown = ShutdownSignal::listen()?;
        if self.tour {
            let limit = Duration::from_secs(self.step_timeout);
            return demo::tour(self.port, self.kubeconfig.as_deref(), limit, &shutdown, out).await;
        }
        let kubeconfig = self.kubeconfig.map_or_else(local_kubeconfig, Ok)?;
        demo::watch(self.port, &kubeconfig, &shutdown, out).await
    }
}
