//! `windlass dev`

use clap::{ArgAction, Args};

use crate::dev;
use crate::error::Result;
use crate::output::Output;
use crate::project::{ClusterArgs, Workspace};
use crate::signals::ShutdownSignal;
use crate::webhooks::WebhookArgs;

/// Run the operator on an embedded control plane; rebuild and restart the operator on each save.
///
/// Starts an API server, the controllers of a cluster and one simulated node in this process, installs the
/// CRDs of the project, applies config/samples, and runs the operator. The operator's log and the changes of
/// the operator's objects appear in one stream. On each save, the operator is built again; CRDs and samples
/// that changed are applied, and objects are kept. The API server calls the operator's webhooks. With
/// --kubeconfig or --context, all that happens on another cluster.
#[derive(Args)]
#[command(after_help = "\
Examples:
  windlass dev
  kubectl --kubeconfig .windlass/kubeconfig get all       # in another terminal
  windlass dev --context kind-kind                        # on another cluster
  windlass dev -- --log-level debug                       # flags of the operator

All state of the control plane is in memory and is lost at the end.")]
pub(crate) struct Dev {
    /// Listen on this port of 127.0.0.1. 0 chooses a free port.
    #[arg(long, default_value_t = 0, conflicts_with_all = ["kubeconfig", "context"])]
    port: u16,

    /// Let simulated pods wait for missing ConfigMaps and Secrets, and for the delays of probes. --strict=false lets every simulated
    /// pod run at once.
    #[arg(
        long,
        value_name = "BOOL",
        default_value_t = true,
        default_missing_value = "true",
        num_args = 0..=1,
        require_equals = true,
        action = ArgAction::Set,
        conflicts_with_all = ["kubeconfig", "context"]
    )]
    strict: bool,

    /// Apply no samples.
    #[arg(long)]
    no_samples: bool,

    #[command(flatten)]
    cluster: ClusterArgs,

    #[command(flatten)]
    webhooks: WebhookArgs,

    /// Flags of the operator.
    #[arg(last = true, value_name = "FLAG")]
    flags: Vec<String>,
}

impl Dev {
    pub(crate) async fn run(self, out: &mut Output) -> Result<()> {
        let shutdown = ShutdownSignal::listen()?;
        let workspace = Workspace::current()?;
        let Self { port, strict, no_samples, cluster, webhooks, flags } = self;
        let is_embedded = !cluster.is_named();
        let options = dev::Options { port, strict, samples: !no_samples, webhooks, flags, is_embedded };
        dev::run(&workspace, &cluster, options, &shutdown, out).await
    }
}
