//! `windlass run`

use clap::Args;

use crate::error::Result;
use crate::output::Output;
use crate::project::{ClusterArgs, Operator, Workspace};
use crate::signals::ShutdownSignal;

/// Build the operator and run it on this machine, on a cluster.
///
/// `windlass install` installs its CRDs. Without a cluster, `windlass cluster` starts one, or use `windlass dev`.
#[derive(Args)]
#[command(after_help = "\
Examples:
  windlass run
  windlass run --kubeconfig ~/.kube/config --context staging
  windlass run -- --log-level debug --metrics-bind-address :8080     # flags of the operator")]
pub(crate) struct Run {
    #[command(flatten)]
    cluster: ClusterArgs,

    /// Flags of the operator.
    #[arg(last = true, value_name = "FLAG")]
    flags: Vec<String>,
}

impl Run {
    pub(crate) async fn run(self, out: &mut Output) -> Result<()> {
        let shutdown = ShutdownSignal::listen()?;
        let workspace = Workspace::current()?;
        let cluster = self.cluster.connect(&workspace, out).await?;
        let program = tokio::select! {
            biased;
            () = shutdown.received() => return Ok(()),
            program = workspace.build(out) => program?,
        };
        out.line(format_args!("running {}; Ctrl-C stops it", workspace.project.project_name));
        Operator::new(program).start(&cluster, &self.flags)?.run(&shutdown).await
    }
}
