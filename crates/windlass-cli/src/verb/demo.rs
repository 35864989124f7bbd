//! `windlass demo`

use std::path::PathBuf;
use std::time::Duration;

use clap::Args;

use super::cluster::KUBECONFIG;
use crate::demo;
use crate::error::Result;
use crate::signals::Stop;
use crate::voice::Voice;

/// Watch an operator at work: a control plane, a CRD, and the pods it keeps.
///
/// Runs the CustomPod operator on a control plane of its own, creates a CustomPod that wants one pod, and tells in plain words what
/// happens, until Ctrl-C. It also tells which kubectl lines to try meanwhile, in another terminal.
#[derive(Args)]
#[command(after_help = "\
Examples:
  windlass demo
  windlass demo --tour")]
pub(crate) struct Demo {
    /// Do it all alone: 1 pod, 3 pods, 1 pod, a pod deleted by hand, the object deleted; end with success only if all was seen.
    #[arg(long)]
    tour: bool,

    /// The port of the API server; 0 is any free one.
    #[arg(long, default_value_t = 0)]
    port: u16,

    /// Where to write the kubeconfig (mode 0600). The tour writes none unless it is told where.
    #[arg(long, value_name = "FILE")]
    kubeconfig: Option<PathBuf>,

    /// How long each step of the tour may take, in seconds.
    #[arg(long, value_name = "SECONDS", default_value_t = 30, requires = "tour")]
    step_timeout: u64,
}

impl Demo {
    pub(crate) async fn run(self, voice: &mut Voice) -> Result<()> {
        let stop = Stop::listen()?;
        if self.tour {
            let limit = Duration::from_secs(self.step_timeout);
            return demo::tour(self.port, self.kubeconfig.as_deref(), limit, &stop, voice).await;
        }
        let kubeconfig = self.kubeconfig.unwrap_or_else(|| KUBECONFIG.into());
        demo::watch(self.port, &kubeconfig, &stop, voice).await
    }
}
