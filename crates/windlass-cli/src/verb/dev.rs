//! `windlass dev`

use clap::{ArgAction, ArgGroup, Args};

use crate::dev;
use crate::error::Result;
use crate::node::SimulatedNodeArgs;
use crate::output::Output;
use crate::project::{ClusterArgs, Workspace};
use crate::signals::ShutdownSignal;
use crate::webhooks::WebhookArgs;

/// The flags of the embedded control plane.
const EMBEDDED: [&str; 7] =
    ["port", "strict", "nodes", "zones", "node_label", "node_file", "node_monitor_grace_period"];

/// Run the operator on an embedded control plane; rebuild and restart the operator on each save.
///
/// Starts an API server, the controllers of a cluster and simulated nodes in this process, installs the
/// CRDs of the project, applies config/samples, and runs the operator. The operator's log and the changes of
/// the operator's objects appear in one stream. On each save, the operator is built again; CRDs and samples
/// that changed are applied, and objects are kept. The API server calls the operator's webhooks. With
/// --kubeconfig or --context, all that happens on another cluster.
#[derive(Args)]
#[command(after_help = "\
Examples:
  windlass dev
  kubectl --kubeconfig .windlass/kubeconfig get all       # in another terminal
  windlass dev --nodes 3 --zones a,b                      # three nodes in two zones
  windlass dev --context kind-kind                        # on another cluster
  windlass dev -- --log-level debug                       # flags of the operator

All state of the control plane is in memory and is lost at the end.")]
#[command(group = ArgGroup::new("embedded").args(EMBEDDED).multiple(true).conflicts_with_all(["kubeconfig", "context"]))]
pub(crate) struct Dev {
    /// Listen on this port of 127.0.0.1. 0 chooses a free port.
    #[arg(long, default_value_t = 0)]
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
        action = ArgAction::Set
    )]
    strict: bool,

    /// Apply no samples.
    #[arg(long)]
    no_samples: bool,

    #[command(flatten)]
    cluster: ClusterArgs,

    #[command(flatten)]
    webhooks: WebhookArgs,

    #[command(flatten)]
    nodes: SimulatedNodeArgs,

    /// Flags of the operator.
    #[arg(last = true, value_name = "FLAG")]
    flags: Vec<String>,
}

impl Dev {
    pub(crate) async fn run(self, out: &mut Output) -> Result<()> {
        let shutdown = ShutdownSignal::listen()?;
        let workspace = Workspace::current()?;
        let Self { port, strict, no_samples, cluster, webhooks, nodes, flags } = self;
        let is_embedded = !cluster.is_named();
        let options =
            dev::Options { port, strict, nodes, samples: !no_samples, webhooks, flags, is_embedded };
        dev::run(&workspace, &cluster, options, &shutdown, out).await
    }
}

#[cfg(test)]
mod tests {
    use clap::Parser;
    use clap::error::ErrorKind;

    use super::*;

    #[derive(Parser)]
    struct Command {
        #[command(flatten)]
        dev: Dev,
    }

    fn parse(flags: &[&str]) -> std::result::Result<Dev, ErrorKind> {
        let parsed = Command::try_parse_from([&["windlass"], flags].concat());
        parsed.map(|command| command.dev).map_err(|error| error.kind())
    }

    #[test]
    fn nodes_are_those_of_an_embedded_control_plane() {
        let dev = parse(&["--nodes", "3", "--zones", "a,b", "--strict=false"]).unwrap();
        assert_eq!(dev.nodes.nodes().unwrap().len(), 3);
        for flag in [&["--nodes", "3"][..], &["--node-label", "a=b"], &["--port", "1"], &["--strict"]] {
            assert_eq!(
                parse(&[flag, &["--context", "kind"]].concat()).err(),
                Some(ErrorKind::ArgumentConflict)
            );
        }
        assert!(parse(&["--context", "kind"]).is_ok());
    }
}
