//! The demo: the CustomPod operator at work on a control plane of its own.

mod guide;
mod narrator;
mod operator;
mod tell;
mod tour;

use std::path::Path;
use std::time::Duration;

use self::operator::Operator;
use crate::control_plane::ControlPlane;
use crate::error::Result;
use crate::signals::Stop;
use crate::voice::Voice;

/// Runs the operator and tells what happens, until it is time to stop.
pub(crate) async fn watch(port: u16, kubeconfig: &Path, stop: &Stop, voice: &mut Voice) -> Result<()> {
    let mut plane = ControlPlane::start(port).await?;
    plane.write_kubeconfig(kubeconfig)?;
    guide::open(voice, &plane.url(), plane.took(), kubeconfig);
    plane.start_controllers();
    let client = plane.client();
    let outcome = tokio::select! {
        biased;
        () = stop.asked() => Ok(()),
        outcome = narrate(&client, voice) => outcome,
        failed = plane.controllers_failed() => failed,
    };
    plane.stop().await;
    outcome
}

async fn narrate(client: &kube::Client, voice: &mut Voice) -> Result<()> {
    operator::install(client).await?;
    voice.moment("the CRD custompods.zhhnzw.mock.com is installed");
    let (told, mut lines) = tell::channel();
    let mut operator = Operator::start(client.clone(), Some(told));
    voice.moment("the operator runs");
    operator::create_sample(client).await?;
    loop {
        tokio::select! {
            biased;
            line = lines.recv() => match line {
                Some(line) => voice.moment(line),
                None => return operator.ended().await,
            },
            ended = operator.ended() => return ended,
        }
    }
}

/// Takes the tour: each step done, and seen.
pub(crate) async fn tour(
    port: u16,
    kubeconfig: Option<&Path>,
    limit: Duration,
    stop: &Stop,
    voice: &mut Voice,
) -> Result<()> {
    let mut plane = ControlPlane::start(port).await?;
    if let Some(path) = kubeconfig {
        plane.write_kubeconfig(path)?;
    }
    voice.moment(format_args!("the control plane serves at {}", plane.url()));
    plane.start_controllers();
    let kubeconfig = plane.kubeconfig().to_owned();
    let client = plane.client();
    let outcome = tokio::select! {
        biased;
        () = stop.asked() => Err("the tour was interrupted".into()),
        outcome = conduct(client, &kubeconfig, limit, voice) => outcome,
        failed = plane.controllers_failed() => failed,
    };
    plane.stop().await;
    outcome
}

async fn conduct(client: kube::Client, kubeconfig: &str, limit: Duration, voice: &mut Voice) -> Result<()> {
    operator::install(&client).await?;
    voice.moment("the CRD custompods.zhhnzw.mock.com is installed");
    let mut operator = Operator::start(client, None);
    voice.moment("the operator runs");
    tokio::select! {
        biased;
        toured = tour::run(kubeconfig, limit, voice) => toured,
        ended = operator.ended() => {
            ended?;
            Err("the operator ended before the tour did".into())
        }
    }
}
