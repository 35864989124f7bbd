//! `windlass run`

use std::convert::Infallible;
use std::process::ExitStatus;

use clap::Args;
use windlass_codegen::WebhooksDeclaration;

use crate::error::Result;
use crate::output::Output;
use crate::project::{Child, ClusterArgs, Operator, Workspace};
use crate::signals::ShutdownSignal;
use crate::webhooks::{self, LocalWebhooks, WebhookArgs};

/// Build the operator and run it on this machine, on a cluster.
///
/// `windlass install` installs the CRDs. Without a cluster, start a cluster with `windlass cluster`, or use
/// `windlass dev`. The API server calls the operator's webhooks while the operator runs, if the API server
/// reaches this machine.
#[derive(Args)]
#[command(after_help = "\
Examples:
  windlass run
  windlass run --kubeconfig ~/.kube/config --context staging
  windlass run -- --log-level debug --metrics-bind-address :8080     # flags of the operator")]
pub(crate) struct Run {
    #[command(flatten)]
    cluster: ClusterArgs,

    #[command(flatten)]
    webhooks: WebhookArgs,

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
        let operator = Operator::new(program);
        let inventory = operator.inventory().await?;
        webhooks::forget_abandoned(&cluster.client, &workspace, out).await?;
        let declared = inventory.webhooks;
        let mut webhooks = match declared {
            Some(_) => LocalWebhooks::prepare(&workspace, &cluster, &self.webhooks, &self.flags, out)?,
            None => None,
        };
        let own = webhooks.as_ref().map(LocalWebhooks::flags).unwrap_or_default();
        let converted = match (&mut webhooks, &declared) {
            (Some(webhooks), Some(declared)) => webhooks.convert(declared, out).await,
            _ => Ok(()),
        };
        let started = match converted {
            Ok(()) => operator.start(&workspace, &cluster, &own, &self.flags, out).await,
            Err(error) => Err(error),
        };
        let mut child = match (started, &mut webhooks) {
            (Err(error), Some(webhooks)) => {
                webhooks.clean_up(out).await;
                return Err(error);
            }
            (started, _) => started?,
        };
        let ended = tokio::select! {
            biased;
            () = shutdown.received() => Ok(None),
            ended = child.ended() => ended.map(Some),
            Err(error) = register(webhooks.as_mut(), declared.as_ref(), out) => Err(error),
        };
        finish(child, ended, webhooks, out).await
    }
}

/// Registers the webhooks, and never ends but with an error.
async fn register(
    webhooks: Option<&mut LocalWebhooks>,
    declared: Option<&WebhooksDeclaration>,
    out: &mut Output,
) -> Result<Infallible> {
    if let (Some(webhooks), Some(declared)) = (webhooks, declared) {
        webhooks.register(declared, out).await?;
    }
    std::future::pending().await
}

/// Removes the webhooks first, while the operator still answers webhooks, and then stops a running operator.
async fn finish(
    mut child: Child,
    ended: Result<Option<ExitStatus>>,
    webhooks: Option<LocalWebhooks>,
    out: &mut Output,
) -> Result<()> {
    if let Some(mut webhooks) = webhooks {
        webhooks.clean_up(out).await;
    }
    let status = match &ended {
        Ok(Some(status)) => *status,
        _ => child.stop().await?,
    };
    ended?;
    if status.success() { Ok(()) } else { Err(format!("the operator ended with {status}").into()) }
}
