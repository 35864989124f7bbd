//! The demo: the CustomPod operator on an embedded control plane.

mod changes;
mod guide;
mod narrator;
mod operator;
mod tour;

use std::path::Path;
use std::time::Duration;

use windlass_dev::ControlPlane;

use self::operator::Operator;
use crate::error::Result;
use crate::output::Output;
use crate::signals::ShutdownSignal;

/// Runs the operator and prints each change, until the shutdown signal.
pub(crate) async fn watch(
    port: u16,
    kubeconfig: &Path,
    shutdown: &ShutdownSignal,
    out: &mut Output,
) -> Result<()> {
    let mut plane = ControlPlane::start(port).await?;
    plane.write_kubeconfig(kubeconfig)?;
    guide::print(out, &plane.url(), plane.startup_time(), kubeconfig);
    plane.start_controllers();
    let client = plane.client();
    let result = tokio::select! {
        biased;
        () = shutdown.received() => Ok(()),
        result = print_changes(&client, out) => result,
        failed = plane.controllers_failed() => failed.map_err(Into::into),
    };
    plane.stop().await;
    result
}

async fn print_changes(client: &kube::Client, out: &mut Output) -> Result<()> {
    operator::install(client).await?;
    out.timed("the CRD custompods.zhhnzw.mock.com is installed");
    let (sender, mut lines) = changes::channel();
    let mut operator = Operator::start(client.clone(), Some(sender));
    out.timed("the operator runs");
    operator::create_sample(client).await?;
    loop {
        tokio::select! {
            biased;
            line = lines.recv() => match line {
                Some(line) => out.timed(line),
                None => return operator.ended().await,
            },
            ended = operator.ended() => return ended,
        }
    }
}

/// Runs the tour: performs each step and checks the result.
pub(crate) async fn tour(
    port: u16,
    kubeconfig: Option<&Path>,
    limit: Duration,
    shutdown: &ShutdownSignal,
    out: &mut Output,
) -> Result<()> {
    let mut plane = ControlPlane::start(port).await?;
    if let Some(path) = kubeconfig {
        plane.write_kubeconfig(path)?;
    }
    out.timed(format_args!("the control plane is ready at {}", plane.url()));
    plane.start_controllers();
    let kubeconfig = plane.kubeconfig().to_owned();
    let client = plane.client();
    let result = tokio::select! {
        biased;
        () = shutdown.received() => Err("the tour was interrupted".into()),
        result = run_tour(client, &kubeconfig, limit, out) => result,
        failed = plane.controllers_failed() => failed.map_err(Into::into),
    };
    plane.stop().await;
    result
}

async fn run_tour(client: kube::Client, kubeconfig: &str, limit: Duration, out: &mut Output) -> Result<()> {
    operator::install(&client).await?;
    out.timed("the CRD custompods.zhhnzw.mock.com is installed");
    let mut operator = Operator::start(client, None);
    out.timed("the operator runs");
    tokio::select! {
        biased;
        result = tour::run(kubeconfig, limit, out) => result,
        ended = operator.ended() => {
            ended?;
            Err("the operator ended before the tour did".into())
        }
    }
}
