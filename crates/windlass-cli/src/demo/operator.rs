//! The operator of the demo: the CRD, the controller, the sample.

use custom_pod::{CustomPod, CustomPodSpec};
use kube::Client;
use kube::api::{Api, PostParams};
use kube::core::CustomResourceExt;
use tokio::task::JoinHandle;
use windlass_runtime::Manager;

use super::changes::{self, LineSender};
use super::tour::SAMPLE;
use crate::error::Result;

/// The running operator. Dropping the value aborts the operator.
pub(super) struct Operator {
    running: JoinHandle<windlass_runtime::Result<()>>,
}

impl Operator {
    /// Starts the operator. If `lines` is given, each change of a CustomPod or pod is sent to `lines`.
    pub(super) fn start(client: Client, lines: Option<LineSender>) -> Self {
        let mut manager = Manager::new(client).controller(custom_pod::controller());
        if let Some(lines) = lines {
            manager = manager.controller(changes::controller(lines));
        }
        Self { running: tokio::spawn(manager.run_until(std::future::pending())) }
    }

    /// Waits until the operator ends. The operator ends only on failure.
    pub(super) async fn ended(&mut self) -> Result<()> {
        Ok((&mut self.running).await??)
    }
}

impl Drop for Operator {
    fn drop(&mut self) {
        self.running.abort();
    }
}

/// Installs the CRD and waits until the resource is served.
pub(super) async fn install(client: &Client) -> Result<()> {
    windlass_dev::install_crds(client, &[CustomPod::crd()]).await?;
    Ok(())
}

/// Creates the sample CustomPod with one replica.
pub(super) async fn create_sample(client: &Client) -> Result<()> {
    let sample = CustomPod::new(SAMPLE, CustomPodSpec { replicas: 1 });
    Api::<CustomPod>::default_namespaced(client.clone()).create(&PostParams::default(), &sample).await?;
    Ok(())
}
