//! `windlass cluster`

use std::path::PathBuf;

use clap::Args;

use crate::control_plane::ControlPlane;
use crate::error::Result;
use crate::signals::Stop;
use crate::voice::Voice;

/// Where the kubeconfig goes unless told otherwise.
pub(super) const KUBECONFIG: &str = ".windlass/kubeconfig";

/// Run a control plane in the foreground, until Ctrl-C.
///
/// A Kubernetes API server with the controllers of a cluster and one simulated node, all in this process, on the loopback address.
/// Its kubeconfig is written when it is ready to serve. Nothing is kept when it ends.
#[derive(Args)]
#[command(after_help = "\
Examples:
  windlass cluster
  kubectl --kubeconfig .windlass/kubeconfig create deployment web --image nginx --replicas 3

  windlass cluster --port 6443 --kubeconfig /tmp/kubeconfig
  KUBECONFIG=/tmp/kubeconfig helm install ...

Pods are simulated. Annotations tell what they do: kubelet.windlass.dev/run-for: 5s,
/exit-code: \"1\", /start-after: 2s, /ready-after: 1s, /stop-after: 3s, /image-pull: fail;
with .CONTAINER appended, for one container.")]
pub(crate) struct Cluster {
    /// The port of the API server; 0 is any free one.
    #[arg(long, default_value_t = 0)]
    port: u16,

    /// Where to write the kubeconfig; it grants everything, so it is for your eyes only (mode 0600).
    #[arg(long, value_name = "FILE", default_value = KUBECONFIG)]
    kubeconfig: PathBuf,

    /// The API server alone, without controllers: nothing is collected, scheduled or run.
    #[arg(long)]
    bare: bool,
}

impl Cluster {
    pub(crate) async fn run(self, voice: &mut Voice) -> Result<()> {
        let stop = Stop::listen()?;
        let mut plane = ControlPlane::start(self.port).await?;
        plane.write_kubeconfig(&self.kubeconfig)?;
        let path = self.kubeconfig.display();
        voice.line(format_args!("{} serves since {} ms", plane.url(), plane.took().as_millis()));
        voice.line(format_args!("kubeconfig: {path}"));
        voice.line("");
        voice.line(format_args!("  kubectl --kubeconfig {path} get namespaces"));
        voice.line("");
        voice.line("Ctrl-C ends it; nothing is kept.");
        if !self.bare {
            plane.start_controllers();
        }
        let outcome = tokio::select! {
            biased;
            () = stop.asked() => Ok(()),
            failed = plane.controllers_failed() => failed,
        };
        plane.stop().await;
        outcome
    }
}
